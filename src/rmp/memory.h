/* The memory that the broker takes because of its peers: topics and subscriptions with what these
 * have missed, and the keys by which duplicates are known. Each of the two accounts has a maximum,
 * and fair shares: with n peers and m users that hold something, a peer that holds less than
 * 1/(2n) of it, or whose user holds less than 1/(2m), gets more although it is full. */
#ifndef STDIO_BUS_RMP_MEMORY_H
#define STDIO_BUS_RMP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"

struct rmp_peer;

enum rmp_account { RMP_SUBSCRIPTIONS, RMP_KEYS, RMP_ACCOUNTS };

struct rmp_memory {
    struct hash_table users; /* struct rmp_user, by number: those that hold something */
    size_t bytes[RMP_ACCOUNTS], max[RMP_ACCOUNTS];
    size_t *total; /* where the bytes of both accounts count, too; NULL: nowhere */
    size_t peers;  /* that have joined */
};

/* All peers of one user, and what they have published. */
struct rmp_user {
    uint32_t number; /* rmp/peer.h */
    size_t held[RMP_ACCOUNTS];
    struct list known; /* struct rmp_known, in_user; the one that was not used for longest first */
};

/* The user of this number, who is present until rmp_memory_settle. NULL if out of memory. */
struct rmp_user *rmp_memory_user(struct rmp_memory *memory, uint32_t number);

/* Whether `bytes` more may be taken for the user, and for this peer of it, which may be NULL. */
bool rmp_memory_may_take(const struct rmp_memory *memory, enum rmp_account account, size_t bytes,
                         const struct rmp_user *user, const struct rmp_peer *peer);

/* The user holds `after` bytes in place of `before`. */
void rmp_memory_count(struct rmp_memory *memory, enum rmp_account account, struct rmp_user *user,
                      size_t before, size_t after);

/* Frees the user if it holds nothing. */
void rmp_memory_settle(struct rmp_memory *memory, struct rmp_user *user);

/* Frees the table; no user holds anything. */
void rmp_memory_free(struct rmp_memory *memory);

/* What a broker is told at its start, what it counts, and the topics that it publishes on. */

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
