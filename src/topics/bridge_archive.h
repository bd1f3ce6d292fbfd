/* The bridge between the topic bus and the pools in the archive of an upgrade in place, with its
 * calls in flight. */
#ifndef STDIO_BUS_TOPICS_BRIDGE_ARCHIVE_H
#define STDIO_BUS_TOPICS_BRIDGE_ARCHIVE_H

#include "rmp/broker_archive.h"
#include "router/router_archive.h"
#include "topics/answer.h"

/* A bridge that is loaded has the same pools, and no calls yet. */
void rmp_bridge_archive(struct router_archive *state, struct rmp_archive *topics,
                        struct rmp_bridge *bridge);

#endif
