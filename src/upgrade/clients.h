/* The clients of an upgrade in place, and those of the control socket, in an archive. */
#ifndef STDIO_BUS_UPGRADE_CLIENTS_H
#define STDIO_BUS_UPGRADE_CLIENTS_H

#include "bus/state.h"
#include "router/router_archive.h"

/* After the listeners. */
void upgrade_clients(struct router_archive *state, struct stdio_bus *bus);

/* Calls fn for the connection of each client. */
void upgrade_clients_connections(struct stdio_bus *bus, void (*fn)(struct connection *connection));

#endif
