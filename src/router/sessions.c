#include "build_config.h"

#include "router/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "router/group.h"

/* What a key begins with: a byte that stands in no text, and the peer's number. */
#define SCOPED '\xff'
#define SCOPE_LEN (1 + sizeof(uint64_t))

void sessions_init(struct sessions *sessions, const struct siphash_key *key, size_t max)
{
    memset(sessions, 0, sizeof *sessions);
    sessions->key = *key;
    sessions->max = max;
}

void sessions_free(struct sessions *sessions)
{
    size_t i;

    for (i = 0; i < sessions->table.capacity; i++)
        free(sessions->table.slots[i].item);
    hash_table_free(&sessions->table);
}

static bool session_equal(const void *item, const void *key)
{
    const struct session *session = item;
    const struct slice *id = key;

    return slice_equal(slice_of(session->id, session->id_len), *id);
}

struct session *sessions_find(const struct sessions *sessions, struct slice id)
{
    return hash_table_find(&sessions->table, siphash(&sessions->key, id.data, id.len),
                           session_equal, &id);
}

static void count_owned(struct peer *owner, int change)
{
    owner->held[PEER_SESSIONS] += (size_t)change;
    if (owner->origin != NULL)
        owner->origin->held[PEER_SESSIONS] += (size_t)change;
}

struct session *sessions_add(struct sessions *sessions, struct slice id, struct peer *worker,
                             struct peer *owner)
{
    struct session *session = calloc(1, sizeof *session + id.len);

    if (session == NULL)
        return NULL;
    if (id.len > 0)
        memcpy(session->id, id.data, id.len);
    session->id_len = id.len;
    session->hash = siphash(&sessions->key, id.data, id.len);
    if (hash_table_insert(&sessions->table, session->hash, session) != STDIO_BUS_OK) {
        free(session);
        return NULL;
    }
    session->worker = worker;
    session->owner = owner;
    list_append(&worker->sessions, &session->in_worker);
    list_append(&owner->sessions, &session->in_owner);
    count_owned(owner, 1);
    if (worker->pool != NULL && worker->pool->placement != NULL)
        worker->pool->placement->began(worker->pool->placement, session);
    return session;
}

struct slice sessions_scoped_key(char key[SESSIONS_KEY_MAX], const struct peer *peer,
                                 struct slice id)
{
    key[0] = SCOPED;
    memcpy(key + 1, &peer->number, sizeof peer->number);
    if (id.len > 0)
        memcpy(key + SCOPE_LEN, id.data, id.len);
    return slice_of(key, SCOPE_LEN + id.len);
}

struct session *sessions_find_scoped(const struct sessions *sessions, const struct peer *peer,
                                     struct slice id)
{
    char key[SESSIONS_KEY_MAX];

    return sessions_find(sessions, sessions_scoped_key(key, peer, id));
}

struct session *sessions_add_scoped(struct sessions *sessions, const struct peer *peer,
                                    struct slice id, struct peer *worker, struct peer *owner)
{
    char key[SESSIONS_KEY_MAX];

    return sessions_add(sessions, sessions_scoped_key(key, peer, id), worker, owner);
}

struct slice session_id(const struct session *session)
{
    size_t skipped = session->id_len > 0 && session->id[0] == SCOPED ? SCOPE_LEN : 0;

    return slice_of(session->id + skipped, session->id_len - skipped);
}

void session_give(struct session *session, struct peer *owner)
{
    count_owned(session->owner, -1);
    count_owned(owner, 1);
    list_remove(&session->in_owner);
    session->owner = owner;
    list_append(&owner->sessions, &session->in_owner);
}

void session_remove(struct sessions *sessions, struct session *session)
{
    const struct group *pool = session->worker->pool;

    if (session->claim != NULL)
        session->claim->ended(session->claim);
    else if (pool != NULL && pool->placement != NULL)
        pool->placement->left(pool->placement, session);
    hash_table_remove(&sessions->table, session->hash, session);
    list_remove(&session->in_worker);
    list_remove(&session->in_owner);
    count_owned(session->owner, -1);
    free(session);
}
