/* ACP 2: an agent takes one initialize, since a connection has one. Further clients of the process
 * get its answer to the first one, and until that has come they wait. */
#ifndef STDIO_BUS_ROUTER_GREETING_H
#define STDIO_BUS_ROUTER_GREETING_H

#include "router/decision.h"

/* A longer answer is not kept. */
#define GREETING_MAX 65536

/* A client's initialize. True: the sender is held, or gets an earlier answer. */
bool greeting_decide(struct decision *decision, struct peer *worker);

/* The answer to an initialize, even if its client is gone. STDIO_BUS_ERR if out of memory. */
int greeting_note(struct decision *decision, const struct request *request);

/* The same for a client that is there; of MCP its own handshake has been answered. */
int greeting_answered(struct decision *decision, const struct request *request);

/* The process has ended. */
void greeting_forget(struct peer *worker);

#endif
