/* Ids and progress tokens on their way through a pool that rewrites them. Both directions are
 * alike: the asker gets back what it wrote, the answerer sees numbers of the daemon's. */
#ifndef STDIO_BUS_ROUTER_REWRITE_H
#define STDIO_BUS_ROUTER_REWRITE_H

#include "router/decision.h"

/* The subject's request, one of the sender's own; the message gets its id at the answerer. NULL:
 * there is none any more. */
struct request *rewrite_own_request(struct decision *decision, struct pending *pending);

/* The asker of the request, or the owner of the task, whose progress the sender reports, in *to;
 * NULL: that asker is gone. The message gets the asker's token. False: there is none; *stale: the
 * token was a number of the daemon's, for a request that is over. */
bool rewrite_progress(struct decision *decision, struct pending *pending, struct peer **to,
                      bool *stale);

/* The client's request that subscribes, which the subject names as the sender knows it; the message
 * gets the asker's id. NULL: there is none any more. */
struct request *rewrite_subscription(struct decision *decision, struct pending *pending);

/* The client whose request or task a worker's question names by a progress token, in *to; NULL: it
 * is gone. False: none is named. A token that is the question's own id is the worker's own, as the
 * official MCP libraries choose it. */
bool rewrite_question_for(struct decision *decision, struct peer **to);

/* The client whose request a worker's question serves, which the subject names, in *to; the message
 * gets the asker's id. NULL: that request is over. False: none is named. */
bool rewrite_cause(struct decision *decision, struct peer **to);

/* The subject may be a number that the answerer was sent by the daemon, or cannot be read. */
bool rewrite_may_be_number(const struct decision *decision, const struct peer *answerer);

/* The request that a worker answers in a pool that rewrites ids, or NULL. */
struct request *rewrite_find_answered(const struct decision *decision);

/* The answer gets the id that its asker wrote; that of a request that subscribes also in its
 * _meta. */
void rewrite_edit_answer(struct decision *decision, const struct request *request);
void rewrite_edit_subscription(struct decision *decision, const struct request *request);

/* --- numbers --- */

/* Numbers of the daemon's in place of ids and tokens, in the message that is forwarded. */

/* A request has two numbers, for its id and two tokens. Its third token is its first number as a
 * string, "N#". */
#define NUMBERS_THIRD_TOKEN 2

#define NUMBERS_TOKEN_MAX (PENDING_DIGITS + 1)

/* The name of token `which` of the request with this number; `text` lives as long as it. */
struct message_id numbers_token(char text[NUMBERS_TOKEN_MAX], uint32_t number, uint32_t which);

/* The value becomes a number of the daemon's. */
void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number);

/* The same for a token. */
void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which);

#endif
