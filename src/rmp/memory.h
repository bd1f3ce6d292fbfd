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

#endif
