/* Who stays with whom: clients of sticky and exclusive pools and their workers. */
#ifndef STDIO_BUS_ROUTER_BINDINGS_H
#define STDIO_BUS_ROUTER_BINDINGS_H

#include "base/list.h"
#include "router/peer.h"

struct binding {
    struct peer *client, *worker;
    struct list_node in_client, in_worker; /* client->bindings, worker->bindings */
    uint64_t order; /* grows along worker->bindings */
};

/* The client's worker in this pool, or NULL. */
struct peer *bindings_worker(const struct peer *client, size_t pool);

/* How many clients the worker has. */
size_t bindings_count(const struct peer *worker);

/* Binds them, who were not. STDIO_BUS_ERR when memory is out. */
int bindings_add(struct peer *client, struct peer *worker);

/* Ends all bindings of a client or a worker. */
void bindings_clear_client(struct peer *client);
void bindings_clear_worker(struct peer *worker);

#endif
