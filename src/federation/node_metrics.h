/* Links by the names of their nodes, for metrics and lists. */
#ifndef STDIO_BUS_FEDERATION_NODE_METRICS_H
#define STDIO_BUS_FEDERATION_NODE_METRICS_H

#include "federation/hub.h"
#include "json/text.h"

/* Bytes that links to the node have sent, and that are not acknowledged. */
uint64_t node_metrics_unacked(const struct nats_node *node);

/* Counts what links there are now, in the tallies. */
void node_metrics_measure(struct nats_hub *hub);

/* The write of struct metric; the values are struct nats_metrics. */
void node_metrics_write(struct json_text *to, const void *values);

#endif
