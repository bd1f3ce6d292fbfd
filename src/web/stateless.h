/* MCP over HTTP in the stateless era: a request stands alone, and its connection is its client. */
#ifndef STDIO_BUS_WEB_STATELESS_H
#define STDIO_BUS_WEB_STATELESS_H

#include "http/mcp_headers.h"
#include "web/exchange.h"
#include "json/param_fields.h"

/* What is kept of a head at MCP's path. */
struct mcp_fields {
    struct mcp_headers fields; /* their values are in `text` */
    const char *session;       /* the id in Mcp-Session-Id; NULL: none that counts */
    char text[];
};

/* Serves a request that stands alone. */
extern const struct http_kind http_stateless_kind;

/* Offers the message, whose fields were found, to the router, if it is what the head says. */
void http_stateless_post(struct http_exchange *http, const struct message *message,
                         const struct param_fields *fields);

#endif
