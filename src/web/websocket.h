/* Clients over WebSocket (RFC 6455): like any other, but for their framing, its control frames, and
 * how their connection ends. */
#ifndef STDIO_BUS_WEB_WEBSOCKET_H
#define STDIO_BUS_WEB_WEBSOCKET_H

#include "web/exchange.h"

/* Saves the stream of such a client and what belongs to WebSocket, or loads them into a client that
 * clients_new has made. */
void http_websocket_archive(struct archive *archive, struct client *client);

/* Whether the request asks for it; `bytes` are those of the head. */
bool http_upgrade_wanted(const struct http_head *head, struct slice bytes);

/* Answers such a request, which the gate has let pass: with 101, and the client is one of WebSocket
 * from now on; or with a refusal. */
void http_upgrade_begin(struct http_exchange *http, struct slice bytes);

#endif
