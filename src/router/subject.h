/* What a message of a pool with a mode refers to: its session, and the request or token that a
 * notification is about. */
#ifndef STDIO_BUS_ROUTER_SUBJECT_H
#define STDIO_BUS_ROUTER_SUBJECT_H

#include "router/decision.h"

/* Reads decision->session_id, nested_id, kind, fields and subject of the message as the mode of
 * decision->pool has them. */
void subject_read(struct decision *decision);

/* A notification about a request goes to the peer at the other end of it. `own` has the requests of
 * the sender's kind of peer, `other` those that it answers. False: the message is a request, or
 * about none that is known. */
bool subject_decide(struct decision *decision, struct pending *own, struct pending *other);

#endif
