/* A broker in an archive: first all peers, which their owners carry one by one, then topics and
 * subscriptions, then what waits. Peers are named by their numbers, which they keep. */
#ifndef STDIO_BUS_RMP_BROKER_ARCHIVE_H
#define STDIO_BUS_RMP_BROKER_ARCHIVE_H

#include "base/archive.h"
#include "base/hash_table.h"
#include "rmp/broker.h"

struct rmp_archive {
    struct archive *archive;
    struct rmp_broker *broker;
    struct hash_table peers;  /* struct rmp_peer, by number */
    struct rmp_topic *topic;  /* whose subscriptions are carried, */
    struct rmp_peer *peer;    /* and whose queue */
    struct hash_table copies; /* each message that waits, by its number */
};

/* Between two calls of the broker, which is not closed. The counters come first. */
void rmp_archive_begin(struct rmp_archive *state, struct archive *archive,
                       struct rmp_broker *broker);
void rmp_archive_end(struct rmp_archive *state);

/* A peer that has joined, and that has no subscription yet where it is loaded. */
void rmp_archive_peer(struct rmp_archive *state, struct rmp_peer *peer);

/* Topics and subscriptions, after all peers. */
void rmp_archive_topics(struct rmp_archive *state);

/* Messages that wait, and their publishers, after all else. */
void rmp_archive_queues(struct rmp_archive *state);

#endif
