/* Deadlines of requests: of their answers (request_timeout_sec), and of the ids of abandoned ones
 * (abandoned_id_sec). */
#ifndef STDIO_BUS_ROUTER_DEADLINES_H
#define STDIO_BUS_ROUTER_DEADLINES_H

#include "router/router.h"

/* Starts the request's time again, if it has a deadline. */
void deadlines_renew(struct router *router, struct request *request);

/* Where the extras of the pool's requests with a deadline belong, the earliest first. The pool is
 * looked at from now on, also when it has left the configuration. */
struct list *deadlines_of(struct router *router, struct group *pool);

/* Starts the request's time. */
void deadlines_start(struct router *router, struct request *request);

/* Called for each request whose time is over; the request is abandoned after the call. Must not
 * call the router. */
typedef void deadlines_expired_fn(void *user_data, struct request *request);

/* Gives up the requests whose deadline is at or before router->now_ms. */
void deadlines_expire(struct router *router, deadlines_expired_fn *expired, void *user_data);

/* Frees the ids of abandoned requests whose deadline is at or before router->now_ms. Returns how
 * many. An answer that still comes is taken for one to the request that has the id by then. */
size_t deadlines_free_abandoned(struct router *router);

/* The next deadline, or -1. */
int64_t deadlines_next(const struct router *router);

#endif
