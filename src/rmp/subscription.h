/* A subscription: one peer, one topic, and a name within the peer. And the table of all of them. */
#ifndef STDIO_BUS_RMP_SUBSCRIPTION_H
#define STDIO_BUS_RMP_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "rmp/memory.h"
#include "rmp/missed.h"
#include "rmp/peer.h"
#include "rmp/topics.h"

/* The bytes that count for a subscription: its struct, its topic, which others may share, and their
 * places in the tables. */
#define RMP_SUBSCRIPTION_BYTES(topic_len) ((size_t)352 + (topic_len))

struct rmp_subscription {
    struct list_node in_topic, in_peer;
    struct rmp_user *user; /* of the peer */
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
    struct rmp_memory *memory;
};

/* The subscription of this name, or NULL. In the dialect of frames its topic is its name. */
struct rmp_subscription *rmp_subscriptions_find(const struct rmp_subscriptions *subscriptions,
                                                const struct rmp_peer *peer,
                                                struct rmp_sub_name name,
                                                const struct rmp_topic *topic);

/* What may become of one more. */
enum rmp_room { RMP_ROOM, RMP_NO_SHARE, RMP_NO_MEMORY };

/* Whether the peer may have one more, to a topic whose name has this length, in place of `old`,
 * which may be NULL. */
enum rmp_room rmp_subscriptions_room(const struct rmp_subscriptions *subscriptions,
                                     const struct rmp_peer *peer, size_t topic_len,
                                     const struct rmp_subscription *old);

/* Adds a subscription. NULL if out of memory. While there is another one of that name, which the
 * caller removes, either of the two is found. */
struct rmp_subscription *rmp_subscriptions_add(struct rmp_subscriptions *subscriptions,
                                               struct rmp_peer *peer, struct rmp_sub_name name,
                                               struct rmp_topic *topic, uint64_t since);

/* Removes it; nothing must wait for it. Its topic stays, even if this was its last one. */
void rmp_subscriptions_remove(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription);

/* The subscription has not got the publication of that number, the first one that is known on its
 * topic being `oldest`. Without memory for one number, it forgets all that it has got before the
 * publication `next`: rather a message twice than never. */
void rmp_subscriptions_miss(struct rmp_subscriptions *subscriptions,
                            struct rmp_subscription *subscription, uint64_t number, uint64_t oldest,
                            uint64_t next);

/* The same, whatever memory it takes. STDIO_BUS_ERR if out of memory; then nothing has changed. */
int rmp_subscriptions_add_missed(struct rmp_subscriptions *subscriptions,
                                 struct rmp_subscription *subscription, uint64_t number,
                                 uint64_t oldest);

/* Whether the subscription has got the publication of that number. One that it has missed counts as
 * got from now on. */
bool rmp_subscriptions_got(struct rmp_subscriptions *subscriptions,
                           struct rmp_subscription *subscription, uint64_t number);

/* What the subscriptions of the topic have missed is forgotten, since the topic has forgotten
 * it. */
void rmp_subscriptions_forget_missed(struct rmp_subscriptions *subscriptions,
                                     struct rmp_topic *topic);

/* Frees the table and all subscriptions. */
void rmp_subscriptions_free(struct rmp_subscriptions *subscriptions);

#endif
