/* The session table (spec 3.4, 6.1): sessionId to its one worker and its one owner. */
#ifndef STDIO_BUS_ROUTER_SESSIONS_H
#define STDIO_BUS_ROUTER_SESSIONS_H

#include "base/hash_table.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "router/peer.h"
#include "router/placement.h"

struct session {
    struct peer *worker;         /* bound to it until it exits (spec 3.4.2) */
    struct peer *owner;          /* the client that named it first (spec 3.4.3) */
    bool load_failed;            /* a request to load it got an error, or came before it began */
    bool goes_on;                /* ACP 2: a turn may continue after the answer to its prompt */
    struct list_node in_worker;  /* worker->sessions */
    struct list_node in_owner;   /* owner->sessions */
    struct session_claim *claim; /* the placement's; NULL: none */
    uint64_t hash;
    size_t id_len;
    char id[];
};

struct sessions {
    struct hash_table table;
    struct siphash_key key;
    size_t max;
};

void sessions_init(struct sessions *sessions, const struct siphash_key *key, size_t max);

/* Forgets every session. */
void sessions_free(struct sessions *sessions);

/* The session with this id, or NULL. */
struct session *sessions_find(const struct sessions *sessions, struct slice id);

static inline bool sessions_full(const struct sessions *sessions)
{
    return sessions->table.count >= sessions->max;
}

/* Adds a session that is not there yet. NULL if out of memory. */
struct session *sessions_add(struct sessions *sessions, struct slice id, struct peer *worker,
                             struct peer *owner);

/* The id of a session that is told apart from others of its name by a peer, written into `key`: its
 * worker or its client. It is that of no other session, since its first byte stands in no text. */
#define SESSIONS_KEY_MAX (1 + sizeof(uint64_t) + STDIO_BUS_MAX_SESSION_ID_LEN)
struct slice sessions_scoped_key(char key[SESSIONS_KEY_MAX], const struct peer *peer,
                                 struct slice id);

/* The key of a client's session where clients share workers: the id, or, for a client with sessions
 * of its own, that id told apart by the client. */
static inline struct slice sessions_client_key(char key[SESSIONS_KEY_MAX],
                                               const struct peer *client, struct slice id)
{
    return client->own_sessions ? sessions_scoped_key(key, client, id) : id;
}

/* sessions_find and sessions_add with the scoped key. */
struct session *sessions_find_scoped(const struct sessions *sessions, const struct peer *peer,
                                     struct slice id);
struct session *sessions_add_scoped(struct sessions *sessions, const struct peer *peer,
                                    struct slice id, struct peer *worker, struct peer *owner);

/* sessions_find with the key of a client. No buffer here: this is in the road of each request. */
static inline struct session *sessions_find_client(const struct sessions *sessions,
                                                   const struct peer *client, struct slice id)
{
    return client->own_sessions ? sessions_find_scoped(sessions, client, id)
                                : sessions_find(sessions, id);
}

/* The id as the worker knows it. */
struct slice session_id(const struct session *session);

/* The session has another owner from now on. */
void session_give(struct session *session, struct peer *owner);

/* Invalidates one session. */
void session_remove(struct sessions *sessions, struct session *session);

#endif
