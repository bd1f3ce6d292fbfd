#include "build_config.h"

#include "rmp/dedupe.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/frame.h"

#define CAPACITY_MIN 16

struct rmp_dedupe_entry {
    struct rmp_dedupe_key key;
    uint64_t number, seen_ms;
    uint32_t newer, older; /* a ring: the newest one's `newer` is the oldest */
    uint32_t hash;
};

/* Open addressing with linear probing, at most half full. The hash is here, too, so that a probe
 * touches no entry but its own. */
struct rmp_dedupe_slot {
    uint32_t hash;
    uint32_t entry; /* + 1; 0: free */
};

static uint32_t hash_of(const struct rmp_dedupe_rules *rules, const struct rmp_dedupe_key *key)
{
    return (uint32_t)siphash(&rules->key, key, sizeof *key);
}

static bool has_key(const struct rmp_dedupe_entry *entry, const struct rmp_dedupe_key *key)
{
    return entry->key.msg_id == key->msg_id && rmp_id_equal(entry->key.trace_id, key->trace_id);
}

static void set_key(struct rmp_dedupe_entry *entry, const struct rmp_dedupe_key *key, uint32_t hash)
{
    entry->key = *key;
    entry->hash = hash;
}

/* --- the index --- */

static uint32_t mask_of(const struct rmp_dedupe *dedupe)
{
    return dedupe->capacity * 2 - 1;
}

static struct rmp_dedupe_entry *find_entry(const struct rmp_dedupe *dedupe, uint32_t hash,
                                           const struct rmp_dedupe_key *key)
{
    const struct rmp_dedupe_slot *slot;
    uint32_t at;

    if (dedupe->count == 0)
        return NULL;
    for (at = hash & mask_of(dedupe);; at = (at + 1) & mask_of(dedupe)) {
        slot = &dedupe->index[at];
        if (slot->entry == 0)
            return NULL;
        if (slot->hash == hash && has_key(&dedupe->entries[slot->entry - 1], key))
            return &dedupe->entries[slot->entry - 1];
    }
}

static void index_add(struct rmp_dedupe *dedupe, uint32_t hash, uint32_t entry)
{
    uint32_t at = hash & mask_of(dedupe);

    while (dedupe->index[at].entry != 0)
        at = (at + 1) & mask_of(dedupe);
    dedupe->index[at] = (struct rmp_dedupe_slot){.hash = hash, .entry = entry + 1};
}

/* As in base/hash_table.c: what follows in the run moves back towards its home. */
static void index_remove(struct rmp_dedupe *dedupe, uint32_t entry)
{
    struct rmp_dedupe_slot *index = dedupe->index;
    uint32_t mask = mask_of(dedupe);
    uint32_t hole = dedupe->entries[entry].hash & mask;
    uint32_t at;

    while (index[hole].entry != entry + 1)
        hole = (hole + 1) & mask;
    for (at = (hole + 1) & mask; index[at].entry != 0; at = (at + 1) & mask) {
        if (((at - index[at].hash) & mask) >= ((at - hole) & mask)) {
            index[hole] = index[at];
            hole = at;
        }
    }
    index[hole].entry = 0;
}

/* --- the entries --- */

static size_t bytes_of(uint32_t capacity)
{
    return capacity *
           (sizeof(struct rmp_dedupe_entry) + (size_t)2 * sizeof(struct rmp_dedupe_slot));
}

static uint32_t next_capacity(const struct rmp_dedupe *dedupe)
{
    return dedupe->capacity > 0 ? dedupe->capacity * 2 : CAPACITY_MIN;
}

static int grow(struct rmp_dedupe *dedupe)
{
    uint32_t capacity = next_capacity(dedupe);
    size_t index_bytes = (size_t)capacity * 2 * sizeof *dedupe->index;
    struct rmp_dedupe_entry *entries = malloc(bytes_of(capacity));

    if (entries == NULL)
        return STDIO_BUS_ERR;
    if (dedupe->count > 0)
        memcpy(entries, dedupe->entries, dedupe->count * sizeof *entries);
    free(dedupe->entries);
    dedupe->entries = entries;
    dedupe->index = (struct rmp_dedupe_slot *)(void *)(entries + capacity);
    dedupe->capacity = capacity;
    memset(dedupe->index, 0, index_bytes);
    for (uint32_t i = 0; i < dedupe->count; i++)
        index_add(dedupe, entries[i].hash, i);
    return STDIO_BUS_OK;
}

/* A fresh entry becomes the newest one, before the oldest in the ring. */
static void link_newest(struct rmp_dedupe *dedupe, uint32_t entry)
{
    struct rmp_dedupe_entry *entries = dedupe->entries;
    uint32_t newest = entries[dedupe->oldest].older;

    entries[entry].older = newest;
    entries[entry].newer = dedupe->oldest;
    entries[newest].newer = entry;
    entries[dedupe->oldest].older = entry;
}

static void make_newest(struct rmp_dedupe *dedupe, uint32_t entry)
{
    struct rmp_dedupe_entry *entries = dedupe->entries;

    if (entry == dedupe->oldest) {
        dedupe->oldest = entries[entry].newer;
    } else if (entries[entry].newer != dedupe->oldest) {
        entries[entries[entry].older].newer = entries[entry].newer;
        entries[entries[entry].newer].older = entries[entry].older;
        link_newest(dedupe, entry);
    }
}

static bool is_over(const struct rmp_dedupe_entry *entry, const struct rmp_dedupe_rules *rules,
                    uint64_t now_ms)
{
    return now_ms - entry->seen_ms >= rules->horizon_ms;
}

/* A new entry, the newest one, to be filled; there is room for it. */
static struct rmp_dedupe_entry *append(struct rmp_dedupe *dedupe)
{
    uint32_t entry = dedupe->count++;

    if (entry == 0)
        dedupe->entries[0].newer = dedupe->entries[0].older = dedupe->oldest = 0;
    else
        link_newest(dedupe, entry);
    return &dedupe->entries[entry];
}

/* Whether a new key takes the place of the oldest one. */
static bool reuses(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                   uint64_t now_ms)
{
    return dedupe->count == rules->max ||
           (dedupe->count > 0 && is_over(&dedupe->entries[dedupe->oldest], rules, now_ms));
}

size_t rmp_dedupe_bytes(const struct rmp_dedupe *dedupe)
{
    return bytes_of(dedupe->capacity);
}

size_t rmp_dedupe_growth(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                         uint64_t now_ms)
{
    if (dedupe->count < dedupe->capacity || reuses(dedupe, rules, now_ms))
        return 0;
    return bytes_of(next_capacity(dedupe)) - bytes_of(dedupe->capacity);
}

/* The newest entry, to be filled: a new one, or the oldest one reused. NULL: there is no memory. */
static struct rmp_dedupe_entry *take_entry(struct rmp_dedupe *dedupe,
                                           const struct rmp_dedupe_rules *rules, uint64_t now_ms,
                                           bool may_grow)
{
    uint32_t entry = dedupe->oldest;
    bool reuse = reuses(dedupe, rules, now_ms);

    if (!reuse && dedupe->count == dedupe->capacity &&
        (!may_grow || grow(dedupe) != STDIO_BUS_OK)) {
        if (dedupe->count == 0)
            return NULL;
        reuse = true;
    }
    if (reuse) {
        index_remove(dedupe, entry);
        dedupe->oldest = dedupe->entries[entry].newer;
        return &dedupe->entries[entry];
    }
    return append(dedupe);
}

uint64_t rmp_dedupe_see(struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                        struct rmp_dedupe_key key, uint64_t number, uint64_t now_ms, bool may_grow)
{
    uint32_t hash = hash_of(rules, &key);
    struct rmp_dedupe_entry *entry = find_entry(dedupe, hash, &key);
    uint64_t before = 0;

    ASSERT(number > 0);
    if (entry != NULL) {
        before = is_over(entry, rules, now_ms) ? 0 : entry->number;
        make_newest(dedupe, (uint32_t)(entry - dedupe->entries));
    } else {
        entry = take_entry(dedupe, rules, now_ms, may_grow);
        if (entry == NULL)
            return 0;
        set_key(entry, &key, hash);
        index_add(dedupe, hash, (uint32_t)(entry - dedupe->entries));
    }
    entry->number = number;
    entry->seen_ms = now_ms;
    return before;
}

uint64_t rmp_dedupe_number(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules,
                           struct rmp_dedupe_key key)
{
    const struct rmp_dedupe_entry *entry = find_entry(dedupe, hash_of(rules, &key), &key);

    return entry != NULL ? entry->number : 0;
}

uint64_t rmp_dedupe_oldest(const struct rmp_dedupe *dedupe)
{
    return dedupe->count > 0 ? dedupe->entries[dedupe->oldest].number : UINT64_MAX;
}

uint64_t rmp_dedupe_over_ms(const struct rmp_dedupe *dedupe, const struct rmp_dedupe_rules *rules)
{
    const struct rmp_dedupe_entry *entries = dedupe->entries;

    if (dedupe->count == 0)
        return 0;
    return entries[entries[dedupe->oldest].older].seen_ms + rules->horizon_ms;
}

void rmp_dedupe_free(struct rmp_dedupe *dedupe)
{
    free(dedupe->entries);
    dedupe->entries = NULL;
    dedupe->index = NULL;
    dedupe->capacity = dedupe->count = dedupe->oldest = 0;
}

/* --- the archive --- */

static const struct archive_field entry_fields[] = {
    ARCHIVE_INTEGERS(struct rmp_dedupe_entry, key.trace_id, key.msg_id, number, seen_ms),
};

static void load_entry(struct archive *archive, struct rmp_dedupe *dedupe,
                       const struct rmp_dedupe_rules *rules, const struct rmp_dedupe_entry *loaded)
{
    const struct rmp_dedupe_key *key = &loaded->key;
    uint32_t hash = hash_of(rules, key);
    struct rmp_dedupe_entry *entry;

    archive_expect(archive, find_entry(dedupe, hash, key) == NULL,
                   "a topic has seen a message twice");
    if (!archive_ok(archive))
        return;
    if (dedupe->count == dedupe->capacity && grow(dedupe) != STDIO_BUS_OK) {
        archive_lacks_memory(archive);
        return;
    }
    entry = append(dedupe);
    set_key(entry, key, hash);
    entry->number = loaded->number;
    entry->seen_ms = loaded->seen_ms;
    index_add(dedupe, hash, (uint32_t)(entry - dedupe->entries));
}

/* The oldest one first. */
void rmp_dedupe_archive(struct archive *archive, struct rmp_dedupe *dedupe,
                        const struct rmp_dedupe_rules *rules, uint64_t last_number)
{
    size_t count = archive_count(archive, dedupe->count);
    uint32_t at = dedupe->oldest;

    archive_expect(archive, count <= rules->max, "a topic has seen too many messages");
    for (; count > 0 && archive_ok(archive); count--) {
        struct rmp_dedupe_entry entry = {.number = 0};

        if (archive->saves) {
            entry = dedupe->entries[at];
            at = entry.newer;
        }
        ARCHIVE_FIELDS(archive, &entry, entry_fields);
        archive_expect(archive, entry.number > 0 && entry.number <= last_number,
                       "a topic has seen a message that is still to come");
        if (archive_loads(archive))
            load_entry(archive, dedupe, rules, &entry);
    }
}
