/* Bindings: each client of a sticky or exclusive pool stays with one worker. */
#ifndef STDIO_BUS_ROUTER_AFFINITY_H
#define STDIO_BUS_ROUTER_AFFINITY_H

#include "base/list.h"
#include "router/handshake.h"
#include "router/peer.h"
#include "router/subscriptions.h"

struct binding {
    struct peer *client, *worker;
    struct list_node in_client, in_worker; /* client->bindings, worker->bindings */
    uint64_t order;                        /* grows along worker->bindings */
    bool chosen;                           /* the current broadcast is for this client */

    /* MCP, where clients share a handshake: */
    bool waits;         /* for the answer to initialize */
    enum log_rank rank; /* of the level that the client has set */
    unsigned abilities; /* of the client's initialize (router/abilities.h); 0: it has sent none */
    struct subscriber subscriber;
};

/* The client's worker in this pool, or NULL. */
struct peer *affinity_worker(const struct peer *client, const struct group *pool);

/* The first binding of a worker: the only one, if it has one client at most. NULL: none. */
static inline struct binding *affinity_sole(const struct peer *worker)
{
    return list_empty(&worker->bindings)
               ? NULL
               : list_entry(worker->bindings.head.next, struct binding, in_worker);
}

/* The client's binding to this worker, or NULL. */
struct binding *affinity_binding(const struct peer *client, const struct peer *worker);

/* The client has set this level, or none. */
void affinity_set_rank(struct binding *binding, enum log_rank rank);

/* How many clients the worker has. */
size_t affinity_count(const struct peer *worker);

/* Binds a client to a worker of a pool in which it has none. STDIO_BUS_ERR if out of memory. */
int affinity_add(struct peer *client, struct peer *worker);

/* Ends the client's binding to this worker. With the last client of a process goes its handshake,
 * unless the process lives on, or is to be ready for the next client. */
void affinity_remove(struct peer *client, const struct peer *worker);

/* Ends all bindings of a client or a worker. */
void affinity_clear_client(struct peer *client);
void affinity_clear_worker(struct peer *worker);

#endif
