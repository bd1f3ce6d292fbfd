/* HTTP clients: connections whose framing is HTTP. A head is judged by the gate (web/gate.h)
 * and goes to what is at its path. */
#ifndef STDIO_BUS_WEB_CLIENTS_H
#define STDIO_BUS_WEB_CLIENTS_H

#include "bus/clients.h"
#include "bus/listeners.h"
#include "web/hub.h"

struct http_exchange;

/* Makes what a connection of HTTP needs, and sets the handler, the framing and its reader in the
 * options, for clients_add. NULL if out of memory. */
struct http_exchange *http_clients_prepare(struct stream_options *options);

/* The client, which was made with those options, is one of HTTP from now on: client->http, and its
 * endpoint's operations. clients_remove frees the exchange. */
void http_clients_open(struct client *client, struct http_exchange *http, struct http_hub *hub);

/* The connections of an HTTP listener become clients of HTTP. A client has a share at once or,
 * where it needs a token, once it has shown one. A refused client gets 403 or, where there are too
 * many, 503. */
extern const struct listener_kind http_listener;

#endif
