/* Pointers to items of the caller, by hash: open addressing with linear probing, power of two,
 * backward-shift deletion (no tombstones). */
#ifndef STDIO_BUS_BASE_HASH_TABLE_H
#define STDIO_BUS_BASE_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

/* Zeroed: an empty table. */
struct hash_table {
    struct hash_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Whether `key` describes the item. */
typedef bool hash_equal_fn(const void *item, const void *key);

/* The item with this hash for which equal(item, key) holds, or NULL. */
void *hash_table_find(const struct hash_table *table, uint64_t hash, hash_equal_fn *equal,
                      const void *key);

/* Adds an item that is not in the table. STDIO_BUS_ERR if out of memory; then nothing has
 * changed. */
int hash_table_insert(struct hash_table *table, uint64_t hash, void *item);

/* Removes the item, found by its address. STDIO_BUS_ENOTFOUND when it is not in the table. */
int hash_table_remove(struct hash_table *table, uint64_t hash, const void *item);

/* Frees the slots, not the items. */
void hash_table_free(struct hash_table *table);

#endif
