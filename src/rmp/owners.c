#include "build_config.h"

#include "rmp/owners.h"

#include <stdlib.h>

#include "base/error.h"

void rmp_owners_init(struct rmp_owners *owners, const struct siphash_key *key)
{
    *owners = (struct rmp_owners){.key = *key};
}

void rmp_owners_free(struct rmp_owners *owners)
{
    ASSERT(owners->table.count == 0);
    hash_table_free(&owners->table);
}

static uint64_t hash_of(const struct rmp_owners *owners, uint32_t user)
{
    return siphash(&owners->key, &user, sizeof user);
}

static bool has_user(const void *item, const void *key)
{
    return ((const struct rmp_owner *)item)->user == *(const uint32_t *)key;
}

struct rmp_owner *rmp_owners_get(struct rmp_owners *owners, uint32_t user)
{
    uint64_t hash = hash_of(owners, user);
    struct rmp_owner *owner = hash_table_find(&owners->table, hash, has_user, &user);

    if (owner != NULL)
        return owner;
    owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    owner->user = user;
    list_init(&owner->entries);
    if (hash_table_insert(&owners->table, hash, owner) != STDIO_BUS_OK) {
        free(owner);
        return NULL;
    }
    return owner;
}

/* The heap has the least key at its root. */
static void place(struct heap_node **most, struct heap_node *node, size_t held)
{
    heap_remove(most, node);
    if (held > 0)
        heap_insert(most, node, -(int64_t)held);
}

void rmp_owners_count(struct rmp_owners *owners, struct rmp_owner *owner, size_t entries,
                      size_t bytes)
{
    owner->count += entries;
    owner->bytes += bytes;
    place(&owners->most_bytes, &owner->by_bytes, owner->bytes);
    if (entries != 0)
        place(&owners->most_entries, &owner->by_count, owner->count);
    if (owner->count > 0)
        return;
    ASSERT(owner->bytes == 0 && list_empty(&owner->entries));
    hash_table_remove(&owners->table, hash_of(owners, owner->user), owner);
    free(owner);
}

struct rmp_owner *rmp_owners_most_bytes(const struct rmp_owners *owners)
{
    ASSERT(owners->most_bytes != NULL);
    return list_entry(owners->most_bytes, struct rmp_owner, by_bytes);
}

struct rmp_owner *rmp_owners_most_entries(const struct rmp_owners *owners)
{
    ASSERT(owners->most_entries != NULL);
    return list_entry(owners->most_entries, struct rmp_owner, by_count);
}
