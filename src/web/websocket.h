/* Clients over WebSocket (RFC 6455): like any other, but for their framing, its control frames, and
 * how their connection ends. */
#ifndef STDIO_BUS_WEB_WEBSOCKET_H
#define STDIO_BUS_WEB_WEBSOCKET_H

#include "web/exchange.h"

struct http_websocket;

/* What such a client needs. NULL when memory is out. */
struct http_websocket *http_websocket_prepare(void);

/* The answer 101 is queued: the client speaks WebSocket from now on, and no HTTP. The exchange is
 * over, and freed at the round's end. */
void http_websocket_open(struct http_exchange *http, struct http_websocket *websocket);

/* Frees what was prepared. NULL is fine. */
void http_websocket_drop(struct http_websocket *websocket);

/* Saves the stream of such a client and what belongs to WebSocket, or loads them into a client that
 * clients_new has made. */
void http_websocket_archive(struct archive *archive, struct client *client);

#endif
