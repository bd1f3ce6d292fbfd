/* HTTP clients: connections whose framing is HTTP. A head is judged by the gate (web/gate.h)
 * and goes to what is at its path. */
#ifndef STDIO_BUS_WEB_CLIENTS_H
#define STDIO_BUS_WEB_CLIENTS_H

#include "bus/clients.h"
#include "bus/listeners.h"
#include "web/hub.h"

struct http_exchange;

/* The connections of an HTTP listener become clients of HTTP. A client has a share at once or,
 * where it needs a token, once it has shown one. A refused client gets 403 or, where there are too
 * many, 503. */
extern const struct listener_kind http_listener;

/* Saves a client of HTTP, or loads it. After their sessions. */
struct router_archive;
void http_clients_archive(struct router_archive *state, struct http_hub *hub,
                          struct client *client);

#endif
