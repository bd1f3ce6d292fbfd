#include "build_config.h"

#include "router/from_memory.h"
#include "router/router_archive.h"

#include <stdlib.h>

#include "base/error.h"
#include "router/abilities.h"
#include "router/affinity.h"
#include "router/deadlines.h"
#include "router/fresh.h"
#include "router/shares.h"
#include "router/waiting.h"

void router_archive_begin(struct router_archive *state, struct archive *archive,
                          struct router *router)
{
    *state = (struct router_archive){.archive = archive, .router = router};
}

void router_archive_end(struct router_archive *state)
{
    free(state->peers);
    hash_table_free(&state->by_number);
}

/* --- references --- */

static bool has_number(const void *item, const void *number)
{
    return ((const struct peer *)item)->number == *(const uint64_t *)number;
}

static struct peer *find_peer(const struct router_archive *state, uint64_t number)
{
    return hash_table_find(&state->by_number, number, has_number, &number);
}

/* A reference to a peer; NULL is one, too. */
static struct peer *archive_peer(struct router_archive *state, struct peer *peer)
{
    struct archive *archive = state->archive;
    uint64_t number = archive_number(archive, peer != NULL ? peer->number : 0, UINT64_MAX);

    if (archive->saves)
        return peer;
    peer = number != 0 ? find_peer(state, number) : NULL;
    archive_expect(archive, number == 0 || peer != NULL,
                   "the state names a peer that is not there");
    return peer;
}

static void note_peer(struct router_archive *state, struct peer *peer)
{
    size_t larger = state->capacity * 2 + 64;
    struct peer **moved;

    if (state->count == state->capacity) {
        moved = realloc(state->peers, larger * sizeof(struct peer *));
        archive_made(state->archive, moved != NULL);
        if (moved == NULL)
            return;
        state->peers = moved;
        state->capacity = larger;
    }
    state->peers[state->count++] = peer;
    archive_expect(state->archive, find_peer(state, peer->number) == NULL,
                   "two peers have one number");
    if (archive_ok(state->archive))
        archive_done(state->archive, hash_table_insert(&state->by_number, peer->number, peer));
}

/* --- groups --- */

void router_archive_group(struct router_archive *state, struct group **group)
{
    struct archive *archive = state->archive;
    struct list_node *node, *following;
    bool stateless = *group != NULL && (*group)->stateless;
    struct slice id = archive_slice(archive, *group != NULL ? (*group)->id : slice_of(NULL, 0));

    archive_flag(archive, &stateless);
    if (archive->saves)
        return;
    *group = NULL;
    if (id.data == NULL)
        return;
    list_each(&state->router->pools, node, following) {
        struct group *pool = list_entry(node, struct group, link);

        if (pool->stateless == stateless && slice_equal(pool->id, id))
            *group = pool;
    }
    archive_expect(archive, *group != NULL, "the state names a pool that is not there");
}

/* The configuration may have changed between both. */
static void archive_remembered(struct archive *archive, struct group *group)
{
    struct remembered unwanted, *remembered = group->remembered;

    if (!archive_present(archive, remembered != NULL))
        return;
    remembered_init(&unwanted);
    remembered_archive(remembered != NULL ? remembered : &unwanted, archive);
    remembered_clear(&unwanted);
}

static void archive_group(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct group, turn, asked, asking),
        ARCHIVE_CHOICE(struct group, support, ERA_REFUSED),
    };
    struct group *group = item;

    (void)owner;
    archive_mark(archive, "group");
    ARCHIVE_FIELDS(archive, group, fields);
    archive_remembered(archive, group);
    fresh_archive(group->fresh, archive);
    if (!archive->saves && group->turn >= group->count)
        group->turn = 0;
}

void router_archive_groups(struct router_archive *state)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct router, last_number, limited_requests),
    };
    struct archive *archive = state->archive;

    archive_mark(archive, "router");
    ARCHIVE_FIELDS(archive, state->router, fields);
    archive_group(archive, NULL, &state->router->all);
    ARCHIVE_ITEMS(archive, &state->router->pools, struct group, link, archive_group, NULL,
                  "there are other pools");
}

/* --- peers --- */

/* The reason is for the client alone, which has not read it yet. A held peer offers its message
 * again, as if it had been released. */
static void archive_ends(struct router_archive *state, struct peer *peer)
{
    bool is_closing = archive_present(state->archive, peer->closing != NULL);
    bool held = archive_present(state->archive, peer_held(peer));

    if (!archive_loads(state->archive))
        return;
    if (is_closing)
        peer->closing = "the process of this client has exited: connect again";
    if (held)
        waiting_release(state->router, peer);
}

/* The process that it is to get has been taken from another client perhaps. */
static void archive_claim(struct router_archive *state, struct peer *peer)
{
    struct group *claim = peer->claim;

    router_archive_group(state, &claim);
    archive_expect(state->archive, claim == NULL || peer->pool == NULL,
                   "a worker claims another one");
    if (archive_loads(state->archive) && claim != NULL)
        shares_add_claim(claim, peer);
}

void router_archive_peer(struct router_archive *state, struct peer *peer)
{
    static const struct archive_field fields[] = {
        ARCHIVE_CHOICE(struct peer, availability, PEER_READY),
        ARCHIVE_CHOICE(struct peer, rest, PEER_CALLED),
        ARCHIVE_FLAGS(struct peer, full, input_ended, is_brief, confined, drained, stateless, alone,
                      probed, is_link, client_left, numbers_reused, greets_each, hold_expired,
                      was_held),
        ARCHIVE_INTEGERS(struct peer, number, given_up, broadcast, last_number, hold_until_ms),
        ARCHIVE_TEXTS(struct peer, program),
    };
    struct archive *archive = state->archive;
    struct group *pool = peer->pool;

    archive_mark(archive, "peer");
    ARCHIVE_FIELDS(archive, peer, fields);
    router_archive_group(state, &peer->opened);
    archive_claim(state, peer);
    router_archive_group(state, &pool);
    archive_expect(archive, (pool != NULL) == (peer->pool != NULL), "a worker has lost its pool");
    peer->pool = pool;
    kept_message_archive(&peer->greeting, archive);
    archive_ends(state, peer);
    note_peer(state, peer);
}

/* --- sessions --- */

static void archive_session(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct session, load_failed, goes_on),
    };
    struct router_archive *state = owner;
    struct session *session = item;
    struct peer *client = archive_peer(state, session != NULL ? session->owner : NULL);
    struct slice id = archive_slice(archive, session != NULL
                                                 ? slice_of(session->id, session->id_len)
                                                 : slice_of(NULL, 0));

    if (archive_loads(archive) && client != NULL)
        session = sessions_add(&state->router->sessions, id, state->worker, client);
    if (archive_made(archive, session))
        ARCHIVE_FIELDS(archive, session, fields);
}

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

static const struct archive_field extras_fields[] = {
    ARCHIVE_SLICES(struct extras_record, names),
    ARCHIVE_CHOICE(struct extras_record, kind, EXTRAS_OWN_LIST),
    ARCHIVE_FLAGS(struct extras_record, names_session, by_asker, by_answerer, timed, loads, logs),
    ARCHIVE_INTEGERS(struct extras_record, deadline_ms, logs_for),
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

    record->is_there = archive_present(archive, record->is_there);
    for (int i = 0; record->is_there && i < EXTRAS_TOKENS; i++) {
        struct extras_token *token = &record->tokens[i];

        token->raw = archive_slice(archive, token->raw);
        if (token->raw.data == NULL)
            continue;
        router_archive_id(archive, &token->value);
        if (archive_ok(archive))
            token->hash = pending_hash(&state->router->from_clients, token->value);
    }
    if (record->is_there)
        ARCHIVE_FIELDS(archive, record, extras_fields);
}

/* Gives the request its extras. False: out of memory. */
static bool add_extras(struct router *router, struct request *request,
                       const struct extras_record *record)
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
        list_append(deadlines_of(router, answerer->pool), &extras->timed);
    if (record->loads)
        list_append(&answerer->loading, &extras->loading);
    if (record->logs)
        list_append(&answerer->logging, &extras->logging);
    return true;
}

/* --- requests --- */

struct request_record {
    struct peer *asker, *answerer; /* asker NULL: it is abandoned, or the daemon's own */
    struct message_id id;
    struct slice raw;
    uint32_t number;
    int64_t asked_ms, free_at_ms;
    struct extras_record extras;
};

static const struct archive_field request_fields[] = {
    ARCHIVE_SLICES(struct request_record, raw),
    ARCHIVE_INTEGERS(struct request_record, number, asked_ms, free_at_ms),
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
    if (request == NULL ||
        (record->extras.is_there && !add_extras(state->router, request, &record->extras)))
        return false;
    request->asked_ms = record->asked_ms;
    if (record->asker == NULL && record->extras.is_there && record->extras.kind > EXTRAS_OWN)
        request_await(request);
    else if (record->asker == NULL)
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

static void archive_request(struct archive *archive, void *owner, void *item)
{
    struct router_archive *state = owner;
    struct request_record record = {.asker = NULL};

    if (item != NULL)
        record = read_request(item);
    record.asker = archive_peer(state, record.asker);
    record.answerer = archive_peer(state, record.answerer);
    router_archive_id(archive, &record.id);
    ARCHIVE_FIELDS(archive, &record, request_fields);
    archive_extras(state, &record.extras);
    archive_expect(archive,
                   record.answerer != NULL &&
                       (!record.extras.timed ||
                        (record.asker != NULL && record.answerer->pool != NULL)),
                   "a request has no answerer");
    if (archive_loads(archive))
        archive_made(archive, add_request(state, state->pending, &record));
}

/* The requests of the table that a peer has to answer and that are not abandoned. The ids that are
 * kept free for held peers are not in the archive: these peers look again. */
static void save_answerer(struct router_archive *state, const struct pending *pending,
                          struct peer *peer)
{
    struct list_node *node, *following;

    list_each(&peer->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->table == pending && request->state == REQUEST_ACTIVE)
            archive_request(state->archive, state, request);
    }
}

static void archive_pending(struct router_archive *state, struct pending *pending)
{
    struct archive *archive = state->archive;
    size_t count = archive_count(archive, pending->active_count + pending->abandoned_count +
                                              list_count(&pending->awaited));
    struct list_node *node, *following;

    state->pending = pending;
    archive_load(archive, count, archive_request, state);
    if (!archive->saves)
        return;
    for (size_t i = 0; i < state->count; i++)
        save_answerer(state, pending, state->peers[i]);
    list_each(&pending->abandoned, node, following)
        archive_request(archive, state, list_entry(node, struct request, in_asker));
    list_each(&pending->awaited, node, following)
        archive_request(archive, state, list_entry(node, struct request, in_asker));
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
    archive_made(archive, all != NULL);
    if (all == NULL)
        return;
    while ((node = list_take_first(timed)) != NULL)
        all[i++] = list_entry(node, struct request_extras, timed);
    qsort(all, count, sizeof(struct request_extras *), compare_deadlines);
    for (i = 0; i < count; i++)
        list_append(timed, &all[i]->timed);
    free(all);
}

/* --- tasks --- */

static void archive_task(struct archive *archive, void *owner, void *item)
{
    struct router_archive *state = owner;
    struct tasks *tasks = &state->router->tasks;
    struct task *task = item;
    struct extras_record extras = record_of(task != NULL ? task->extras : NULL);
    struct peer *client = archive_peer(state, task != NULL ? task->owner : NULL);
    struct slice id = archive_slice(archive, task != NULL ? slice_of(task->id, task->id_len)
                                                          : slice_of(NULL, 0));

    archive_extras(state, &extras);
    archive_expect(archive, client != NULL, "a task has no owner");
    if (!archive_loads(archive))
        return;
    task = tasks_add(tasks, id, state->worker, client);
    if (archive_made(archive, task) && extras.is_there)
        archive_done(archive, task_keep_tokens(tasks, task, extras.tokens));
}

/* --- handshakes --- */

static void archive_begun(struct archive *archive, struct handshake *handshake)
{
    struct slice begun = archive_slice(archive, slice_of(handshake->begun, handshake->begun_len));

    archive_expect(archive, begun.len <= VERSION_NAME_MAX, "a version is too long");
    if (!archive_loads(archive) || begun.len == 0)
        return;
    memcpy(handshake->begun, begun.data, begun.len);
    handshake->begun_len = begun.len;
}

static void archive_handshake(struct router_archive *state, struct peer *worker)
{
    static const struct archive_field fields[] = {
        ARCHIVE_TEXTS(struct handshake, answer.version),
        ARCHIVE_FLAGS(struct handshake, answer.has[HANDSHAKE_TOOLS], answer.has[HANDSHAKE_PROMPTS],
                      answer.has[HANDSHAKE_RESOURCES], answer.announces[HANDSHAKE_TOOLS],
                      answer.announces[HANDSHAKE_PROMPTS], answer.announces[HANDSHAKE_RESOURCES],
                      answered, lost, replays, watches, lacks_roots),
        ARCHIVE_CHOICE(struct handshake, awaited, HANDSHAKE_PARTS - 1),
        ARCHIVE_CHOICE(struct handshake, rank, RANK_EMERGENCY),
        ARCHIVE_INTEGERS(struct handshake, confirmer, teller, remembering.told),
    };
    struct archive *archive = state->archive;
    struct handshake *handshake = worker->handshake;
    bool is_there = archive_present(archive, handshake != NULL);
    bool is_shared = archive_present(archive, handshake != NULL && handshake->shared != NULL);

    if (!is_there || !archive_ok(archive))
        return;
    if (!archive->saves)
        handshake = handshake_of(worker, is_shared ? &state->router->handshakes : NULL);
    if (!archive_made(archive, handshake))
        return;
    for (int i = 0; i < HANDSHAKE_PARTS; i++)
        kept_message_archive(&handshake->parts[i], archive);
    ARCHIVE_FIELDS(archive, handshake, fields);
    archive_begun(archive, handshake);
    versions_archive(&handshake->versions, archive);
    if (archive->saves)
        return;
    if (peer_serves(worker) && handshake->confirmer != 0)
        from_memory_compare(handshake); /* what was asked for is asked for again */
    handshake_note_errand(handshake);
}

/* --- subscriptions --- */

/* Those that the client has. */
static size_t count_held(const struct subscriber *subscriber)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = subscriber->held.head.next; node != &subscriber->held.head; node = node->next)
        count += list_entry(node, struct holding, in_subscriber)->request == NULL;
    return count;
}

static void load_holding(struct archive *archive, void *owner, void *item)
{
    struct binding *binding = owner;
    struct process_subscriptions *process = &binding->worker->handshake->subscriptions;
    struct slice uri = archive_slice(archive, slice_of(NULL, 0));
    const struct subscription *known = subscriptions_find(process, uri);

    (void)item;
    archive_expect(archive,
                   uri.len <= SUBSCRIPTION_URI_MAX &&
                       (known == NULL || subscriptions_held(&binding->subscriber, known) == NULL),
                   "a subscription is there twice");
    if (archive_ok(archive))
        archive_done(archive, subscriptions_begin(process, &binding->subscriber, uri));
}

/* A subscription that is asked for is saved with the request. */
static void archive_holdings(struct archive *archive, struct binding *binding)
{
    const struct list *held = &binding->subscriber.held;
    const struct handshake *handshake = binding->worker->handshake;
    size_t count = archive_count(archive, count_held(&binding->subscriber));
    struct list_node *node, *following;

    archive_expect(archive, count == 0 || (handshake != NULL && handshake->shared != NULL),
                   "a subscription has no server");
    archive_load(archive, count, load_holding, binding);
    if (!archive->saves)
        return;
    list_each(held, node, following) {
        const struct holding *holding = list_entry(node, struct holding, in_subscriber);

        if (holding->request == NULL)
            (void)archive_slice(archive, subscription_uri(holding->subscription));
    }
}

/* The requests in flight that the handshake refers to were loaded before it. */
static int link_request(struct handshake *handshake, struct request *request)
{
    struct request_extras *extras = request->extras;
    struct binding *binding;

    if (extras == NULL)
        return STDIO_BUS_OK;
    if (extras->kind == EXTRAS_OWN)
        list_append(&handshake->own, &extras->shared);
    if (request->state != REQUEST_ACTIVE)
        return STDIO_BUS_OK;
    if (extras->kind == EXTRAS_SETS_LEVEL)
        list_append(&handshake->levels, &extras->shared);
    binding = affinity_binding(request->asker, handshake->worker);
    if (extras->kind != EXTRAS_WATCHES || binding == NULL)
        return STDIO_BUS_OK;
    return subscriptions_ask(&handshake->subscriptions, &binding->subscriber, extras->names,
                             &extras->watched);
}

static void link_requests(struct archive *archive, struct peer *worker)
{
    struct list_node *node, *following;

    if (archive->saves || worker->handshake->shared == NULL)
        return;
    list_each(&worker->answering, node, following) {
        if (archive_ok(archive))
            archive_done(archive, link_request(worker->handshake,
                                               list_entry(node, struct request, in_answerer)));
    }
}

/* --- bindings --- */

static void archive_binding(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct binding, order, abilities),
        ARCHIVE_FLAGS(struct binding, chosen, waits),
    };
    struct router_archive *state = owner;
    struct binding *binding = item;
    struct peer *client = archive_peer(state, binding != NULL ? binding->client : NULL);
    enum log_rank rank;

    archive_expect(archive, client != NULL, "a binding has no client");
    if (archive_loads(archive) && affinity_add(client, state->worker) == STDIO_BUS_OK)
        binding = affinity_binding(client, state->worker);
    if (!archive_made(archive, binding))
        return;
    ARCHIVE_FIELDS(archive, binding, fields);
    rank = binding->rank;
    ARCHIVE_ENUM(archive, rank, RANK_EMERGENCY);
    affinity_set_rank(binding, rank);
    archive_expect(archive, binding->abilities < 1u << ABILITIES, "an ability is unknown");
    archive_holdings(archive, binding);
}

/* --- all of it, by worker --- */

static void archive_sessions(struct router_archive *state)
{
    ARCHIVE_LIST(state->archive, &state->worker->sessions, struct session, in_worker,
                 archive_session, state);
}

static void archive_tasks(struct router_archive *state)
{
    ARCHIVE_LIST(state->archive, &state->worker->tasks, struct task, in_worker, archive_task,
                 state);
}

static void archive_bindings(struct router_archive *state)
{
    struct peer *worker = state->worker;

    archive_handshake(state, worker);
    ARCHIVE_LIST(state->archive, &worker->bindings, struct binding, in_worker, archive_binding,
                 state);
    if (worker->handshake == NULL)
        return;
    subscriptions_archive(&worker->handshake->subscriptions, state->archive);
    link_requests(state->archive, worker);
}

static void each_worker(struct router_archive *state, const char *mark,
                        void (*fn)(struct router_archive *state))
{
    for (size_t i = 0; i < state->count && archive_ok(state->archive); i++) {
        state->worker = state->peers[i];
        if (state->worker->pool == NULL)
            continue;
        archive_mark(state->archive, mark);
        fn(state);
    }
}

void router_archive_tables(struct router_archive *state)
{
    struct router *router = state->router;
    struct list_node *node, *following;

    each_worker(state, "sessions", archive_sessions);
    archive_mark(state->archive, "requests");
    archive_pending(state, &router->from_clients);
    archive_mark(state->archive, "asked");
    archive_pending(state, &router->from_workers);
    each_worker(state, "tasks", archive_tasks);
    if (state->archive->saves) {
        each_worker(state, "binding", archive_bindings);
        return;
    }
    list_each(&router->timing, node, following)
        sort_timed(state->archive, &list_entry(node, struct group, timing)->timed);
    each_worker(state, "binding", archive_bindings);
    router->demand = router->answered_last = router->abandoned = true;
}
