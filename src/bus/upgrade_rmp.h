/* The RMP topic bus in the archive of an upgrade in place: its broker, the clients of its socket,
 * and its bridge to the pools. */
#ifndef STDIO_BUS_BUS_UPGRADE_RMP_H
#define STDIO_BUS_BUS_UPGRADE_RMP_H

#include "bus/state.h"
#include "router/router_archive.h"

/* Before the tables of the router, in which the bridge has its calls. */
void upgrade_rmp(struct router_archive *state, struct stdio_bus *bus);

#endif
