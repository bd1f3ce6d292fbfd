/* The departure of a client, whatever its kind of endpoint (spec 7.2). */
#ifndef STDIO_BUS_BUS_DEPART_H
#define STDIO_BUS_BUS_DEPART_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

/* departure_unanswered_fn: a worker's request will not be answered by the client that was asked. */
void depart_unanswered(void *user_data, const struct request *request);

/* The client is gone: its requests are cancelled, and the router forgets it. */
void depart_client(struct endpoint *endpoint);

#endif
