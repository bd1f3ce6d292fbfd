/* From a worker to a client (spec 6.3). */
#ifndef STDIO_BUS_ROUTER_TO_CLIENT_H
#define STDIO_BUS_ROUTER_TO_CLIENT_H

#include "router/decision.h"

/* Decides about a worker's message. */
void to_client(struct decision *decision);

#endif
