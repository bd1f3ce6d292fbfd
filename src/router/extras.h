/* What the pending table keeps of some requests beyond their ids, in pools with a mode
 * (config/pool_mode.h): progress tokens and a deadline. Extras are recycled. */
#ifndef STDIO_BUS_ROUTER_EXTRAS_H
#define STDIO_BUS_ROUTER_EXTRAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "json/message.h"

struct request;

#define EXTRAS_TOKENS 2 /* LSP has requests with a workDoneToken and a partialResultToken */
#define EXTRAS_TEXT_INLINE 160

struct extras_token {
    struct slice raw; /* as the asker spelled it, with its quotes; data NULL: there is none */
    struct message_id value;
};

struct request_extras {
    struct request *request;
    struct list_node timed; /* by deadline, in the list of its pool; in the free list */
    int64_t deadline_ms;
    bool names_session; /* the answer may name a session that begins (result.sessionId) */
    struct extras_token tokens[EXTRAS_TOKENS];
    char *long_text;
    char text[EXTRAS_TEXT_INLINE];
};

/* Extras that belong to no request yet, with copies of the tokens; `recycled` is a list of extras.
 * NULL when memory is out. */
struct request_extras *extras_new(struct list *recycled,
                                  const struct extras_token tokens[EXTRAS_TOKENS]);

/* Takes extras off the list of deadlines, and puts them on a list to be used again. */
void extras_recycle(struct list *recycled, struct request_extras *extras);

/* Frees extras that are on no list. NULL is fine. */
void extras_free(struct request_extras *extras);

#endif
