/* From a worker to a client (spec 6.3). */
#ifndef STDIO_BUS_ROUTER_TO_CLIENT_H
#define STDIO_BUS_ROUTER_TO_CLIENT_H

#include "router/decision.h"

/* Decides about a worker's message. */
void to_client(struct decision *decision);

/* Decides about a worker's answer that cannot be forwarded because of the problem, and of which
 * only the id counts: FAIL, or nobody waits for it. */
void to_client_lost(struct decision *decision, const char *problem);

/* Decides about a worker's message that was cut. */
void to_client_cut(struct decision *decision);

#endif
