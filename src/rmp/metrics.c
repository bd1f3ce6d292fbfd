#include "build_config.h"

#include "rmp/metrics.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/list.h"
#include "rmp/known.h"
#include "rmp/message.h"
#include "rmp/schemas.h"

#define TTL_MS 5000

/* meta.topic as in any frame: a client with many subscriptions sees which one it is for. */
static void put_body(struct msgpack_writer *writer, const struct rmp_own_message *own)
{
    const struct rmp_schemas registry = {.added = NULL};

    msgpack_put_map(writer, 3);
    msgpack_put_text(writer, "type");
    msgpack_put_text(writer, rmp_schemas_find(&registry, own->schema_id)->type);
    msgpack_put_text(writer, "payload");
    own->put_payload(writer, own->argument);
    msgpack_put_text(writer, "meta");
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "topic");
    msgpack_put_text(writer, own->topic);
}

/* Adds it to broker->own. STDIO_BUS_ERR if out of memory. */
static int rmp_own_message_add(struct rmp_broker *broker, const struct rmp_own_message *own,
                               struct rmp_time time)
{
    struct msgpack_writer writer = {.to = NULL};
    struct rmp_message *message;
    struct rmp_header *header;

    put_body(&writer, own);
    message = rmp_message_create(slice_of(own->topic, strlen(own->topic)),
                                 RMP_BODY_OFFSET + writer.len, &broker->copies_bytes);
    if (message == NULL) {
        broker->counters.no_memory++;
        return STDIO_BUS_ERR;
    }
    header = &message->publication.header;
    *header = (struct rmp_header){.schema_id = own->schema_id,
                                  .body_len = (uint32_t)writer.len,
                                  .created_at_ms = time.epoch_ms,
                                  .ttl_ms = TTL_MS,
                                  .trace_id = own->trace_id,
                                  .msg_id = ++broker->own_msg_id};
    rmp_header_write_prefixed(rmp_message_frame(message), header);
    writer = (struct msgpack_writer){.to = rmp_message_frame(message) + RMP_BODY_OFFSET,
                                     .size = writer.len};
    put_body(&writer, own);
    ASSERT(msgpack_fits(&writer) && writer.len == header->body_len);
    message->expires_at_ms = time.epoch_ms + TTL_MS;
    list_append(&broker->own, &message->in_own);
    return STDIO_BUS_OK;
}

#define TOKEN 1000 /* thousandths */

struct notice {
    enum rmp_drop_reason reason;
    const struct rmp_publication *publication;
    uint64_t expires_at_ms, observed_at_ms, suppressed;
};

static const char *const reasons[] = {
    [RMP_DROP_TTL_EXPIRED] = "ttl_expired",
    [RMP_DROP_DUPLICATE] = "duplicate",
    [RMP_DROP_BACKPRESSURE_TIMEOUT] = "backpressure_timeout",
};

void rmp_notices_init(struct rmp_broker *broker)
{
    broker->notice_tokens = RMP_NOTICE_TOKENS_MAX;
}

static void put_uint(struct msgpack_writer *writer, const char *name, uint64_t value)
{
    msgpack_put_text(writer, name);
    msgpack_put_uint(writer, value);
}

static void put_payload(struct msgpack_writer *writer, const void *argument)
{
    const struct notice *notice = argument;
    const struct rmp_publication *publication = notice->publication;
    bool has_body = notice->reason == RMP_DROP_TTL_EXPIRED;
    struct slice body = rmp_publication_body(publication);
    char trace_id[RMP_ID_LEN];

    rmp_id_write(trace_id, publication->header.trace_id);
    if (body.len > RMP_NOTICE_BODY_MAX)
        body.len = RMP_NOTICE_BODY_MAX;
    msgpack_put_map(writer, 7U + has_body + (notice->suppressed > 0));
    put_uint(writer, "v", 1);
    msgpack_put_text(writer, "reason");
    msgpack_put_text(writer, reasons[notice->reason]);
    msgpack_put_text(writer, "topic");
    msgpack_put_str(writer, publication->topic);
    msgpack_put_text(writer, "trace_id");
    msgpack_put_bin(writer, slice_of(trace_id, sizeof trace_id));
    put_uint(writer, "msg_id", publication->header.msg_id);
    put_uint(writer, "expires_at_ms", notice->expires_at_ms);
    put_uint(writer, "observed_at_ms", notice->observed_at_ms);
    if (has_body) {
        msgpack_put_text(writer, "body");
        msgpack_put_bin(writer, body);
    }
    if (notice->suppressed > 0)
        put_uint(writer, "suppressed", notice->suppressed);
}

static bool take_token(struct rmp_broker *broker, uint64_t now_ms)
{
    const uint64_t full = RMP_NOTICE_TOKENS_MAX;
    uint64_t passed_ms = now_ms - broker->notices_at_ms;

    broker->notices_at_ms = now_ms;
    if (passed_ms >= full / RMP_NOTICES_PER_SECOND)
        broker->notice_tokens = full;
    else
        broker->notice_tokens += passed_ms * RMP_NOTICES_PER_SECOND;
    if (broker->notice_tokens > full)
        broker->notice_tokens = full;
    if (broker->notice_tokens < TOKEN)
        return false;
    broker->notice_tokens -= TOKEN;
    return true;
}

static void publish_notice(struct rmp_broker *broker, const struct notice *notice,
                           struct rmp_time time)
{
    const struct rmp_own_message own = {
        .topic = RMP_TOPIC_DROPS,
        .schema_id = RMP_SCHEMA_BUS_DROP_NOTICE,
        .trace_id = notice->publication->header.trace_id,
        .put_payload = put_payload,
        .argument = notice,
    };

    if (take_token(broker, time.now_ms) &&
        rmp_own_message_add(broker, &own, time) == STDIO_BUS_OK) {
        broker->notices_suppressed = 0;
        return;
    }
    broker->notices_suppressed++;
    broker->counters.notices_suppressed++;
}

void rmp_notices_add(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time)
{
    const struct notice notice = {
        .reason = reason,
        .publication = publication,
        .expires_at_ms = expires_at_ms,
        .observed_at_ms = time.epoch_ms,
        .suppressed = broker->notices_suppressed,
    };

    switch (reason) {
    case RMP_DROP_TTL_EXPIRED:
        broker->counters.drops_ttl++;
        break;
    case RMP_DROP_DUPLICATE:
        broker->counters.drops_duplicate++;
        break;
    case RMP_DROP_BACKPRESSURE_TIMEOUT:
        broker->counters.drops_backpressure++;
        break;
    }
    if (!rmp_topic_is_system(publication->topic) &&
        rmp_topics_find(&broker->topics, slice_of(RMP_TOPIC_DROPS, strlen(RMP_TOPIC_DROPS))) !=
            NULL)
        publish_notice(broker, &notice, time);
}

/* The key's number is that of its last publication, which may be a duplicate that came while this
 * message waited. */
static void unsee(struct rmp_broker *broker, struct rmp_subscription *subscription,
                  const struct rmp_publication *publication)
{
    uint64_t number = rmp_known_number(broker, subscription->topic, publication);

    if (number >= subscription->since && number > 0)
        rmp_subscriptions_miss(&broker->subscriptions, subscription, number,
                               rmp_known_oldest(subscription->topic), broker->number + 1);
}

void rmp_drop_missed(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     struct rmp_subscription *subscription,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time)
{
    unsee(broker, subscription, publication);
    subscription->topic->dropped++;
    rmp_notices_add(broker, reason, publication, expires_at_ms, time);
}

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

static struct snapshot take_snapshot(const struct rmp_broker *broker, uint64_t epoch_ms)
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

static void plan(struct rmp_broker *broker, uint64_t now_ms)
{
    if (broker->options.metrics_interval_ms > 0 && broker->metrics_at_ms == UINT64_MAX)
        broker->metrics_at_ms = now_ms + broker->options.metrics_interval_ms;
}

void rmp_metrics_subscribed(struct rmp_broker *broker, struct slice topic, uint64_t now_ms)
{
    if (slice_is(topic, RMP_TOPIC_METRICS) || slice_is(topic, RMP_TOPIC_STATS))
        plan(broker, now_ms);
}

/* Without memory a snapshot is left out. */
static void publish_snapshot(struct rmp_broker *broker, struct rmp_time time, const char *topic,
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
    const struct snapshot snapshot = take_snapshot(broker, time.epoch_ms);

    publish_snapshot(broker, time, RMP_TOPIC_METRICS, put_system, &snapshot);
}

static void add_topics(struct rmp_broker *broker, struct rmp_time time)
{
    struct stats stats = {.broker = broker, .ts_ms = time.epoch_ms};

    take_topics(&stats, broker);
    publish_snapshot(broker, time, RMP_TOPIC_STATS, put_topics, &stats);
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
