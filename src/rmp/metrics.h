/* The snapshot of the counters on rlp/sys/metrics, while somebody subscribes. */
#ifndef STDIO_BUS_RMP_METRICS_H
#define STDIO_BUS_RMP_METRICS_H

#include "rmp/state.h"

/* A subscription was added: the first snapshot follows after one interval. */
void rmp_metrics_wake(struct rmp_broker *broker, uint64_t now_ms);

/* Adds a snapshot to broker->own if it is time. */
void rmp_metrics_run(struct rmp_broker *broker, struct rmp_time time);

#endif
