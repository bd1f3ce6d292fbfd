#include "build_config.h"

#include "rmp/metrics.h"

#include <string.h>

#include "base/list.h"
#include "rmp/known.h"
#include "rmp/own_message.h"
#include "rmp/schemas.h"

struct number {
    const char *name;
    uint64_t value;
};

enum { GAUGES = 7, COUNTERS = 8 };

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

/* --- counters --- */

static uint64_t count_keys(const struct rmp_broker *broker)
{
    const struct list_node *node;
    uint64_t keys = 0;

    for (node = broker->sweep.head.next; node != &broker->sweep.head; node = node->next)
        keys += list_entry(node, struct rmp_known, in_sweep)->dedupe.count;
    return keys;
}

struct rmp_gauges rmp_metrics_gauges(const struct rmp_broker *broker)
{
    return (struct rmp_gauges){
        .peers = broker->memory.peers,
        .topics = broker->topics.table.count,
        .subscriptions = broker->subscriptions.table.count,
        .queued_messages = broker->queued,
        .queued_bytes = broker->copies_bytes,
        .waiting_publications = list_count(&broker->waits),
        .dedupe_keys = count_keys(broker),
    };
}

static struct snapshot take(const struct rmp_broker *broker, uint64_t epoch_ms)
{
    const struct rmp_counters *counters = &broker->counters;
    struct rmp_gauges gauges = rmp_metrics_gauges(broker);

    return (struct snapshot){
        .options = &broker->options,
        .ts_ms = epoch_ms,
        .gauges = {{"peers", gauges.peers},
                   {"topics", gauges.topics},
                   {"subscriptions", gauges.subscriptions},
                   {"queued_messages", gauges.queued_messages},
                   {"queued_bytes", gauges.queued_bytes},
                   {"waiting_publications", gauges.waiting_publications},
                   {"dedupe_keys", gauges.dedupe_keys}},
        .counters = {{"msgs_sent_total", counters->sent},
                     {"msgs_recv_total", counters->received},
                     {"msgs_dropped_total", counters->drops_ttl + counters->drops_duplicate +
                                                counters->drops_backpressure},
                     {"drops_ttl", counters->drops_ttl},
                     {"drops_duplicate", counters->drops_duplicate},
                     {"drops_backpressure", counters->drops_backpressure},
                     {"waits_total", counters->waits},
                     {"drop_notices_suppressed", counters->notices_suppressed}},
    };
}

static void put_label(struct msgpack_writer *writer, const char *name, const char *value)
{
    msgpack_put_text(writer, name);
    msgpack_put_text(writer, value != NULL ? value : "");
}

/* The first members of each snapshot, in a map of `members`. */
static void put_head(struct msgpack_writer *writer, const struct rmp_broker_options *options,
                     uint32_t members, const char *scope, uint64_t ts_ms)
{
    msgpack_put_map(writer, members);
    msgpack_put_text(writer, "v");
    msgpack_put_uint(writer, 1);
    msgpack_put_text(writer, "scope");
    msgpack_put_text(writer, scope);
    msgpack_put_text(writer, "ts_ms");
    msgpack_put_uint(writer, ts_ms);
    msgpack_put_text(writer, "interval_ms");
    msgpack_put_uint(writer, options->metrics_interval_ms);
    msgpack_put_text(writer, "labels");
    msgpack_put_map(writer, 2);
    put_label(writer, "executor_id", options->executor_id);
    put_label(writer, "node_id", options->node_id);
}

static void put_system(struct msgpack_writer *writer, const void *argument)
{
    const struct snapshot *snapshot = argument;

    put_head(writer, snapshot->options, 7, "system", snapshot->ts_ms);
    msgpack_put_text(writer, "gauges");
    put_numbers(writer, snapshot->gauges, GAUGES);
    msgpack_put_text(writer, "counters");
    put_numbers(writer, snapshot->counters, COUNTERS);
}

/* --- topics --- */

struct stats {
    const struct rmp_broker *broker;
    uint64_t ts_ms;
    const struct rmp_topic *topics[RMP_STATS_TOPICS];
    uint32_t count;
};

/* The topics that follow those of the last snapshot in the table. */
static void take_topics(struct stats *stats, struct rmp_broker *broker)
{
    const struct hash_table *table = &broker->topics.table;

    for (size_t i = 0; i < table->capacity && stats->count < RMP_STATS_TOPICS; i++) {
        const struct rmp_topic *topic;

        if (broker->stats_at >= table->capacity)
            broker->stats_at = 0;
        topic = table->slots[broker->stats_at++].item;
        if (topic != NULL)
            stats->topics[stats->count++] = topic;
    }
}

static void put_topic(struct msgpack_writer *writer, const struct rmp_topic *topic)
{
    const struct number numbers[] = {
        {"subscriptions", list_count(&topic->subscriptions)},
        {"published", topic->published},
        {"delivered", topic->delivered},
        {"dropped", topic->dropped},
        {"dedupe_keys", rmp_known_count(topic)},
    };

    msgpack_put_map(writer, 2);
    msgpack_put_text(writer, "topic");
    msgpack_put_str(writer, slice_of(topic->name, topic->name_len));
    msgpack_put_text(writer, "counts");
    put_numbers(writer, numbers, sizeof numbers / sizeof numbers[0]);
}

static void put_topics(struct msgpack_writer *writer, const void *argument)
{
    const struct stats *stats = argument;

    put_head(writer, &stats->broker->options, 7, "topics", stats->ts_ms);
    msgpack_put_text(writer, "topics_total");
    msgpack_put_uint(writer, stats->broker->topics.table.count);
    msgpack_put_text(writer, "topics");
    msgpack_put_array(writer, stats->count);
    for (uint32_t i = 0; i < stats->count; i++)
        put_topic(writer, stats->topics[i]);
}

/* --- when --- */

static bool is_topic(struct slice topic, const char *name)
{
    return slice_equal(topic, slice_of(name, strlen(name)));
}

static void plan(struct rmp_broker *broker, uint64_t now_ms)
{
    if (broker->options.metrics_interval_ms > 0 && broker->metrics_at_ms == UINT64_MAX)
        broker->metrics_at_ms = now_ms + broker->options.metrics_interval_ms;
}

void rmp_metrics_subscribed(struct rmp_broker *broker, struct slice topic, uint64_t now_ms)
{
    if (is_topic(topic, RMP_TOPIC_METRICS) || is_topic(topic, RMP_TOPIC_STATS))
        plan(broker, now_ms);
}

/* Without memory a snapshot is left out. */
static void add(struct rmp_broker *broker, struct rmp_time time, const char *topic,
                void (*put)(struct msgpack_writer *writer, const void *argument),
                const void *argument)
{
    const struct rmp_own_message own = {
        .topic = topic,
        .schema_id = RMP_SCHEMA_METRICS_SNAPSHOT,
        .trace_id = broker->own_trace_id,
        .put_payload = put,
        .argument = argument,
    };

    rmp_own_message_add(broker, &own, time);
    plan(broker, time.now_ms);
}

static void add_system(struct rmp_broker *broker, struct rmp_time time)
{
    const struct snapshot snapshot = take(broker, time.epoch_ms);

    add(broker, time, RMP_TOPIC_METRICS, put_system, &snapshot);
}

static void add_topics(struct rmp_broker *broker, struct rmp_time time)
{
    struct stats stats = {.broker = broker, .ts_ms = time.epoch_ms};

    take_topics(&stats, broker);
    add(broker, time, RMP_TOPIC_STATS, put_topics, &stats);
}

static bool has_subscription(const struct rmp_broker *broker, const char *topic)
{
    return rmp_topics_find(&broker->topics, slice_of(topic, strlen(topic))) != NULL;
}

void rmp_metrics_run(struct rmp_broker *broker, struct rmp_time time)
{
    if (time.now_ms < broker->metrics_at_ms)
        return;
    broker->metrics_at_ms = UINT64_MAX;
    if (has_subscription(broker, RMP_TOPIC_METRICS))
        add_system(broker, time);
    if (has_subscription(broker, RMP_TOPIC_STATS))
        add_topics(broker, time);
}
