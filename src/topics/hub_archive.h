/* The RMP topic bus in the archive of an upgrade in place: its broker, the clients of its socket,
 * and its bridge to the pools. */
#ifndef STDIO_BUS_TOPICS_HUB_ARCHIVE_H
#define STDIO_BUS_TOPICS_HUB_ARCHIVE_H

#include "router/router_archive.h"
#include "topics/hub.h"

/* Before the tables of the router, in which the bridge has its calls. */
void rmp_hub_archive(struct router_archive *state, struct rmp_hub *hub);

#endif
