/* What happens when a message does not reach a subscription. */
#ifndef STDIO_BUS_RMP_DROP_H
#define STDIO_BUS_RMP_DROP_H

#include "rmp/notices.h"
#include "rmp/state.h"

/* The subscription does not get the message: counter, notice; and it is no duplicate for it when it
 * is published again. */
void rmp_drop_missed(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     struct rmp_subscription *subscription,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time);

#endif
