#include "build_config.h"

#include "rmp/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rmp/frame.h"

void rmp_owners_init(struct rmp_owners *owners, const struct siphash_key *key)
{
    *owners = (struct rmp_owners){.key = *key};
}

void rmp_owners_free(struct rmp_owners *owners)
{
    ASSERT(owners->table.count == 0);
    hash_table_free(&owners->table);
}

static uint64_t owner_hash(const struct rmp_owners *owners, uint32_t user)
{
    return siphash(&owners->key, &user, sizeof user);
}

static bool has_user(const void *item, const void *key)
{
    return ((const struct rmp_owner *)item)->user == *(const uint32_t *)key;
}

struct rmp_owner *rmp_owners_get(struct rmp_owners *owners, uint32_t user)
{
    uint64_t hash = owner_hash(owners, user);
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
static void place_owner(struct heap_node **most, struct heap_node *node, size_t held)
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
    place_owner(&owners->most_bytes, &owner->by_bytes, owner->bytes);
    if (entries != 0)
        place_owner(&owners->most_entries, &owner->by_count, owner->count);
    if (owner->count > 0)
        return;
    ASSERT(owner->bytes == 0 && list_empty(&owner->entries));
    hash_table_remove(&owners->table, owner_hash(owners, owner->user), owner);
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

#define NO_MEMORY "out of memory"

void rmp_history_init(struct rmp_history *history, const struct siphash_key *key,
                      const struct rmp_history_limits *limits, size_t *account)
{
    *history = (struct rmp_history){.limits = *limits, .key = *key, .account = account};
    list_init(&history->by_age);
    rmp_owners_init(&history->owners, key);
}

static void count_bytes(struct rmp_history *history, struct rmp_run *run, size_t more, size_t less)
{
    run->bytes += more - less;
    history->bytes += more - less;
    *history->account += more - less;
    rmp_owners_count(&history->owners, run->owner, 0, more - less);
}

static size_t size_of(const struct rmp_kept_event *event)
{
    return sizeof *event + event->len;
}

static uint64_t run_hash(const struct rmp_history *history, struct rmp_id id)
{
    char bytes[RMP_ID_LEN];

    rmp_id_write(bytes, id);
    return siphash(&history->key, bytes, sizeof bytes);
}

static bool has_id(const void *item, const void *key)
{
    return rmp_id_equal(((const struct rmp_run *)item)->id, *(const struct rmp_id *)key);
}

struct rmp_run *rmp_history_find(const struct rmp_history *history, struct rmp_id id)
{
    return hash_table_find(&history->runs, run_hash(history, id), has_id, &id);
}

/* --- forgetting --- */

static void forget_first_event(struct rmp_history *history, struct rmp_run *run)
{
    struct rmp_kept_event *event = list_entry(run->events.head.next, struct rmp_kept_event, link);

    list_remove(&event->link);
    count_bytes(history, run, 0, size_of(event));
    history->events--;
    run->count--;
    if (run->unsaved > run->count)
        run->unsaved = run->count;
    free(event);
}

static void free_run(struct rmp_history *history, struct rmp_run *run)
{
    while (run->count > 0)
        forget_first_event(history, run);
    list_remove(&run->in_age);
    list_remove(&run->in_owner);
    list_remove(&run->in_unsaved);
    hash_table_remove(&history->runs, run_hash(history, run->id), run);
    history->bytes -= sizeof *run;
    *history->account -= sizeof *run;
    rmp_owners_count(&history->owners, run->owner, (size_t)-1, (size_t)0 - sizeof *run);
    free(run);
}

static struct rmp_run *oldest(const struct rmp_history *history)
{
    return list_entry(history->by_age.head.next, struct rmp_run, in_age);
}

static void forget_run(struct rmp_history *history, struct rmp_run *run)
{
    if (history->forgets != NULL)
        history->forgets(history->user_data, run);
    free_run(history, run);
}

void rmp_history_free(struct rmp_history *history)
{
    while (!list_empty(&history->by_age))
        free_run(history, oldest(history));
    hash_table_free(&history->runs);
    rmp_owners_free(&history->owners);
}

uint64_t rmp_history_due(const struct rmp_history *history)
{
    return list_empty(&history->by_age) ? UINT64_MAX
                                        : oldest(history)->last_ms + history->limits.ms;
}

void rmp_history_expire(struct rmp_history *history, uint64_t epoch_ms)
{
    while (rmp_history_due(history) <= epoch_ms)
        forget_run(history, oldest(history));
}

/* --- runs and events --- */

static struct rmp_run *add_run(struct rmp_history *history, struct rmp_id id, uint32_t user)
{
    struct rmp_owner *owner = rmp_owners_get(&history->owners, user);
    struct rmp_run *run = owner != NULL ? calloc(1, sizeof *run) : NULL;

    if (run != NULL &&
        hash_table_insert(&history->runs, run_hash(history, id), run) == STDIO_BUS_OK) {
        run->id = id;
        run->owner = owner;
        list_init(&run->events);
        rmp_owners_count(&history->owners, owner, 1, 0);
        count_bytes(history, run, sizeof *run, 0);
        return run;
    }
    free(run);
    if (owner != NULL)
        rmp_owners_count(&history->owners, owner, 0, 0);
    return NULL;
}

/* Gives the run its place in the list of all, and in that of its owner. Nearly always that is the
 * last one. */
static void place_run(struct rmp_history *history, struct rmp_run *run)
{
    struct list_node *all = &history->by_age.head, *own = &run->owner->entries.head, *before;

    list_remove(&run->in_age);
    list_remove(&run->in_owner);
    before = all->prev;
    while (before != all && list_entry(before, struct rmp_run, in_age)->last_ms > run->last_ms)
        before = before->prev;
    list_insert(before, &run->in_age);
    before = own->prev;
    while (before != own && list_entry(before, struct rmp_run, in_owner)->last_ms > run->last_ms)
        before = before->prev;
    list_insert(before, &run->in_owner);
}

/* The oldest of the other runs, or NULL. */
static struct rmp_run *oldest_but(const struct rmp_history *history, const struct rmp_run *run)
{
    const struct list_node *node = history->by_age.head.next;

    if (node == &run->in_age)
        node = node->next;
    return node != &history->by_age.head ? list_entry(node, struct rmp_run, in_age) : NULL;
}

/* The same of the owner's. */
static struct rmp_run *oldest_of(const struct rmp_owner *owner, const struct rmp_run *run)
{
    const struct list_node *node = owner->entries.head.next;

    if (node == &run->in_owner)
        node = node->next;
    return node != &owner->entries.head ? list_entry(node, struct rmp_run, in_owner) : NULL;
}

static void keep_run_limits(struct rmp_history *history, struct rmp_run *run)
{
    const struct rmp_history_limits *limits = &history->limits;

    while (run->count > limits->events || (run->bytes > limits->run_bytes && run->count > 0))
        forget_first_event(history, run);
}

/* Other runs are forgotten while there are too many: the oldest one, unless its owner has fewer
 * than another one has. */
static void keep_number(struct rmp_history *history, const struct rmp_run *run)
{
    while (history->runs.count > history->limits.runs) {
        const struct rmp_owner *most = rmp_owners_most_entries(&history->owners);
        struct rmp_run *victim = oldest_but(history, run);

        if (victim != NULL && victim->owner->count < most->count)
            victim = oldest_of(most, run);
        if (victim == NULL)
            return;
        forget_run(history, victim);
    }
}

/* The same while they take too much. Where this run is all that its owner has, its own events are
 * forgotten, but for the last one. */
static void keep_bytes(struct rmp_history *history, struct rmp_run *run)
{
    while (history->bytes > history->limits.bytes) {
        const struct rmp_owner *most = rmp_owners_most_bytes(&history->owners);
        struct rmp_run *victim = oldest_but(history, run);

        if (victim != NULL && victim->owner->bytes < most->bytes)
            victim = oldest_of(most, run);
        if (victim == NULL && run->count > 1) {
            forget_first_event(history, run);
            continue;
        }
        if (victim == NULL)
            victim = oldest_but(history, run);
        if (victim == NULL)
            return;
        forget_run(history, victim);
    }
}

static void keep_limits(struct rmp_history *history, struct rmp_run *run)
{
    keep_run_limits(history, run);
    keep_number(history, run);
    keep_bytes(history, run);
}

struct rmp_run *rmp_history_open(struct rmp_history *history, struct rmp_id id, uint32_t user,
                                 uint64_t at_ms)
{
    struct rmp_run *run = rmp_history_find(history, id);

    if (run != NULL || history->limits.events == 0)
        return run;
    run = add_run(history, id, user);
    if (run == NULL)
        return NULL;
    run->last_ms = at_ms;
    place_run(history, run);
    keep_limits(history, run);
    return run;
}

static struct rmp_kept_event *append_event(struct rmp_history *history, struct rmp_run *run,
                                           uint64_t msg_id, uint64_t at_ms, struct slice payload)
{
    struct rmp_kept_event *event = malloc(sizeof *event + payload.len);

    if (event == NULL)
        return NULL;
    *event = (struct rmp_kept_event){.msg_id = msg_id, .at_ms = at_ms, .len = payload.len};
    if (payload.len > 0)
        memcpy(event->payload, payload.data, payload.len);
    list_append(&run->events, &event->link);
    run->count++;
    history->events++;
    count_bytes(history, run, size_of(event), 0);
    return event;
}

struct rmp_kept_event *rmp_history_add(struct rmp_history *history, struct rmp_run *run,
                                       uint64_t msg_id, uint64_t at_ms, struct slice payload)
{
    size_t beside = sizeof *run + sizeof(struct rmp_kept_event);
    struct rmp_kept_event *event;

    if (history->limits.events == 0 || history->limits.run_bytes < beside ||
        payload.len > history->limits.run_bytes - beside)
        return NULL;
    event = append_event(history, run, msg_id, at_ms, payload);
    if (event == NULL)
        return NULL;
    if (at_ms > run->last_ms)
        run->last_ms = at_ms;
    place_run(history, run);
    keep_limits(history, run);
    return event;
}

/* --- its state as bytes --- */

struct history_archive {
    struct rmp_history *history;
    struct rmp_run *run; /* whose events are carried */
};

static void archive_event(struct archive *archive, void *owner, void *item)
{
    struct history_archive *state = owner;
    const struct rmp_kept_event *event = item;
    uint64_t msg_id = event != NULL ? event->msg_id : 0, at_ms = event != NULL ? event->at_ms : 0;
    struct slice payload = slice_of(NULL, 0);

    if (event != NULL)
        payload = slice_of(event->payload, event->len);
    ARCHIVE_INTEGER(archive, msg_id);
    ARCHIVE_INTEGER(archive, at_ms);
    payload = archive_slice(archive, payload);
    if (archive_loads(archive))
        archive_made(archive,
                     append_event(state->history, state->run, msg_id, at_ms, payload) != NULL);
}

static void archive_run(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_run, file_len, file_count),
    };
    struct history_archive *state = owner;
    struct rmp_run *run = item;
    struct rmp_id id = run != NULL ? run->id : (struct rmp_id){0, 0};
    uint32_t user = run != NULL ? run->owner->user : 0;

    archive_bytes(archive, &id, sizeof id);
    ARCHIVE_INTEGER(archive, user);
    archive_expect(archive, rmp_history_find(state->history, id) == NULL, "two runs have one id");
    if (archive_loads(archive))
        run = add_run(state->history, id, user);
    if (!archive_made(archive, run != NULL))
        return;
    ARCHIVE_ENUM(archive, run->last_ms, INT64_MAX);
    if (!archive->saves)
        place_run(state->history, run);
    ARCHIVE_FIELDS(archive, run, fields);
    state->run = run;
    ARCHIVE_LIST(archive, &run->events, struct rmp_kept_event, link, archive_event, state);
    ARCHIVE_ENUM(archive, run->unsaved, run->count);
}

void rmp_history_archive(struct archive *archive, struct rmp_history *history)
{
    struct history_archive state = {.history = history};

    archive_mark(archive, "history");
    ARCHIVE_LIST(archive, &history->by_age, struct rmp_run, in_age, archive_run, &state);
}
