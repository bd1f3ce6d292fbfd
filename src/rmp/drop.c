#include "build_config.h"

#include "rmp/drop.h"

#include "rmp/known.h"

/* The key's number is that of its last publication, which may be a duplicate that came while this
 * message waited. */
static void unsee(struct rmp_broker *broker, struct rmp_subscription *subscription,
                  const struct rmp_publication *publication)
{
    uint64_t number = rmp_known_number(broker, subscription->topic, publication);

    if (number >= subscription->since && number > 0)
        rmp_subscriptions_miss(&broker->subscriptions, subscription, number,
                               rmp_known_oldest(subscription->topic), broker->number + 1);
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
