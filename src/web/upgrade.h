/* The upgrade of a connection of HTTP to WebSocket (RFC 6455, section 4). */
#ifndef STDIO_BUS_WEB_UPGRADE_H
#define STDIO_BUS_WEB_UPGRADE_H

#include "web/exchange.h"

/* Whether the request asks for it; `bytes` are those of the head. */
bool http_upgrade_wanted(const struct http_head *head, struct slice bytes);

/* Answers such a request, which the gate has let pass: with 101, and the client is one of WebSocket
 * from now on (web/websocket.h); or with a refusal. */
void http_upgrade_begin(struct http_exchange *http, struct slice bytes);

#endif
