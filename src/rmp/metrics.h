/* Snapshots of the counters on rlp/sys/metrics, and of the topics on rlp/sys/stats, each while it
 * has a subscription (RMP 11). */
#ifndef STDIO_BUS_RMP_METRICS_H
#define STDIO_BUS_RMP_METRICS_H

#include "rmp/state.h"

#define RMP_STATS_TOPICS 128 /* of one snapshot; the next one continues after them */

/* A subscription of this topic was added: the first snapshot follows after one interval. */
void rmp_metrics_subscribed(struct rmp_broker *broker, struct slice topic, uint64_t now_ms);

struct rmp_gauges rmp_metrics_gauges(const struct rmp_broker *broker);

/* Adds snapshots to broker->own if it is time. */
void rmp_metrics_run(struct rmp_broker *broker, struct rmp_time time);

#endif
