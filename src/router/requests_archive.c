#include "build_config.h"

#include <stdlib.h>

#include "base/error.h"
#include "router/router_archive.h"

#define NO_MEMORY "out of memory"

/* --- ids and tokens --- */

void router_archive_id(struct archive *archive, struct message_id *id)
{
    ARCHIVE_ENUM(archive, id->type, ID_NUMBER);
    id->text = archive_slice(archive, id->text);
    archive_expect(archive, id->type != ID_NONE && id->text.data != NULL, "an id has no text");
}

/* What the extras of a request or a task know, read or to be written. */
struct extras_record {
    struct extras_token tokens[EXTRAS_TOKENS];
    struct slice names;
    enum extras_kind kind;
    bool is_there, names_session, by_asker, by_answerer, timed, loads, logs;
    int64_t deadline_ms;
    uint64_t logs_for;
};

static struct extras_record record_of(const struct request_extras *extras)
{
    struct extras_record record = {.is_there = extras != NULL};

    if (extras == NULL)
        return record;
    for (int i = 0; i < EXTRAS_TOKENS; i++) {
        record.tokens[i] = extras->tokens[i];
        record.by_asker |= extras->links[i][EXTRAS_ASKER].peer != NULL;
        record.by_answerer |= extras->links[i][EXTRAS_ANSWERER].peer != NULL;
    }
    record.names = extras->names;
    record.kind = extras->kind;
    record.names_session = extras->names_session;
    record.timed = list_linked(&extras->timed);
    record.loads = list_linked(&extras->loading);
    record.logs = list_linked(&extras->logging);
    record.deadline_ms = extras->deadline_ms;
    record.logs_for = extras->logs_for;
    return record;
}

static void archive_extras(struct router_archive *state, struct extras_record *record)
{
    struct archive *archive = state->archive;

    archive_flag(archive, &record->is_there);
    if (!record->is_there || !archive_ok(archive))
        return;
    for (int i = 0; i < EXTRAS_TOKENS; i++) {
        struct extras_token *token = &record->tokens[i];

        token->raw = archive_slice(archive, token->raw);
        if (token->raw.data == NULL)
            continue;
        router_archive_id(archive, &token->value);
        if (archive_ok(archive))
            token->hash = pending_hash(&state->router->from_clients, token->value);
    }
    record->names = archive_slice(archive, record->names);
    ARCHIVE_ENUM(archive, record->kind, EXTRAS_OWN_INITIALIZE);
    archive_flag(archive, &record->names_session);
    archive_flag(archive, &record->by_asker);
    archive_flag(archive, &record->by_answerer);
    archive_flag(archive, &record->timed);
    archive_flag(archive, &record->loads);
    archive_flag(archive, &record->logs);
    ARCHIVE_INTEGER(archive, record->deadline_ms);
    ARCHIVE_INTEGER(archive, record->logs_for);
}

/* Gives the request its extras. False: out of memory. */
static bool add_extras(struct request *request, const struct extras_record *record)
{
    struct pending *pending = request->table;
    struct peer *answerer = request->answerer;
    struct request_extras *extras = extras_new(&pending->free_extras, record->tokens,
                                               record->names);

    if (extras == NULL)
        return false;
    if (extras_link(extras, &pending->by_token, record->by_asker ? request->asker : NULL,
                    record->by_answerer ? answerer : NULL) != STDIO_BUS_OK) {
        extras_recycle(&pending->free_extras, extras);
        return false;
    }
    extras->kind = record->kind;
    extras->names_session = record->names_session;
    extras->deadline_ms = record->deadline_ms;
    extras->logs_for = record->logs_for;
    extras->request = request;
    request->extras = extras;
    if (record->timed)
        list_append(&answerer->pool->timed, &extras->timed);
    if (record->loads)
        list_append(&answerer->loading, &extras->loading);
    if (record->logs)
        list_append(&answerer->logging, &extras->logging);
    return true;
}

/* --- requests --- */

struct request_record {
    struct peer *asker, *answerer; /* asker NULL: it is abandoned */
    struct message_id id;
    struct slice raw;
    uint32_t number;
    int64_t asked_ms, free_at_ms;
    struct extras_record extras;
};

/* The answerer knows the request by a number of the daemon's, or by the asker's id. */
static bool add_request(struct router_archive *state, struct pending *pending,
                        const struct request_record *record)
{
    char text[PENDING_DIGITS];
    struct new_request new_request = {
        .id = record->id,
        .id_hash = pending_hash(pending, record->id),
        .raw = record->raw.data != NULL ? record->raw : record->id.text,
        .number = record->number,
    };
    struct peer *asker = record->asker != NULL ? record->asker : &state->router->own;
    struct request *request;

    if (record->number != 0)
        new_request.number_id = pending_numbered(pending, text, record->number,
                                                 &new_request.number_hash);
    request = pending_add(pending, asker, record->answerer, &new_request);
    if (request == NULL || (record->extras.is_there && !add_extras(request, &record->extras)))
        return false;
    request->asked_ms = record->asked_ms;
    if (record->asker == NULL)
        request_abandon(request);
    request->free_at_ms = record->free_at_ms;
    return true;
}

static struct request_record read_request(const struct request *request)
{
    return (struct request_record){
        .asker = request->state == REQUEST_ACTIVE ? request->asker : NULL,
        .answerer = request->answerer,
        .id = request->asker_id,
        .raw = request->raw_id,
        .number = request->rewritten ? request->number : 0,
        .asked_ms = request->asked_ms,
        .free_at_ms = request->free_at_ms,
        .extras = record_of(request->extras),
    };
}

/* `request`: where it saves. */
static void archive_request(struct router_archive *state, struct pending *pending,
                            const struct request *request)
{
    struct archive *archive = state->archive;
    struct request_record record = {.asker = NULL};

    if (request != NULL)
        record = read_request(request);
    router_archive_reference(state, &record.asker);
    router_archive_reference(state, &record.answerer);
    router_archive_id(archive, &record.id);
    record.raw = archive_slice(archive, record.raw);
    ARCHIVE_INTEGER(archive, record.number);
    ARCHIVE_INTEGER(archive, record.asked_ms);
    ARCHIVE_INTEGER(archive, record.free_at_ms);
    archive_extras(state, &record.extras);
    archive_expect(archive,
                   record.answerer != NULL &&
                       (!record.extras.timed ||
                        (record.asker != NULL && record.answerer->pool != NULL)),
                   "a request has no answerer");
    if (!archive->saves && archive_ok(archive) && !add_request(state, pending, &record))
        archive_fail(archive, NO_MEMORY);
}

/* The requests of the table that a peer has to answer and that are not abandoned. The ids that are
 * kept free for held peers are not in the archive: these peers look again. */
static void save_answerer(struct router_archive *state, struct pending *pending, struct peer *peer)
{
    struct list_node *node, *following;

    list_each(&peer->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->table == pending && request->state == REQUEST_ACTIVE)
            archive_request(state, pending, request);
    }
}

static void archive_pending(struct router_archive *state, struct pending *pending)
{
    struct archive *archive = state->archive;
    size_t count = archive_count(archive, pending->active_count + pending->abandoned_count);
    struct list_node *node, *following;

    if (!archive->saves) {
        for (; count > 0 && archive_ok(archive); count--)
            archive_request(state, pending, NULL);
        return;
    }
    for (size_t i = 0; i < state->count; i++)
        save_answerer(state, pending, state->peers[i]);
    list_each(&pending->abandoned, node, following)
        archive_request(state, pending, list_entry(node, struct request, in_asker));
}

/* --- deadlines, the earliest first --- */

static int compare_deadlines(const void *a, const void *b)
{
    const struct request_extras *one = *(struct request_extras *const *)a;
    const struct request_extras *other = *(struct request_extras *const *)b;

    return (one->deadline_ms > other->deadline_ms) - (one->deadline_ms < other->deadline_ms);
}

static void sort_timed(struct archive *archive, struct list *timed)
{
    size_t count = list_count(timed), i = 0;
    struct request_extras **all;
    struct list_node *node;

    if (count < 2)
        return;
    all = malloc(count * sizeof(struct request_extras *));
    if (all == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    while ((node = list_take_first(timed)) != NULL)
        all[i++] = list_entry(node, struct request_extras, timed);
    qsort(all, count, sizeof(struct request_extras *), compare_deadlines);
    for (i = 0; i < count; i++)
        list_append(timed, &all[i]->timed);
    free(all);
}

/* --- tasks --- */

static void archive_task(struct router_archive *state, struct task *task, struct peer *worker)
{
    struct archive *archive = state->archive;
    struct tasks *tasks = &state->router->tasks;
    struct extras_record extras = record_of(task != NULL ? task->extras : NULL);
    struct peer *owner = task != NULL ? task->owner : NULL;
    struct slice id = archive_slice(archive, task != NULL ? slice_of(task->id, task->id_len)
                                                          : slice_of(NULL, 0));

    router_archive_reference(state, &owner);
    archive_extras(state, &extras);
    archive_expect(archive, owner != NULL, "a task has no owner");
    if (archive->saves || !archive_ok(archive))
        return;
    task = tasks_add(tasks, id, worker, owner);
    if (task == NULL ||
        (extras.is_there && task_keep_tokens(tasks, task, extras.tokens) != STDIO_BUS_OK))
        archive_fail(archive, NO_MEMORY);
}

static void archive_tasks(struct router_archive *state, struct peer *worker)
{
    struct list_node *node = worker->tasks.head.next;
    size_t count = archive_count(state->archive, list_count(&worker->tasks));

    for (; count > 0 && archive_ok(state->archive); count--)
        archive_task(state, ARCHIVE_NEXT(state->archive, node, struct task, in_worker), worker);
}

void router_archive_requests(struct router_archive *state)
{
    struct router *router = state->router;
    struct list_node *node, *following;

    archive_mark(state->archive, "requests");
    archive_pending(state, &router->from_clients);
    archive_mark(state->archive, "asked");
    archive_pending(state, &router->from_workers);
    archive_mark(state->archive, "tasks");
    for (size_t i = 0; i < state->count && archive_ok(state->archive); i++) {
        if (state->peers[i]->pool != NULL)
            archive_tasks(state, state->peers[i]);
    }
    if (state->archive->saves)
        return;
    list_each(&router->pools, node, following)
        sort_timed(state->archive, &list_entry(node, struct group, link)->timed);
}
