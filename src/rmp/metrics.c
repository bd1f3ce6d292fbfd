#include "build_config.h"

#include "rmp/metrics.h"

#include <string.h>

#include "base/list.h"
#include "rmp/own_message.h"
#include "rmp/schemas.h"

struct number {
    const char *name;
    uint64_t value;
};

enum { GAUGES = 6, COUNTERS = 7 };

/* Everything is read once: the payload is written twice, and must not change in between. */
struct snapshot {
    const struct rmp_broker_options *options;
    uint64_t ts_ms;
    struct number gauges[GAUGES], counters[COUNTERS];
};

static void put_numbers(struct msgpack_writer *writer, const struct number *numbers, size_t count)
{
    msgpack_put_map(writer, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        msgpack_put_text(writer, numbers[i].name);
        msgpack_put_uint(writer, numbers[i].value);
    }
}

static struct snapshot take(const struct rmp_broker *broker, uint64_t epoch_ms)
{
    const struct rmp_counters *counters = &broker->counters;

    return (struct snapshot){
        .options = &broker->options,
        .ts_ms = epoch_ms,
        .gauges = {{"peers", broker->peers},
                   {"topics", broker->topics.table.count},
                   {"subscriptions", broker->subscriptions.table.count},
                   {"queued_messages", broker->queued},
                   {"queued_bytes", broker->copies_bytes},
                   {"waiting_publications", list_count(&broker->waits)}},
        .counters = {{"msgs_sent_total", counters->sent},
                     {"msgs_recv_total", counters->received},
                     {"msgs_dropped_total", counters->drops_ttl + counters->drops_duplicate +
                                                counters->drops_backpressure},
                     {"drops_ttl", counters->drops_ttl},
                     {"drops_duplicate", counters->drops_duplicate},
                     {"drops_backpressure", counters->drops_backpressure},
                     {"drop_notices_suppressed", counters->notices_suppressed}},
    };
}

static void put_label(struct msgpack_writer *writer, const char *name, const char *value)
{
    msgpack_put_text(writer, name);
    msgpack_put_text(writer, value != NULL ? value : "");
}

static void put_payload(struct msgpack_writer *writer, const void *argument)
{
    const struct snapshot *snapshot = argument;

    msgpack_put_map(writer, 7);
    msgpack_put_text(writer, "v");
    msgpack_put_uint(writer, 1);
    msgpack_put_text(writer, "scope");
    msgpack_put_text(writer, "system");
    msgpack_put_text(writer, "ts_ms");
    msgpack_put_uint(writer, snapshot->ts_ms);
    msgpack_put_text(writer, "interval_ms");
    msgpack_put_uint(writer, snapshot->options->metrics_interval_ms);
    msgpack_put_text(writer, "labels");
    msgpack_put_map(writer, 2);
    put_label(writer, "executor_id", snapshot->options->executor_id);
    put_label(writer, "node_id", snapshot->options->node_id);
    msgpack_put_text(writer, "gauges");
    put_numbers(writer, snapshot->gauges, GAUGES);
    msgpack_put_text(writer, "counters");
    put_numbers(writer, snapshot->counters, COUNTERS);
}

void rmp_metrics_wake(struct rmp_broker *broker, uint64_t now_ms)
{
    if (broker->options.metrics_interval_ms > 0 && broker->metrics_at_ms == UINT64_MAX)
        broker->metrics_at_ms = now_ms + broker->options.metrics_interval_ms;
}

void rmp_metrics_run(struct rmp_broker *broker, struct rmp_time time)
{
    const struct snapshot snapshot = take(broker, time.epoch_ms);
    const struct rmp_own_message own = {
        .topic = RMP_TOPIC_METRICS,
        .schema_id = RMP_SCHEMA_METRICS_SNAPSHOT,
        .trace_id = broker->own_trace_id,
        .put_payload = put_payload,
        .argument = &snapshot,
    };

    if (time.now_ms < broker->metrics_at_ms)
        return;
    broker->metrics_at_ms = UINT64_MAX;
    if (rmp_topics_find(&broker->topics, slice_of(own.topic, strlen(own.topic))) == NULL)
        return;
    rmp_metrics_wake(broker, time.now_ms);
    /* Without memory this snapshot is left out. */
    rmp_own_message_add(broker, &own, time);
}
