/* The hash table against a list: items under hashes that the input chooses, so that they
 * collide. */
#include "build_config.h"

#include "base/hash_table.h"

#include "base/error.h"
#include "common.h"

#define ITEMS 256

struct item {
    unsigned name;
    uint64_t hash;
    bool there;
};

struct state {
    struct hash_table table;
    struct item items[ITEMS];
    size_t count;
};

static bool has_name(const void *item, const void *key)
{
    return ((const struct item *)item)->name == *(const unsigned *)key;
}

/* Few different hashes, neighbours, and some that differ in the high bits alone or lie at the end
 * of the table, so that runs of slots wrap around. */
static uint64_t hash_of(unsigned choice)
{
    uint64_t base = choice & 0x3F;

    switch (choice >> 6) {
    case 0:
        return base;
    case 1:
        return UINT64_MAX - base;
    case 2:
        return base << 58 | 62;
    default:
        return base * UINT64_C(0x9e3779b97f4a7c15);
    }
}

static void check_item(const struct state *state, const struct item *item)
{
    void *found = hash_table_find(&state->table, item->hash, has_name, &item->name);

    EXPECT(item->there ? found == item : found == NULL, "item %u, hash %llx", item->name,
           (unsigned long long)item->hash);
}

static void check_all(const struct state *state)
{
    size_t filled = 0, i;

    EXPECT(state->table.count == state->count, "%zu, not %zu", state->table.count, state->count);
    for (i = 0; i < ITEMS; i++)
        check_item(state, &state->items[i]);
    for (i = 0; i < state->table.capacity; i++)
        filled += state->table.slots[i].item != NULL;
    EXPECT(filled == state->count, "%zu slots are taken, not %zu", filled, state->count);
    EXPECT((state->table.capacity & (state->table.capacity - 1)) == 0, "not a power of two");
    EXPECT(state->count < state->table.capacity || state->count == 0, "no free slot");
}

static void insert(struct state *state, struct item *item, unsigned choice)
{
    if (item->there)
        return;
    item->hash = hash_of(choice);
    EXPECT(hash_table_insert(&state->table, item->hash, item) == STDIO_BUS_OK, "insert");
    item->there = true;
    state->count++;
}

static void remove_item(struct state *state, struct item *item)
{
    int code = hash_table_remove(&state->table, item->hash, item);

    EXPECT(code == (item->there ? STDIO_BUS_OK : STDIO_BUS_ENOTFOUND), "remove says %d", code);
    state->count -= item->there;
    item->there = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape tape = {data, data + size};
    static const struct state empty; /* zeroed is empty */
    struct state state = empty;
    unsigned i, steps = 0;

    for (i = 0; i < ITEMS; i++)
        state.items[i].name = i;
    while (!tape_over(&tape)) {
        unsigned what = tape_byte(&tape);
        struct item *item = &state.items[tape_byte(&tape)];

        if (what < 3) { /* a row of items, so that short inputs grow the table too */
            for (i = 0; i < 64; i++)
                insert(&state, &state.items[(item->name + i) % ITEMS], what * 64 + i % 32);
        } else if (what < 128) {
            insert(&state, item, tape_byte(&tape));
        } else {
            remove_item(&state, item);
        }
        check_item(&state, item);
        if (++steps % 128 == 0)
            check_all(&state);
    }
    check_all(&state);
    for (i = 0; i < ITEMS; i++)
        remove_item(&state, &state.items[i]);
    check_all(&state);
    hash_table_free(&state.table);
    return 0;
}
