/* MCP: what a server asks of one of the clients that share its handshake. It was offered more than
 * each client may have (router/abilities.h). */
#ifndef STDIO_BUS_ROUTER_QUESTIONS_H
#define STDIO_BUS_ROUTER_QUESTIONS_H

#include "router/decision.h"

/* True if the client has not announced what the worker's question needs, and it was refused. In a
 * strict configuration the client itself answers. */
bool questions_refuse(struct decision *decision, const struct peer *client);

/* The client whose roots a worker asks for on no client's behalf, since none waits for an answer:
 * the one that has said last that its roots have changed, else the last one that has roots, else
 * any. NULL: it is another question, a client's request may be its cause, or no client has sent
 * initialize. */
struct peer *questions_roots_client(const struct decision *decision);

#endif
