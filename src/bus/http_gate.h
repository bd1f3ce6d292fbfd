/* The gate of HTTP: what a request has to pass before it is an exchange. The listener's routes, its
 * rules for Host and Origin, the preflight of a page, the token, /healthz and /readyz. */
#ifndef STDIO_BUS_BUS_HTTP_GATE_H
#define STDIO_BUS_BUS_HTTP_GATE_H

#include "bus/clients.h"
#include "bus/listeners.h"
#include "http/access.h"
#include "http/routes.h"

#define HTTP_GATE_REASON_MAX 256

/* Of the head; data NULL: the request has no such field. */
struct http_visit {
    struct slice method, path; /* the path without its query */
    struct slice host, origin, authorization;
    struct slice asked_method, asked_headers, asked_private; /* Access-Control-Request-Method,
                                                              * -Headers, -Private-Network */
};

struct http_verdict {
    int status; /* 0: the request goes on, to `place`; else the whole answer is here */
    char fields[HTTP_CORS_MAX + HTTP_CHALLENGE_MAX]; /* whole fields, each with its CRLF, for
                                                      * whatever is answered */
    size_t fields_len;

    enum http_place place; /* HTTP_PLACE_MCP or HTTP_PLACE_RPC */
    struct group *pool;    /* NULL: the messages name it */
    const struct named_token *token; /* NULL: none is asked for; lives until the next call */

    const char *type; /* of the body; NULL: there is none */
    char *body;       /* body_len bytes: `reason`, or `owned` */
    size_t body_len;
    char *owned; /* to be freed */
    char reason[HTTP_GATE_REASON_MAX];
};

/* listener_fn; user_data is a struct bus_listener. The connection becomes a client (http_clients.h),
 * which has a share at once. A refused one gets 503. */
void http_gate_accepted(void *user_data, int fd, const struct origin *origin);

/* Judges the head. A refusal has been logged. */
void http_gate_judge(struct http_verdict *verdict, struct client *client,
                     const struct http_visit *visit);

#endif
