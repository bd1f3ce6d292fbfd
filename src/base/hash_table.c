#include "build_config.h"

#include "base/hash_table.h"

#include <stdlib.h>

#include "base/error.h"

#define CAPACITY_MIN 64

void *hash_table_find(const struct hash_table *table, uint64_t hash, hash_equal_fn *equal,
                      const void *key)
{
    size_t mask = table->capacity - 1;
    size_t at;

    if (table->count == 0)
        return NULL;
    for (at = (size_t)hash & mask; table->slots[at].item != NULL; at = (at + 1) & mask) {
        if (table->slots[at].hash == hash && equal(table->slots[at].item, key))
            return table->slots[at].item;
    }
    return NULL;
}

static void place(struct hash_slot *slots, size_t capacity, uint64_t hash, void *item)
{
    size_t at = (size_t)hash & (capacity - 1);

    while (slots[at].item != NULL)
        at = (at + 1) & (capacity - 1);
    slots[at] = (struct hash_slot){.hash = hash, .item = item};
}

static int grow(struct hash_table *table)
{
    size_t capacity = table->capacity > 0 ? table->capacity * 2 : CAPACITY_MIN;
    struct hash_slot *slots = calloc(capacity, sizeof *slots);

    if (slots == NULL)
        return STDIO_BUS_ERR;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].item != NULL)
            place(slots, capacity, table->slots[i].hash, table->slots[i].item);
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return STDIO_BUS_OK;
}

int hash_table_insert(struct hash_table *table, uint64_t hash, void *item)
{
    /* At most 3/4 full, so that probes stay short and always meet a free slot. */
    if (table->count + 1 > table->capacity - table->capacity / 4 && grow(table) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    place(table->slots, table->capacity, hash, item);
    table->count++;
    return STDIO_BUS_OK;
}

int hash_table_remove(struct hash_table *table, uint64_t hash, const void *item)
{
    size_t mask = table->capacity - 1;
    size_t hole = (size_t)hash & mask;
    size_t at;

    if (table->count == 0)
        return STDIO_BUS_ENOTFOUND;
    for (; table->slots[hole].item != item; hole = (hole + 1) & mask) {
        if (table->slots[hole].item == NULL)
            return STDIO_BUS_ENOTFOUND;
    }
    /* Each following item of the run moves back if that brings it nearer to its home slot, so that
     * every probe still finds it. */
    for (at = (hole + 1) & mask; table->slots[at].item != NULL; at = (at + 1) & mask) {
        size_t home = (size_t)table->slots[at].hash & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].item = NULL;
    table->count--;
    return STDIO_BUS_OK;
}

void hash_table_free(struct hash_table *table)
{
    free(table->slots);
    *table = (struct hash_table){.slots = NULL};
}
