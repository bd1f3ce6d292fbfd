/* What a pool with a mode keeps of a message that is forwarded. */
#ifndef STDIO_BUS_ROUTER_RECORD_H
#define STDIO_BUS_ROUTER_RECORD_H

#include "router/decision.h"

/* Whether a question gets a number of the daemon's, though ids pass unchanged: its process is not
 * the client's first one, and the client may still answer what another has asked with this id. */
bool record_renumbers(const struct decision *decision, const struct pending *pending,
                      const struct peer *answerer);

/* Enters a request into the table (spec 6.2), in a pool with a mode: with its tokens and its
 * deadline, and under a number of the daemon's if ids are rewritten; the message gets that id and
 * tokens. NULL if out of memory, or if the request was not to be forwarded: a token cannot be read,
 * or see router/greeting.h. */
struct request *record_request(struct decision *decision, struct pending *pending,
                               struct peer *answerer);

/* The tokens of a client's notification become numbers that no request has: its progress is for no
 * client. False: a token cannot be read, and the notification was discarded. */
bool record_notification(struct decision *decision, struct peer *worker);

/* Enters a request of the daemon's own: its answer is for no client. If the daemon needs none, the
 * request is entered as one that was given up. NULL if out of memory. */
struct request *record_own(struct router *router, struct peer *worker, enum extras_kind kind);

#endif
