/* What follows when a peer is gone: its sessions end, its requests are discarded or abandoned. */
#ifndef STDIO_BUS_ROUTER_DEPARTURE_H
#define STDIO_BUS_ROUTER_DEPARTURE_H

#include "router/router.h"

/* Called for each request that will not be answered because its answerer is gone. Must not call the
 * router. */
typedef void departure_unanswered_fn(void *user_data, const struct request *request);

/* The worker's output has ended: its sessions are invalidated (spec 3.4.4), what it had to answer
 * is discarded (spec 7.1.2) and reported to `unanswered`. It is PEER_ABSENT then, and a new
 * peer. Returns whether its end is no failure (router/eras.h). */
bool departure_worker(struct router *router, struct peer *worker,
                      departure_unanswered_fn *unanswered, void *user_data);

/* The client will answer nothing any more; what workers asked of it is reported to `unanswered`. */
void departure_client_input(struct router *router, struct peer *client,
                            departure_unanswered_fn *unanswered, void *user_data);

/* The client has disconnected: its sessions are invalidated (spec 3.4.5), its pending requests
 * discarded (spec 7.2), and it is on no list any more. */
void departure_client(struct router *router, struct peer *client,
                      departure_unanswered_fn *unanswered, void *user_data);

/* Takes a worker that is gone out of its pool and of the router. */
void departure_remove_worker(struct router *router, struct peer *worker);

/* Takes a pool with workers out of the router: no message finds it by its name or in turn. Its
 * workers continue for the clients that have opened it, or with `removed` for the requests that are
 * in flight alone. */
void departure_detach_pool(struct router *router, struct group *pool, bool removed);

/* Takes out a pool without workers; clients that wait for one of its workers look elsewhere. */
void departure_remove_pool(struct router *router, struct group *pool);

#endif
