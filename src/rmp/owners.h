/* The users who hold entries of something bounded, and how much each of them holds: runs of a
 * history (rmp/history.h), requests that are remembered (rmp/control.h). */
#ifndef STDIO_BUS_RMP_OWNERS_H
#define STDIO_BUS_RMP_OWNERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/siphash.h"

struct rmp_owner {
    uint32_t user;       /* rmp/peer.h */
    struct list entries; /* those that can be forgotten, the oldest first */
    size_t count;        /* of all its entries */
    size_t bytes;
    struct heap_node by_bytes, by_count;
};

struct rmp_owners {
    struct hash_table table; /* struct rmp_owner, by user */
    struct siphash_key key;
    struct heap_node *most_bytes, *most_entries;
};

void rmp_owners_init(struct rmp_owners *owners, const struct siphash_key *key);

/* Frees what the table takes. No owner may be left. */
void rmp_owners_free(struct rmp_owners *owners);

/* The owner, created without an entry if need be; it lives until rmp_owners_count leaves it
 * without one. NULL if out of memory. */
struct rmp_owner *rmp_owners_get(struct rmp_owners *owners, uint32_t user);

/* The owner holds these entries and bytes more, or less (a number that wraps). Frees an owner that
 * has no entry then. */
void rmp_owners_count(struct rmp_owners *owners, struct rmp_owner *owner, size_t entries,
                      size_t bytes);

/* The owner with the most bytes, or entries. There is one. */
struct rmp_owner *rmp_owners_most_bytes(const struct rmp_owners *owners);
struct rmp_owner *rmp_owners_most_entries(const struct rmp_owners *owners);

#endif
