/* What a broker is told at its start, what it counts, and the topics that it publishes on. */
#ifndef STDIO_BUS_RMP_BROKER_OPTIONS_H
#define STDIO_BUS_RMP_BROKER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/siphash.h"

#define RMP_TOPIC_DROPS "rlp/sys/drops"     /* drop notices, schema 3007 */
#define RMP_TOPIC_METRICS "rlp/sys/metrics" /* snapshots of the counters, schema 3001 */
#define RMP_TOPIC_STATS "rlp/sys/stats"     /* snapshots of the topics, schema 3001 */

/* Each limit that is 0 becomes its default, except metrics_interval_ms, where it means: never. */
struct rmp_broker_options {
    struct siphash_key key;
    uint64_t max_ttl_ms;          /* a longer one is invalid; default 3,600,000 */
    uint64_t metrics_interval_ms; /* between two snapshots */
    size_t queue_max;             /* messages that wait for one subscription; default 1024 */
    size_t queue_bytes;           /* of the messages that wait for one peer; default 4 MiB */
    size_t copies_bytes;       /* of all messages that wait, each counted once; default 256 MiB */
    size_t subscription_bytes; /* of all subscriptions and topics, and of what was missed; default
                                * 16 MiB */
    size_t key_bytes;          /* of the keys by which duplicates are known; default 32 MiB; both
                                * have shares (rmp/memory.h) */
    size_t *memory;            /* where these bytes count, too; NULL: nowhere */
    const char *executor_id, *node_id; /* labels of the metrics; borrowed; NULL: "" */
};

/* Since the start. */
struct rmp_counters {
    uint64_t received;           /* publications that were not refused */
    uint64_t sent;               /* deliveries */
    uint64_t drops_ttl;          /* expired: once if when published, else once a subscription */
    uint64_t drops_duplicate;    /* once a subscription */
    uint64_t drops_backpressure; /* once a subscription */
    uint64_t replayed;           /* older messages for one subscription, delivered or not */
    uint64_t waits;              /* publications that waited for a subscriber */
    uint64_t notices_suppressed; /* drops without a notice, since there were too many */
    uint64_t no_memory;          /* deliveries, subscriptions and notices lost for want of it */
};

/* Now. */
struct rmp_gauges {
    uint64_t peers, topics, subscriptions;
    uint64_t queued_messages;      /* in the queues of all peers; a copy counts in each */
    uint64_t queued_bytes;         /* of these messages, each counted once */
    uint64_t waiting_publications; /* held until a queue has room */
    uint64_t dedupe_keys;          /* of messages by which duplicates are known, of all topics */
};

#endif
