/* Clients of HTTP in the archive of an upgrade in place: their connections, and the requests at
 * hand. */
#ifndef STDIO_BUS_BUS_UPGRADE_HTTP_H
#define STDIO_BUS_BUS_UPGRADE_HTTP_H

#include "bus/clients.h"
#include "router/router_archive.h"

/* After their sessions (bus/upgrade_sessions.h). */
void upgrade_http_client(struct router_archive *state, struct stdio_bus *bus,
                         struct client *client);

#endif
