/* The messages that a topic has seen of late: a memory of duplicates (rmp/dedupe.h) for each user
 * that publishes on it, so that no user's messages make another one's be forgotten. Messages of
 * different users are different ones, too: none can make another one's message a duplicate by
 * publishing its key first.
 *
 * Where the memory for keys is used up and the user has its share, the topic on which the user has
 * not published for longest loses what it has seen of that user. */
#ifndef STDIO_BUS_RMP_KNOWN_H
#define STDIO_BUS_RMP_KNOWN_H

#include "base/archive.h"
#include "rmp/peer.h"
#include "rmp/state.h"

/* The keys of one user on one topic. */
struct rmp_known {
    struct list_node in_topic, in_user, in_sweep;
    struct rmp_topic *topic;
    struct rmp_user *user;
    struct rmp_dedupe dedupe;
    uint64_t check_ms; /* when all its keys may be over */
};

/* Remembers the key of the publication. Returns the number of the one that it repeats, or 0. */
uint64_t rmp_known_see(struct rmp_broker *broker, struct rmp_topic *topic,
                       const struct rmp_publication *publication, uint64_t now_ms);

/* The number of the publication in which the key of this one was seen last, or 0: it is
 * forgotten. */
uint64_t rmp_known_number(const struct rmp_broker *broker, const struct rmp_topic *topic,
                          const struct rmp_publication *publication);

/* No publication before this number is known; UINT64_MAX: none is. */
uint64_t rmp_known_oldest(const struct rmp_topic *topic);

/* The keys of all users of the topic. */
uint64_t rmp_known_count(const struct rmp_topic *topic);

/* The now_ms at which rmp_known_sweep has something to do, or UINT64_MAX. */
uint64_t rmp_known_deadline(const struct rmp_broker *broker);

/* Frees the memory of topics on which a user has published nothing for as long as duplicates are
 * known. Each is looked at once in that time. */
void rmp_known_sweep(struct rmp_broker *broker, uint64_t now_ms);

/* Forgets what the topic has seen. */
void rmp_known_clear(struct rmp_broker *broker, struct rmp_topic *topic);

/* Saves what all topics have seen, in the order in which they are looked at, or loads it. The
 * topics are there. Which topic a user has published on last is not saved. */
void rmp_known_archive(struct archive *archive, struct rmp_broker *broker);

#endif
