#include "build_config.h"

#include "federation/node_metrics.h"

#include <stddef.h>
#include <string.h>

#include "federation/link.h"
#include "monitor/metrics.h"

uint64_t node_metrics_unacked(const struct nats_node *node)
{
    struct list_node *at, *following;
    uint64_t bytes = 0;

    list_each(&node->links, at, following) {
        const struct nats_link *link = list_entry(at, struct nats_link, in_node);

        bytes += link->stream.sent - link->stream.acked;
    }
    return bytes;
}

void node_metrics_measure(struct nats_hub *hub)
{
    struct list_node *at, *following;

    for (size_t i = 0; i < hub->tally_count; i++)
        hub->tallies[i].links = hub->tallies[i].unacked = 0;
    list_each(&hub->links.nodes, at, following) {
        const struct nats_node *node = list_entry(at, struct nats_node, link);

        node->tally->links += list_count(&node->links);
        node->tally->unacked += node_metrics_unacked(node);
    }
}

#define OF(member) offsetof(struct nats_tally, member)

static const struct tally_metric {
    const char *name, *help;
    size_t offset;
    enum metric_unit unit;
} rows[] = {
    {"stdio_bus_nats_node_links", "Links to nodes of the name.", OF(links), METRIC_NUMBER},
    {"stdio_bus_nats_node_unacked_bytes", "Bytes that the node has not acknowledged yet.",
     OF(unacked), METRIC_NUMBER},
    {"stdio_bus_nats_node_received_bytes_total", "Bytes that came over links.", OF(received),
     METRIC_NUMBER},
    {"stdio_bus_nats_node_sent_bytes_total", "Bytes that were sent over links.", OF(sent),
     METRIC_NUMBER},
    {"stdio_bus_nats_node_declined_total", "Links of the node that were declined here.",
     OF(declined), METRIC_NUMBER},
    {"stdio_bus_nats_node_lost_total", "Links that were lost with the node.", OF(lost),
     METRIC_NUMBER},
    {"stdio_bus_nats_node_round_trip_seconds", "The last round trip; 0: none was measured yet.",
     OF(round_trip_us), METRIC_US},
};

static uint64_t value_at(const struct nats_tally *tally, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)tally + offset, sizeof value);
    return value;
}

void node_metrics_write(struct json_text *to, const void *values)
{
    const struct nats_metrics *metrics = values;

    for (size_t i = 0; metrics->tally_count > 0 && i < sizeof rows / sizeof rows[0]; i++) {
        const struct metric metric = {.name = rows[i].name, .help = rows[i].help};

        metrics_put_head(to, &metric);
        for (size_t j = 0; j < metrics->tally_count; j++)
            metrics_put_of_label(to, rows[i].name, "node", slice_of_text(metrics->tallies[j].name),
                                 value_at(&metrics->tallies[j], rows[i].offset), rows[i].unit);
    }
}
