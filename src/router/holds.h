/* Held peers and what releases them: the router's other half, behind router.h. */
#ifndef STDIO_BUS_ROUTER_HOLDS_H
#define STDIO_BUS_ROUTER_HOLDS_H

#include "router/router.h"

/* The request is no longer in flight: its id goes to the peer that has waited longest for it, if
 * there is one, otherwise the entry is removed. */
void holds_id_free(struct router *router, struct request *request);

/* The request's answerer is gone: whoever waits for the id may look elsewhere; the entry is
 * removed. */
void holds_forget_request(struct router *router, struct request *request);

/* Nobody waits for the answer of an active request any more; of too many such, the oldest is
 * forgotten. */
void holds_abandon(struct router *router, struct request *request);

#endif
