#include "build_config.h"

#include "router/router_archive.h"

#include <stdlib.h>

#include "base/error.h"
#include "router/waiting.h"

#define NO_MEMORY "out of memory"

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

static struct peer *find(const struct router_archive *state, uint64_t number)
{
    return hash_table_find(&state->by_number, number, has_number, &number);
}

void router_archive_reference(struct router_archive *state, struct peer **peer)
{
    struct archive *archive = state->archive;
    uint64_t number = *peer != NULL ? (*peer)->number : 0;

    ARCHIVE_INTEGER(archive, number);
    if (archive->saves)
        return;
    *peer = number != 0 ? find(state, number) : NULL;
    archive_expect(archive, number == 0 || *peer != NULL,
                   "the state names a peer that is not there");
}

static void note_peer(struct router_archive *state, struct peer *peer)
{
    size_t larger = state->capacity * 2 + 64;
    struct peer **moved;

    if (state->count == state->capacity) {
        moved = realloc(state->peers, larger * sizeof(struct peer *));
        if (moved == NULL) {
            archive_fail(state->archive, NO_MEMORY);
            return;
        }
        state->peers = moved;
        state->capacity = larger;
    }
    state->peers[state->count++] = peer;
    archive_expect(state->archive, find(state, peer->number) == NULL, "two peers have one number");
    if (archive_ok(state->archive) &&
        hash_table_insert(&state->by_number, peer->number, peer) != STDIO_BUS_OK)
        archive_fail(state->archive, NO_MEMORY);
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

static void archive_counts(struct archive *archive, struct request_counts *counts)
{
    for (int i = 0; i < OUTCOMES; i++)
        ARCHIVE_INTEGER(archive, counts->outcomes[i]);
    for (int i = 0; i < OUTCOME_BUCKETS; i++)
        ARCHIVE_INTEGER(archive, counts->buckets[i]);
    ARCHIVE_INTEGER(archive, counts->total_ms);
}

static void archive_members(struct archive *archive, struct group *group)
{
    archive_mark(archive, "group");
    ARCHIVE_INTEGER(archive, group->turn);
    if (!archive->saves && group->turn >= group->count)
        group->turn = 0;
    ARCHIVE_ENUM(archive, group->support, ERA_REFUSED);
    archive_counts(archive, &group->asked);
    archive_counts(archive, &group->asking);
}

void router_archive_groups(struct router_archive *state)
{
    struct archive *archive = state->archive;
    struct router *router = state->router;
    struct list_node *node, *following;

    archive_mark(archive, "router");
    ARCHIVE_INTEGER(archive, router->last_number);
    ARCHIVE_INTEGER(archive, router->limited_requests);
    archive_members(archive, &router->all);
    archive_expect(archive,
                   archive_count(archive, list_count(&router->pools)) == list_count(&router->pools),
                   "there are other pools");
    list_each(&router->pools, node, following)
        archive_members(archive, list_entry(node, struct group, link));
}

/* --- peers --- */

static void archive_flags(struct archive *archive, struct peer *peer)
{
    archive_flag(archive, &peer->full);
    archive_flag(archive, &peer->input_ended);
    archive_flag(archive, &peer->is_brief);
    archive_flag(archive, &peer->confined);
    archive_flag(archive, &peer->drained);
    archive_flag(archive, &peer->stateless);
    archive_flag(archive, &peer->alone);
    archive_flag(archive, &peer->probed);
    archive_flag(archive, &peer->client_left);
    archive_flag(archive, &peer->numbers_reused);
    archive_flag(archive, &peer->greets_each);
    archive_flag(archive, &peer->hold_expired);
    archive_flag(archive, &peer->was_held);
}

/* The reason is for the client alone, which has not read it yet. */
static void archive_closing(struct archive *archive, struct peer *peer)
{
    bool is_closing = peer->closing != NULL;

    archive_flag(archive, &is_closing);
    if (!archive->saves && is_closing)
        peer->closing = "the process of this client has exited: connect again";
}

/* A held peer offers its message again, as if it had been released. */
static void archive_hold(struct router_archive *state, struct peer *peer)
{
    bool held = peer_held(peer);

    archive_flag(state->archive, &held);
    if (!state->archive->saves && held)
        waiting_release(state->router, peer);
}

void router_archive_peer(struct router_archive *state, struct peer *peer)
{
    struct archive *archive = state->archive;
    struct group *pool = peer->pool;

    archive_mark(archive, "peer");
    ARCHIVE_INTEGER(archive, peer->number);
    ARCHIVE_ENUM(archive, peer->availability, PEER_READY);
    archive_flags(archive, peer);
    archive_closing(archive, peer);
    router_archive_group(state, &peer->opened);
    router_archive_group(state, &pool);
    archive_expect(archive, (pool != NULL) == (peer->pool != NULL), "a worker has lost its pool");
    peer->pool = pool;
    ARCHIVE_INTEGER(archive, peer->given_up);
    ARCHIVE_INTEGER(archive, peer->broadcast);
    ARCHIVE_INTEGER(archive, peer->last_number);
    ARCHIVE_INTEGER(archive, peer->hold_until_ms);
    kept_message_archive(&peer->greeting, archive);
    archive_text(archive, peer->program, sizeof peer->program);
    archive_hold(state, peer);
    note_peer(state, peer);
}

/* --- sessions and tasks, by worker --- */

static void archive_session(struct router_archive *state, struct session *session,
                            struct peer *worker)
{
    struct archive *archive = state->archive;
    struct peer *owner = session != NULL ? session->owner : NULL;
    struct slice id = slice_of(NULL, 0);
    bool load_failed = session != NULL && session->load_failed;
    bool goes_on = session != NULL && session->goes_on;

    if (session != NULL)
        id = slice_of(session->id, session->id_len);
    id = archive_slice(archive, id);
    router_archive_reference(state, &owner);
    archive_flag(archive, &load_failed);
    archive_flag(archive, &goes_on);
    if (archive->saves || !archive_ok(archive))
        return;
    session = owner != NULL ? sessions_add(&state->router->sessions, id, worker, owner) : NULL;
    if (session == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    session->load_failed = load_failed;
    session->goes_on = goes_on;
}

static void archive_sessions(struct router_archive *state, struct peer *worker)
{
    struct list_node *node = worker->sessions.head.next;
    size_t count = archive_count(state->archive, list_count(&worker->sessions));

    for (; count > 0 && archive_ok(state->archive); count--)
        archive_session(state, ARCHIVE_NEXT(state->archive, node, struct session, in_worker),
                        worker);
}

void router_archive_tables(struct router_archive *state)
{
    archive_mark(state->archive, "tables");
    for (size_t i = 0; i < state->count && archive_ok(state->archive); i++) {
        if (state->peers[i]->pool != NULL)
            archive_sessions(state, state->peers[i]);
    }
    router_archive_requests(state);
    router_archive_handshakes(state);
    if (state->archive->saves)
        return;
    state->router->demand = state->router->answered_last = state->router->abandoned = true;
}
