/* The messages of one user that a topic has seen of late, for the suppression of duplicates
 * (RMP 5): an LRU of keys, each with the number of the last publication that had it.
 *
 * It is one for all subscriptions of the topic, since each of them is offered the same
 * publications. A subscription has seen a key if it is not younger than the publication of that
 * number, and has not missed it (rmp/subscription.h). So the memory and the work are those of one
 * subscriber. */
#ifndef STDIO_BUS_RMP_DEDUPE_H
#define STDIO_BUS_RMP_DEDUPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/siphash.h"
#include "rmp/frame.h"

#define RMP_DEDUPE_MAX ((uint32_t)65536) /* keys */
#define RMP_DEDUPE_HORIZON_MIN_MS ((uint64_t)30000)

struct rmp_dedupe_key {
    struct rmp_id trace_id;
    uint64_t msg_id;
};

/* Zeroed: nothing was seen, and nothing is allocated. */
struct rmp_dedupe {
    struct rmp_dedupe_entry *entries; /* one allocation with the index, which follows them */
    struct rmp_dedupe_slot *index;    /* twice as many as entries */
    uint32_t capacity, count;
    uint32_t oldest; /* entries are a ring in order of use */
};

/* The rules for all of them. */
struct rmp_dedupe_rules {
    struct siphash_key key;
    uint64_t horizon_ms;
    uint32_t max; /* keys; a power of two of at least 16 */
};

/* The bytes of memory that it has, and that it takes more for one further key; 0: it has room for
 * it, or gives it the place of the least recently seen one. */
size_t rmp_dedupe_bytes(const struct rmp_dedupe *dedupe);
size_t rmp_dedupe_growth(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                         uint64_t now_ms);

/* The key is seen, in the publication of this number, 1 or more. Returns the number of the one in
 * which it was seen before, or 0: not within the horizon. Beyond `max` keys, and where it may not
 * grow or out of memory, the least recently seen one is forgotten; without any memory, the new
 * one. */
uint64_t rmp_dedupe_see(struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                        struct rmp_dedupe_key key, uint64_t number, uint64_t now_ms, bool may_grow);

/* The number of the publication in which the key was seen last, or 0: it is forgotten. */
uint64_t rmp_dedupe_number(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                           struct rmp_dedupe_key key);

/* The number of the publication of the least recently seen key, or UINT64_MAX. */
uint64_t rmp_dedupe_oldest(const struct rmp_dedupe *dedupe);

/* The now_ms from which on all keys are out of the horizon; 0 if there are none. */
uint64_t rmp_dedupe_over_ms(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules);

/* Forgets all keys and frees their memory. */
void rmp_dedupe_free(struct rmp_dedupe *dedupe);

/* Saves the keys, or loads them into a zeroed one. No number is above `last_number`. */
void rmp_dedupe_archive(struct archive *archive, struct rmp_dedupe *dedupe,
                        const struct rmp_dedupe_rules *rules, uint64_t last_number);

#endif
