/* From a client to a worker (spec 6.1, 6.2). */
#ifndef STDIO_BUS_ROUTER_TO_WORKER_H
#define STDIO_BUS_ROUTER_TO_WORKER_H

#include "router/decision.h"

/* Decides about a client's message. */
void to_worker(struct decision *decision);

#endif
