/* A subscription: one peer, one topic, and a name within the peer. And the table of all of them. */
#ifndef STDIO_BUS_RMP_SUBSCRIPTION_H
#define STDIO_BUS_RMP_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "rmp/memory.h"
#include "rmp/observer.h"
#include "rmp/peer.h"

/* --- The topics: each name that has a subscription. --- */

#define RMP_TOPIC_MAX 512                    /* bytes */
#define RMP_TOPIC_DECISION "action.decision" /* for ui and tui alone */

struct rmp_topic {
    struct list subscriptions; /* struct rmp_subscription, in_topic; never empty for long */
    struct list known;         /* struct rmp_known, in_topic; the most recently used one first */
    uint64_t published, delivered, dropped; /* since its first subscription */
    uint64_t hash;
    void *mark; /* the observer's */
    size_t name_len;
    char name[];
};

struct rmp_topics {
    struct hash_table table;
    struct siphash_key key;
    struct rmp_observer *observer; /* NULL: none */
};

#define RMP_TOPIC_RULE "a topic is 1 to 512 bytes of UTF-8 without control characters"

/* Whether this can be a topic: 1 to 512 bytes of UTF-8 without control characters. */
bool rmp_topic_is_valid(struct slice name);

/* Whether it is reserved for the broker's own messages: rlp/sys/ and what is below (RMP 11). */
bool rmp_topic_is_system(struct slice name);

/* The topic of exactly this name, or NULL. The events of a run have a second name, without "trace:"
 * before their UUID; here and below it is the same as the first. */
struct rmp_topic *rmp_topics_find(const struct rmp_topics *topics, struct slice name);

/* Adds a topic that is not there. NULL if out of memory. */
struct rmp_topic *rmp_topics_add(struct rmp_topics *topics, struct slice name);

/* Reports to the observer, which is there, that a peer has published. */
void rmp_topics_report(const struct rmp_topics *topics, const struct rmp_peer *publisher,
                       const struct rmp_publication *publication);

/* From now on there is another observer, or none. It is told of all topics. */
void rmp_topics_observe(struct rmp_topics *topics, struct rmp_observer *observer);

/* Removes a topic without subscriptions, that knows of no message. */
void rmp_topics_remove(struct rmp_topics *topics, struct rmp_topic *topic);

/* Frees the table and all topics, which know of no message. */
void rmp_topics_free(struct rmp_topics *topics);

/* The publications that a subscription has missed: their numbers. A message that was dropped for a
 * subscription is no duplicate for it when it is published again (RMP 5). */

/* A set of numbers above 0: open addressing, at most half full. Zeroed: empty. */
struct rmp_missed {
    uint64_t *slots; /* 0: free */
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Adds a number, if it is not there. Those below `oldest` may be forgotten. STDIO_BUS_ERR if out of
 * memory; then nothing has changed. */
int rmp_missed_add(struct rmp_missed *missed, uint64_t number, uint64_t oldest);

/* The bytes that it takes more for one further number; numbers below `oldest` may be forgotten. */
size_t rmp_missed_growth(const struct rmp_missed *missed, uint64_t oldest);

/* The bytes that it takes. */
static inline size_t rmp_missed_bytes(const struct rmp_missed *missed)
{
    return missed->capacity * sizeof *missed->slots;
}

/* Removes the number. Whether it was there. */
bool rmp_missed_take(struct rmp_missed *missed, uint64_t number);

/* Empties the set and frees its memory. */
void rmp_missed_free(struct rmp_missed *missed);

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
