/* What the daemon itself has to send to a process whose clients share a handshake. The router notes
 * that there is something (handshake_note_errand); its owner sends it before any other message is
 * decided about. */
#ifndef STDIO_BUS_ROUTER_ERRAND_H
#define STDIO_BUS_ROUTER_ERRAND_H

#include "router/kept_message.h"
#include "router/router.h"
#include "router/subscriptions.h"

enum errand_kind {
    ERRAND_INITIALIZE,
    ERRAND_SET_LEVEL,
    ERRAND_SUBSCRIBE,
    ERRAND_UNSUBSCRIBE,
    ERRAND_LIST,    /* a page of a list, to be remembered */
    ERRAND_ANNOUNCE /* no request: the clients of the worker are told of lists that differ */
};

struct errand {
    enum errand_kind kind;
    struct peer *worker;                   /* to which it is to be sent */
    struct request *request;               /* in flight from now on; the router takes its answer.
                                            * NULL: out of memory, see errand_failed */
    const struct kept_message *initialize; /* to be sent under the request's id */
    const char *method;                    /* LIST */
    unsigned lists;                        /* ANNOUNCE: bits (enum handshake_list) */
    struct slice text;                     /* the level, the cursor (data NULL: none) or the URI: */
    char uri[SUBSCRIPTION_URI_MAX];
};

/* How many subscriptions begin or end at a process at once in requests of the daemon's own: the
 * further ones wait for its answers, and while its queue is full, so that the messages of clients
 * pass between them. */
#define ERRANDS_IN_FLIGHT 16

/* The next errand, whose texts live until the next call. False: there is none. */
bool errand_next(struct router *router, struct errand *errand);

/* It could not be sent (memory). */
void errand_failed(struct router *router, const struct errand *errand);

#endif
