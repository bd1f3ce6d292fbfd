/* From a client to a worker (spec 6.1, 6.2). */
#ifndef STDIO_BUS_ROUTER_TO_WORKER_H
#define STDIO_BUS_ROUTER_TO_WORKER_H

#include "router/decision.h"

/* Decides about a client's message. */
void to_worker(struct decision *decision);

/* Whether a message goes to a pool that takes messages longer than plain pools do. False: it cannot
 * be forwarded, and a hold of its client has ended. */
bool to_worker_takes_long(struct decision *decision);

/* As to_worker, for a message that was cut. */
void to_worker_cut(struct decision *decision);

#endif
