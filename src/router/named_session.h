/* The session that a message of a worker names, or the request that it answers. */
#ifndef STDIO_BUS_ROUTER_NAMED_SESSION_H
#define STDIO_BUS_ROUTER_NAMED_SESSION_H

#include "router/decision.h"

/* The session of a request or notification (spec 6.3.2). NULL: it is not known. */
struct session *named_session(const struct decision *decision);

/* The client that loads the session at this worker. Of several the last one. NULL: none. */
struct peer *named_session_loader(const struct peer *worker, struct slice id);

/* An answer to a request that loads a session, or that may name a new one: the session is the
 * asker's. False: the answer is not for the asker, or out of memory. */
bool named_session_answered(struct decision *decision, struct request *request);

/* The answer to a prompt (ACP). */
void named_session_prompted(struct decision *decision, const struct request *request);

#endif
