/* Plain JSON-RPC over HTTP, for scripts: a POST of a request has its answer as JSON, a POST of an
 * array an array, in any order. */
#ifndef STDIO_BUS_WEB_RPC_H
#define STDIO_BUS_WEB_RPC_H

#include "base/archive.h"
#include "web/exchange.h"

/* A request whose head, with these bytes, the gate has let in. Answers it, or awaits the body. */
void http_rpc_begin(struct http_exchange *http, struct slice head);

/* Serves such a request. */
extern const struct http_kind http_rpc_kind;

/* Saves what is kept of such a request, or loads it. */
void http_rpc_archive(struct archive *archive, struct http_exchange *http);

#endif
