/* What the request table keeps of some requests in pools with keys of their own
 * (config/sharing.h): their progress tokens and their deadline. Recycled like the requests that
 * they belong to. */
#ifndef STDIO_BUS_ROUTER_DETAILS_H
#define STDIO_BUS_ROUTER_DETAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "format/message.h"

struct request;
struct requests;

#define DETAILS_TOKENS 2    /* LSP has requests with a workDoneToken and a partialResultToken */
#define DETAILS_TEXT_INLINE 160

struct details_token {
    struct slice raw; /* as the asker spelled it, with its quotes; data NULL: there is none */
    struct message_id value;
};

struct request_details {
    struct request *request;
    struct list_node timed; /* by deadline, in the list of its pool; in the free list */
    int64_t deadline_ms;
    bool learns;            /* the answer may tell a session id (result.sessionId) */
    struct details_token tokens[DETAILS_TOKENS];
    char *long_text;
    char text[DETAILS_TEXT_INLINE];
};

/* Details that belong to no request yet, with copies of the tokens. NULL when memory is out. */
struct request_details *details_new(struct requests *requests,
                                    const struct details_token tokens[DETAILS_TOKENS]);

/* Gives details back; they are on no list of their pool any more. */
void details_free(struct requests *requests, struct request_details *details);

/* Frees what all of them used; to be called by requests_free. */
void details_free_all(struct requests *requests);

#endif
