/* Bindings: each client of a sticky or exclusive pool stays with one worker. */
#ifndef STDIO_BUS_ROUTER_AFFINITY_H
#define STDIO_BUS_ROUTER_AFFINITY_H

#include "base/list.h"
#include "router/peer.h"

struct handshake;

struct binding {
    struct peer *client, *worker;
    struct list_node in_client, in_worker; /* client->bindings, worker->bindings */
    uint64_t order;                        /* grows along worker->bindings */
    struct handshake *handshake;           /* MCP: see router/handshake.h; NULL: none is kept */
};

/* The client's worker in this pool, or NULL. */
struct peer *affinity_worker(const struct peer *client, const struct group *pool);

/* The only binding of a worker that has one client at most, or NULL. */
static inline struct binding *affinity_sole(const struct peer *worker)
{
    return list_empty(&worker->bindings)
               ? NULL
               : list_entry(worker->bindings.head.next, struct binding, in_worker);
}

/* What is kept of that one's handshake, or NULL. */
static inline struct handshake *affinity_handshake(const struct peer *worker)
{
    const struct binding *binding = affinity_sole(worker);

    return binding != NULL ? binding->handshake : NULL;
}

/* How many clients the worker has. */
size_t affinity_count(const struct peer *worker);

/* Binds a client to a worker of a pool in which it has none. STDIO_BUS_ERR when memory is out. */
int affinity_add(struct peer *client, struct peer *worker);

/* Ends the client's binding to this worker. */
void affinity_remove(struct peer *client, const struct peer *worker);

/* Ends all bindings of a client or a worker. */
void affinity_clear_client(struct peer *client);
void affinity_clear_worker(struct peer *worker);

#endif
