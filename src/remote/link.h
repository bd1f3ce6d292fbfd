/* Links: connections to the server, kept alive between requests. One request at a time is under way
 * on a link. */
#ifndef STDIO_BUS_REMOTE_LINK_H
#define STDIO_BUS_REMOTE_LINK_H

#include "config/url.h"
#include "event/event_loop.h"
#include "http/response_reader.h"
#include "remote/program.h"
#include "remote/tunnel.h"
#include "transport/address.h"

/* Reports to the user of a link. Each but `body` may come only once, and each may call link_free or
 * link_drain. After `over` and `broken` the link is not the user's any more. */
struct link_handler {
    void (*ready)(void *user);                                             /* write the request */
    void (*head)(void *user, const struct http_response_reader *response); /* of the response */
    void (*body)(void *user, struct slice bytes);                          /* a piece of it */
    void (*over)(void *user);                                              /* the response */
    void (*broken)(void *user, const char *reason); /* the text lives until the call returns */
};

struct remote_link;

/* A link for one request: one that is open, and ready, or a new one, for which `ready` is called
 * later. NULL if out of memory. */
struct remote_link *link_take(struct remote *remote, const struct link_handler *handler,
                              void *user);

bool link_is_ready(const struct remote_link *link);

/* Queues bytes of the request. STDIO_BUS_ERR if out of memory. */
int link_send(struct remote_link *link, struct slice bytes);

/* The user is done with the link before the response is over: the connection is closed; or the rest
 * is read, if it comes soon, and the link is kept. */
void link_free(struct remote_link *link);
void link_drain(struct remote_link *link);

/* stdout takes bytes again: the links are read on. */
void links_resume(struct remote *remote);

/* Closes all of them. */
void links_close(struct remote *remote);

/* --- Connecting to the server, without waiting: to each of its addresses in turn. --- */

struct addrinfo;

/* A socket that is connected and non-blocking, and belongs to the receiver; or -1 with the reason,
 * which lives until the call returns. */
typedef void dialing_fn(void *user_data, int fd, const char *reason);

struct dialing {
    struct stdio_bus_event_loop *loop;
    const struct remote_url *url;
    int64_t until_ms; /* a server that is not there is tried again, until then */
    dialing_fn *fn;
    void *user_data;
    int fd;                               /* of the attempt; -1: none */
    struct addrinfo *addresses, *address; /* the next one */
    int error;                            /* of the last attempt; 0: the name has no address */
    char reason[ADDRESS_REASON_MAX];
    struct timer timer;
};

/* Starts with the first members set. Resolving the name may block. fn is called after the return,
 * once. */
void dialing_start(struct dialing *dialing);

#endif
