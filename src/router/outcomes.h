/* The end of requests, counted in the groups of their workers. */
#ifndef STDIO_BUS_ROUTER_OUTCOMES_H
#define STDIO_BUS_ROUTER_OUTCOMES_H

#include "router/router.h"

/* A request that was in flight is over. Does nothing in a router that does not measure. */
void outcomes_note(struct router *router, const struct request *request,
                   enum request_outcome outcome);

#endif
