/* MCP's Streamable HTTP: which request is for a session (handshake era), and which stands alone
 * (stateless era). */
#ifndef STDIO_BUS_WEB_MCP_H
#define STDIO_BUS_WEB_MCP_H

#include "base/archive.h"
#include "web/exchange.h"

/* A request whose head, with these bytes, the gate has let in. Answers it, or awaits the body. */
void http_mcp_begin(struct http_exchange *http, struct slice head);

/* A request until its body tells what it is. */
extern const struct http_kind http_mcp_kind;

/* Saves what is kept of the head of a request of MCP, or loads it. */
void http_mcp_archive(struct archive *archive, struct http_exchange *http);

#endif
