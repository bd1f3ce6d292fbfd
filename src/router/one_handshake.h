/* MCP: clients of the handshake era share a process, whose server is written for one client, and
 * gets one handshake.
 *
 * The daemon asks the server on behalf of the first client that sends initialize, and keeps the
 * answer: each client with the same protocolVersion gets it. One client's notifications/initialized
 * reaches the server. */
#ifndef STDIO_BUS_ROUTER_ONE_HANDSHAKE_H
#define STDIO_BUS_ROUTER_ONE_HANDSHAKE_H

#include "router/decision.h"
#include "router/handshake.h"

/* --- a client's message to its worker --- */

/* True if the process has refused the protocol version of this initialize: the client has left it,
 * and is to get a process of its own. */
bool one_handshake_moves(struct decision *decision, struct peer *worker);

/* Decides about a message of the handshake, or one that sets what clients share
 * (router/shared_settings.h). False: it goes the way of any other message. */
bool one_handshake_takes(struct decision *decision, struct peer *worker);

/* --- the worker --- */

static inline bool one_handshake_is_own(const struct request *request)
{
    return request->extras != NULL && request->extras->kind >= EXTRAS_OWN;
}

/* The answer to a request of the daemon's own, as a whole or not. */
void one_handshake_own_answer(struct decision *decision, struct request *request, bool whole);

/* No answer will come to what clients wait for. */
void one_handshake_expire(struct router *router, struct handshake *handshake);

/* The worker's process has ended. */
void one_handshake_worker_ended(struct router *router, struct peer *worker);

#endif
