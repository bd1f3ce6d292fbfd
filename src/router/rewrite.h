/* Ids and progress tokens on their way through a pool that rewrites them. Both directions are
 * alike: the asker gets back what it wrote, the answerer sees numbers of the daemon's. */
#ifndef STDIO_BUS_ROUTER_REWRITE_H
#define STDIO_BUS_ROUTER_REWRITE_H

#include "router/decision.h"

/* Enters a request into the table (spec 6.2), in a pool with a mode: with its tokens and its
 * deadline, and under a number of the daemon's if ids are rewritten; the message gets that id and
 * tokens. NULL when memory is out, or when a token cannot be read and the request was refused. */
struct request *rewrite_record(struct decision *decision, struct pending *pending,
                               struct peer *answerer);

/* The tokens of a client's notification become numbers that no request has: its progress is for no
 * client. False: a token cannot be read, and the notification was discarded. */
bool rewrite_notification(struct decision *decision, struct peer *worker);

/* The subject's request, one of the sender's own; the message gets its id at the answerer. NULL:
 * there is none any more. */
struct request *rewrite_own_request(struct decision *decision, struct pending *pending);

/* The request whose progress the sender reports; the message gets the asker's token. NULL: there is
 * none; *stale: the token was a number of the daemon's, for a request that is over. */
struct request *rewrite_progress(struct decision *decision, struct pending *pending, bool *stale);

/* The client's request that a worker's question names by a progress token. NULL: none. A token that
 * is the question's own id is the worker's own, as the official MCP libraries choose it. */
struct request *rewrite_question_for(struct decision *decision);

/* The subject may be a number that the answerer was sent by the daemon, or cannot be read. */
bool rewrite_may_be_number(const struct decision *decision, const struct peer *answerer);

/* The request that a worker answers in a pool that rewrites ids, or NULL. */
struct request *rewrite_find_answered(const struct decision *decision);

/* The answer gets the id that its asker wrote. */
void rewrite_edit_answer(struct decision *decision, const struct request *request);

#endif
