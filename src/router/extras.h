/* What the pending table keeps of some requests beyond their ids, in pools with a mode
 * (config/pool_mode.h): progress tokens, sessions and a deadline. Extras are recycled.
 *
 * A token is found by (peer, token), for each peer that may name it. Several requests may have the
 * same token at the same peer: then the first one is in the table, and has a list of the others. */
#ifndef STDIO_BUS_ROUTER_EXTRAS_H
#define STDIO_BUS_ROUTER_EXTRAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/list.h"
#include "router/subscriptions.h"
#include "json/message.h"

struct peer;
struct request;
struct request_extras;
struct task;

/* params._meta.progressToken, params.partialResultToken and params.workDoneToken */
#define EXTRAS_TOKENS 3
#define EXTRAS_TEXT_INLINE 160

struct extras_token {
    struct slice raw; /* as the asker spelled it, with its quotes; data NULL: there is none */
    struct message_id value;
    uint64_t hash;
};

enum extras_side { EXTRAS_ASKER, EXTRAS_ANSWERER };

/* A token as one of the peers knows it. */
struct extras_link {
    struct request_extras *extras;
    const struct peer *peer; /* NULL: it is not to be found by this peer */
    uint64_t hash;
    struct list later; /* of the first with this peer and token: the others, active ones first */
    struct list_node node; /* in `later` of the first */
};

enum extras_kind {
    EXTRAS_ORDINARY,
    EXTRAS_SUBSCRIBES,  /* MCP subscriptions/listen: open until it ends */
    EXTRAS_PROMPTS,     /* ACP session/prompt: a turn of the session */
    EXTRAS_MAKES_TASK,  /* MCP: with params.task */
    EXTRAS_FETCHES,     /* MCP tasks/result */
    EXTRAS_GREETS,      /* ACP initialize, to a process that clients share */
    EXTRAS_INITIALIZES, /* MCP initialize, to a process whose end the conversation survives */
    EXTRAS_SETS_LEVEL,  /* MCP logging/setLevel, where clients share a handshake */
    EXTRAS_WATCHES,     /* MCP resources/subscribe: the same */
    EXTRAS_KEPT,        /* MCP, stateless: the result may be given to others (router/fresh.h) */
    EXTRAS_OWN,         /* the daemon itself has asked, and needs no answer; but: */
    EXTRAS_OWN_INITIALIZE,
    EXTRAS_OWN_LIST /* a page of a list, to be remembered */
};

struct request_extras {
    struct request *request; /* NULL: they are of a task */
    struct task *task;       /* that continues after its request was answered */
    struct list_node timed;  /* by deadline, in the list of its pool; in the free list */
    int64_t deadline_ms;
    bool names_session; /* the answer may name a session that begins (result.sessionId) */
    bool abandoned;     /* the request */
    enum extras_kind kind;
    struct slice names;       /* the session that the request loads or prompts, the task of which it
                               * fetches the result, the level that it sets, the URI to which it
                               * subscribes, the key of its result; data NULL: none */
    struct list_node loading; /* of the worker that loads it */
    struct list_node logging; /* MCP: of the worker that is asked for log messages */
    struct list_node shared;  /* where clients share a handshake: in its `own` or `levels` */
    struct holding *watched;  /* of a client's request to subscribe there, or NULL */
    uint64_t logs_for;        /* the number of the peer that asked for them */
    struct extras_token tokens[EXTRAS_TOKENS];
    struct extras_link links[EXTRAS_TOKENS][2]; /* by enum extras_side */
    struct hash_table *by_token;
    char *long_text;
    char text[EXTRAS_TEXT_INLINE];
};

/* Extras that belong to no request yet, with copies of the tokens and of the id that the request
 * names; `recycled` is a list of extras. NULL if out of memory. */
struct request_extras *extras_new(struct list *recycled,
                                  const struct extras_token tokens[EXTRAS_TOKENS],
                                  struct slice names);

/* Lets the tokens be found by the request's asker, and by its answerer if that knows them by these
 * values. Either may be NULL. STDIO_BUS_ERR if out of memory; the extras are to be recycled
 * then. */
int extras_link(struct request_extras *extras, struct hash_table *by_token,
                const struct peer *asker, const struct peer *answerer);

/* The request is abandoned: its asker does not find its tokens any more, and its answerer finds
 * those of active requests before them. It has no deadline any more, and
 * loads no session. */
void extras_abandon(struct request_extras *extras);

/* The extras with this token, and which of their tokens it is, or NULL. `hash` is the token's. */
struct request_extras *extras_find(const struct hash_table *by_token, const struct peer *peer,
                                   struct message_id token, uint64_t hash, uint32_t *which);

/* Takes extras out of the table and off the list of deadlines, and puts them on a list to be used
 * again. */
void extras_recycle(struct list *recycled, struct request_extras *extras);

/* Frees extras that are on no list. Accepts NULL. */
void extras_free(struct request_extras *extras);

#endif
