/* The gate of HTTP: what each request has to pass before it is an exchange. The rules of the
 * listener for Host and Origin, the preflight of a page, the token, the routes; /healthz,
 * /readyz and /metrics. */
#ifndef STDIO_BUS_WEB_GATE_H
#define STDIO_BUS_WEB_GATE_H

#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/state.h"
#include "http/access.h"
#include "http/head.h"

#define HTTP_GATE_REASON_MAX 256

struct http_verdict {
    int status; /* 0: the request continues, to `place`; else the answer is `fields` and `body` */
    char fields[HTTP_CORS_MAX + HTTP_CHALLENGE_MAX]; /* whole fields, each with its CRLF, for
                                                      * whatever is answered */
    size_t fields_len;
    char text[HTTP_GATE_REASON_MAX + 128];
    char *owned;
    struct slice body; /* of the answer, in `text` or `owned`; data NULL: there is none */
    const char *type;  /* of the body */

    enum http_place place; /* HTTP_PLACE_MCP or HTTP_PLACE_RPC, if the request continues */
    struct group *pool;    /* of all messages of the request (router_confine); NULL: they name it,
                            * or there are none */
    unsigned token; /* serial number of the one that was shown (client->token); 0: none is asked
                     * for. A session belongs to the token that it was begun with */
};

/* Judges a head, whose bytes these are, and writes the whole verdict. A refusal has been logged.
 * HEAD is judged as GET: then the body is not sent. http_verdict_free in any case. */
void http_gate_judge(struct http_verdict *verdict, struct client *client,
                     const struct http_head *head, struct slice bytes);

void http_verdict_free(struct http_verdict *verdict);

/* The answer of /readyz: whether the daemon neither starts nor stops, and each pool has a worker
 * that takes messages or is started for a client. If not, `text` (of `size` bytes, one line) says
 * why. */
bool readiness_is_ready(const struct stdio_bus *bus, char *text, size_t size);

#endif
