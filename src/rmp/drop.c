#include "build_config.h"

#include "rmp/drop.h"

#include "base/error.h"

/* The key's number is that of its last publication, which may be a duplicate that came while this
 * message waited. Without memory for one number, the subscription forgets all that it has got:
 * rather a message twice than never. */
static void unsee(struct rmp_broker *broker, struct rmp_subscription *subscription,
                  const struct rmp_publication *publication)
{
    const struct rmp_dedupe *dedupe = &subscription->topic->dedupe;
    const struct rmp_dedupe_key key = {publication->header.trace_id, publication->header.msg_id,
                                       publication->user};
    uint64_t number = rmp_dedupe_number(dedupe, &broker->dedupe, key);

    if (number >= subscription->since && number > 0 &&
        rmp_missed_add(&subscription->missed, number, rmp_dedupe_oldest(dedupe)) != STDIO_BUS_OK) {
        rmp_missed_free(&subscription->missed);
        subscription->since = broker->number + 1;
    }
}

void rmp_drop_missed(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     struct rmp_subscription *subscription,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time)
{
    unsee(broker, subscription, publication);
    subscription->topic->dropped++;
    rmp_notices_add(broker, reason, publication, expires_at_ms, time);
}
