/* Links: connections to the server, kept alive between requests. One request at a time is under way
 * on a link. */
#ifndef STDIO_BUS_REMOTE_LINK_H
#define STDIO_BUS_REMOTE_LINK_H

#include "http/response_reader.h"
#include "remote/state.h"

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

#endif
