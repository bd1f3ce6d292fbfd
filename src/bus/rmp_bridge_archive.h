/* The bridge between the topic bus and the pools in the archive of an upgrade in place, with its
 * calls in flight. */
#ifndef STDIO_BUS_BUS_RMP_BRIDGE_ARCHIVE_H
#define STDIO_BUS_BUS_RMP_BRIDGE_ARCHIVE_H

#include "bus/rmp_answer.h"
#include "rmp/broker_archive.h"
#include "router/router_archive.h"

/* A bridge that is loaded has the same pools, and no calls yet. */
void rmp_bridge_archive(struct router_archive *state, struct rmp_archive *topics,
                        struct rmp_bridge *bridge);

#endif
