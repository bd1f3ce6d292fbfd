/* The bridge between the topic bus and pools: workers are the agents, and one pool is the runner
 * (rmp/bridge.h). */
#ifndef STDIO_BUS_TOPICS_BRIDGE_H
#define STDIO_BUS_TOPICS_BRIDGE_H

#include "bus/state.h"
#include "rmp/broker.h"
#include "rmp/frame.h"

struct rmp_bridge;

/* The pools of the bus that have the key "rmp" serve the broker from now on; requests on rlp/ctrl
 * are answered in any case. `broker` and `rules` live longer than the bridge. NULL if out of
 * memory. */
struct rmp_bridge *rmp_bridge_create(struct stdio_bus *bus, struct rmp_broker *broker,
                                     const struct rmp_rules *rules);

/* The daemon starts, and no state of another one is taken over: reads the history of runs. */
void rmp_bridge_start(struct rmp_bridge *bridge);

/* The runs whose events are kept. */
struct rmp_runs *rmp_bridge_runs(const struct rmp_bridge *bridge);

/* The router is closing: requests that it holds are offered once more, and refused. */
void rmp_bridge_stop(struct rmp_bridge *bridge);

/* Calls in flight end without a word. Before the router, the loop and the broker. NULL is
 * allowed. */
void rmp_bridge_destroy(struct rmp_bridge *bridge);

/* Saves the bridge with its calls in flight, or loads it into one that has the same pools and no
 * calls yet. */
struct rmp_archive;
struct router_archive;
void rmp_bridge_archive(struct router_archive *state, struct rmp_archive *topics,
                        struct rmp_bridge *bridge);

#endif
