/* Drop notices (RMP 4, 5): what was dropped, where and why, on rlp/sys/drops. A token bucket keeps
 * storms away: a hundred a second, and two hundred at once. */
#ifndef STDIO_BUS_RMP_NOTICES_H
#define STDIO_BUS_RMP_NOTICES_H

#include "rmp/publication.h"
#include "rmp/state.h"

enum rmp_drop_reason { RMP_DROP_TTL_EXPIRED, RMP_DROP_DUPLICATE, RMP_DROP_BACKPRESSURE_TIMEOUT };

#define RMP_NOTICES_PER_SECOND 100
#define RMP_NOTICES_BURST 200
#define RMP_NOTICE_TOKENS_MAX ((uint64_t)RMP_NOTICES_BURST * 1000) /* thousandths */
#define RMP_NOTICE_BODY_MAX ((size_t)65536) /* bytes of an expired message's body; more are cut */

void rmp_notices_init(struct rmp_broker *broker);

/* Counts the drop and adds a notice to broker->own if somebody subscribes to them and there are not
 * too many. */
void rmp_notices_add(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time);

#endif
