/* Clients of HTTP in the archive of an upgrade in place: their connections, and the current
 * requests. */
#ifndef STDIO_BUS_WEB_CLIENTS_ARCHIVE_H
#define STDIO_BUS_WEB_CLIENTS_ARCHIVE_H

#include "bus/clients.h"
#include "router/router_archive.h"
#include "web/hub.h"

/* After their sessions (web/sessions_archive.h). */
void http_clients_archive(struct router_archive *state, struct http_hub *hub,
                          struct client *client);

#endif
