/* The topics: each name that has a subscription. */
#ifndef STDIO_BUS_RMP_TOPICS_H
#define STDIO_BUS_RMP_TOPICS_H

#include <stdbool.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"

#define RMP_TOPIC_MAX 512 /* bytes */

struct rmp_topic {
    struct list subscriptions; /* struct rmp_subscription, in_topic; never empty for long */
    struct list known;         /* struct rmp_known, in_topic; the most recently used one first */
    uint64_t published, delivered, dropped; /* since its first subscription */
    uint64_t hash;
    size_t name_len;
    char name[];
};

struct rmp_topics {
    struct hash_table table;
    struct siphash_key key;
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

/* Removes a topic without subscriptions, that knows of no message. */
void rmp_topics_remove(struct rmp_topics *topics, struct rmp_topic *topic);

/* Frees the table and all topics, which know of no message. */
void rmp_topics_free(struct rmp_topics *topics);

#endif
