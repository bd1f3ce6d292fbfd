/* Snapshots of the counters on rlp/sys/metrics, and of the topics on rlp/sys/stats, each while it
 * has a subscription (RMP 11). */
#ifndef STDIO_BUS_RMP_METRICS_H
#define STDIO_BUS_RMP_METRICS_H

#include "rmp/msgpack.h"
#include "rmp/peer.h"
#include "rmp/state.h"

#define RMP_STATS_TOPICS 128 /* of one snapshot; the next one continues after them */

/* A subscription of this topic was added: the first snapshot follows after one interval. */
void rmp_metrics_subscribed(struct rmp_broker *broker, struct slice topic, uint64_t now_ms);

struct rmp_gauges rmp_metrics_gauges(const struct rmp_broker *broker);

/* Adds snapshots to broker->own if it is time. */
void rmp_metrics_run(struct rmp_broker *broker, struct rmp_time time);

/* Drop notices (RMP 4, 5): what was dropped, where and why, on rlp/sys/drops. A token bucket keeps
 * storms away: a hundred a second, and two hundred at once. */

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

/* --- What happens when a message does not reach a subscription. --- */

/* The subscription does not get the message: counter, notice; and it is no duplicate for it when it
 * is published again. */
void rmp_drop_missed(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     struct rmp_subscription *subscription,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time);

/* --- Messages that the broker itself publishes. --- */

struct rmp_own_message {
    const char *topic;
    uint16_t schema_id;
    struct rmp_id trace_id;
    /* Writes the payload, a map. Called twice: to count, and to write. */
    void (*put_payload)(struct msgpack_writer *writer, const void *argument);
    const void *argument;
};

#endif
