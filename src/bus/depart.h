/* The departure of a client, whatever its kind of endpoint (spec 7.2). */
#ifndef STDIO_BUS_BUS_DEPART_H
#define STDIO_BUS_BUS_DEPART_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

/* departure_unanswered_fn: a worker's request will not be answered by the client that was asked. */
void depart_unanswered(void *user_data, const struct request *request);

/* The client is gone: its requests are cancelled, and the router forgets it. */
void depart_client(struct endpoint *endpoint);

/* --- processes that serve one client each: one ends with the other --- */

/* Ends the processes that the client has to itself. */
void retire_processes_of(struct peer *client);

/* Closes the client, whose own processes end; it is bound to no worker any more. */
void retire_client(struct peer *client);

#endif
