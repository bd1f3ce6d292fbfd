/* A subscription: one peer, one topic, and a name within the peer. And the table of all of them. */
#ifndef STDIO_BUS_RMP_SUBSCRIPTION_H
#define STDIO_BUS_RMP_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "rmp/missed.h"
#include "rmp/peer.h"
#include "rmp/topics.h"

struct rmp_subscription {
    struct list_node in_topic, in_peer;
    struct rmp_topic *topic;
    struct rmp_peer *peer;
    struct rmp_sub_name name;
    uint64_t since; /* the number of the first publication that it was there for */
    struct rmp_missed missed;
    size_t queued; /* messages that wait for it and have their place */
};

struct rmp_subscriptions {
    struct hash_table table; /* by peer and name */
    struct siphash_key key;
    size_t max;
};

/* The subscription of this name, or NULL. In the dialect of frames its topic is its name. */
struct rmp_subscription *rmp_subscriptions_find(const struct rmp_subscriptions *subscriptions,
                                                const struct rmp_peer *peer,
                                                struct rmp_sub_name name,
                                                const struct rmp_topic *topic);

/* Whether the peer, one of so many, may have one more: the table is not full, or the peer holds
 * less than half of its equal share. */
bool rmp_subscriptions_has_room(const struct rmp_subscriptions *subscriptions,
                                const struct rmp_peer *peer, size_t peers);

/* Adds a subscription. NULL when memory is out. While there is another one of that name, which the
 * caller removes, either of the two is found. */
struct rmp_subscription *rmp_subscriptions_add(struct rmp_subscriptions *subscriptions,
                                               struct rmp_peer *peer, struct rmp_sub_name name,
                                               struct rmp_topic *topic, uint64_t since);

/* Removes it; nothing must wait for it. Its topic stays, even if this was its last one. */
void rmp_subscriptions_remove(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription);

/* What the subscriptions of the topic have missed is forgotten, since the topic has forgotten
 * it. */
void rmp_subscriptions_forget_missed(struct rmp_topic *topic);

/* Frees the table and all subscriptions. */
void rmp_subscriptions_free(struct rmp_subscriptions *subscriptions);

/* Whether the subscription has got the publication of that number. One that it has missed counts as
 * got from now on. */
static inline bool rmp_subscription_got(struct rmp_subscription *subscription, uint64_t number)
{
    return number >= subscription->since && !rmp_missed_take(&subscription->missed, number);
}

#endif
