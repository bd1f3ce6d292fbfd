#include "build_config.h"

#include "monitor/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/service.h"
#include "process/pool.h"
#include "supervisor/workers.h"
#include "transport/memory.h"

/* --- what is measured --- */

/* The times of requests are measured from now on: those in flight have none yet. */
static void stamp_requests(struct worker *worker)
{
    struct peer *peer = &worker->stream.endpoint.peer;
    struct stdio_bus *bus = worker->stream.endpoint.bus;
    struct list_node *node, *following;

    list_each(&peer->answering, node, following)
        list_entry(node, struct request, in_answerer)->asked_ms = bus->router.now_ms;
    list_each(&peer->asked, node, following)
        list_entry(node, struct request, in_asker)->asked_ms = bus->router.now_ms;
}

void metrics_start(struct stdio_bus *bus)
{
    if (bus->router.measures)
        return;
    router_measure(&bus->router);
    event_loop_measure(bus->loop);
    bus_read_clock(bus);
    workers_each(bus, stamp_requests);
}

/* --- workers --- */

static void add_hold(struct metrics *metrics, const struct endpoint *endpoint)
{
    metrics->held[endpoint->is_worker] += endpoint->held_since_ms != 0;
    metrics->held_ms[endpoint->is_worker] += (uint64_t)deliver_held_ms(endpoint);
}

static void by_direction(uint64_t messages[2], uint64_t bytes[2], const struct traffic *traffic)
{
    messages[0] = traffic->frames_in;
    messages[1] = traffic->frames_out;
    bytes[0] = traffic->bytes_in;
    bytes[1] = traffic->bytes_out;
}

static void add_worker(struct metrics *metrics, struct metrics_pool *to,
                       const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;

    traffic_add(&to->traffic, &worker->carried);
    connection_add_traffic(&worker->stream.connection, &to->traffic);
    to->workers[worker->state]++;
    to->drained += peer->drained;
    to->starts += worker->starts;
    to->restarts += worker->restarts;
    to->queue += worker->stream.connection.output.bytes;
    to->in_flight[0] += workers_answering(peer);
    to->in_flight[1] += list_count(&peer->asked);
    add_hold(metrics, &worker->stream.endpoint);
}

/* Two pools have one name while one of them departs (reload/reload.h). */
static struct metrics_pool *pool_named(struct metrics *metrics, struct metrics_pool *pools,
                                       struct slice id)
{
    for (size_t i = 0; i < metrics->pool_count; i++) {
        if (slice_equal(pools[i].id, id))
            return &pools[i];
    }
    pools[metrics->pool_count].id = id;
    return &pools[metrics->pool_count++];
}

static void read_pools(struct stdio_bus *bus, struct metrics *metrics, struct metrics_pool *pools)
{
    struct list_node *node, *next_pool, *at, *following;

    metrics->pools = pools;
    list_each(&bus->pools, node, next_pool) {
        const struct pool *pool = list_entry(node, struct pool, link);
        struct metrics_pool *to = pool_named(metrics, pools, pool->group.id);

        traffic_add(&to->traffic, &pool->past.carried);
        to->starts += pool->past.starts;
        to->restarts += pool->past.restarts;
        request_counts_add(&to->asked, &pool->group.asked);
        request_counts_add(&to->asking, &pool->group.asking);
        request_counts_add(&to->asked, &pool->stateless.asked);
        request_counts_add(&to->asking, &pool->stateless.asking);
        list_each(&pool->workers, at, following)
            add_worker(metrics, to, list_entry(at, struct worker, link));
        by_direction(to->messages, to->bytes, &to->traffic);
    }
}

/* --- clients, tables --- */

/* Of a client of a service, which counts for max_connections too. */
static void add_report(void *user_data, const struct client_report *report)
{
    struct metrics *metrics = user_data;

    metrics->held[0] += report->hold.is_held;
    metrics->held_ms[0] += (uint64_t)report->hold.ms;
    metrics->entries[0]++;
}

static void read_clients(struct stdio_bus *bus, struct metrics *metrics)
{
    struct list_node *node, *following;
    struct traffic traffic = bus->counters.gone;

    list_each(&bus->clients.list, node, following) {
        const struct client *client = client_at(node);

        connection_add_traffic(&client->stream.connection, &traffic);
        metrics->client_queue += client->stream.connection.output.bytes;
        metrics->client_count += !client->visitor.refused;
        add_hold(metrics, &client->stream.endpoint);
    }
    metrics->limited[0] = bus->router.limited_requests;
    metrics->limited[1] = bus->rate_waits;
    metrics->limited[2] = bus->idle_closed;
    by_direction(metrics->messages, metrics->bytes, &traffic);
    metrics->entries[0] = metrics->client_count;
    each_service(bus, at, each_report)
        at.service->each_report(at.state, add_report, metrics);
}

static void read_tables(const struct stdio_bus *bus, struct metrics *metrics)
{
    const struct limits *limits = &bus->options.config->limits;
    const struct router *router = &bus->router;

    metrics->sessions = router->sessions.table.count;
    metrics->entries[1] = metrics->sessions;
    metrics->entries[2] = router->from_clients.active_count;
    metrics->entries[3] = router->from_clients.abandoned_count;
    metrics->limits[0] = limits->max_connections;
    metrics->limits[1] = limits->max_sessions;
    metrics->limits[2] = metrics->limits[3] = limits->max_pending_requests;
    metrics->buffers = memory_used(&bus->transport);
    metrics->max_buffers = limits->max_memory;
    for (size_t i = 0; i < 2; i++)
        metrics->held_ms[i] += bus->counters.held_ms[i];
}

/* --- the process --- */

/* Linux: the second number in /proc/self/statm. */
uint64_t metrics_resident(void)
{
    char text[64];
    const char *at;
    long page = sysconf(_SC_PAGESIZE);
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (len <= 0 || page <= 0)
        return 0;
    text[len] = '\0';
    at = strchr(text, ' ');
    return at != NULL ? strtoull(at, NULL, 10) * (uint64_t)page : 0;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void read_process(const struct stdio_bus *bus, struct metrics *metrics)
{
    struct event_usage usage = event_loop_usage(bus->loop);
    struct rusage resources;

    metrics->rounds = usage.rounds;
    metrics->busy_us = usage.busy_us;
    metrics->started_ms = (uint64_t)bus->started_epoch_ms;
    metrics->resident = metrics_resident();
    if (getrusage(RUSAGE_SELF, &resources) == 0)
        metrics->cpu_us = microseconds(resources.ru_utime) + microseconds(resources.ru_stime);
}

static void read_services(const struct stdio_bus *bus, struct metrics *metrics)
{
    for (size_t i = 0; i < bus->service_count; i++) {
        const struct service *service = bus->options.services[i];
        void *state = bus->services[i];

        metrics->services[i] = state != NULL && service->measure != NULL ? service->measure(state)
                                                                         : state;
    }
}

void metrics_of_bus(struct stdio_bus *bus, struct json_text *to)
{
    struct metrics_pool *pools = calloc(list_count(&bus->pools) + 1, sizeof *pools);
    struct metrics metrics = {.bus = bus};

    if (pools == NULL) {
        to->failed = true;
        return;
    }
    read_pools(bus, &metrics, pools);
    read_clients(bus, &metrics);
    read_tables(bus, &metrics);
    read_process(bus, &metrics);
    read_services(bus, &metrics);
    metrics_write(to, &metrics);
    free(pools);
}

/* --- the text of one metric --- */

static void head(struct json_text *to, const char *name, const char *type, const char *help)
{
    const char *const parts[] = {"# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n"};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        json_text_literal(to, parts[i]);
}

/* The value of a label. */
static void label(struct json_text *to, struct slice value)
{
    size_t i;

    json_text_literal(to, "\"");
    for (i = 0; i < value.len; i++) {
        char c = value.data[i];

        if (c == '\n')
            json_text_literal(to, "\\n");
        else if (c == '"' || c == '\\')
            json_text_format(to, "\\%c", c);
        else
            json_text_add(to, slice_of(&c, 1));
    }
    json_text_literal(to, "\"");
}

/* Times are exact. */
static void put_value(struct json_text *to, uint64_t value, enum metric_unit unit)
{
    if (unit == METRIC_MS)
        json_text_format(to, " %" PRIu64 ".%03u\n", value / 1000, (unsigned)(value % 1000));
    else if (unit == METRIC_US)
        json_text_format(to, " %" PRIu64 ".%06u\n", value / 1000000, (unsigned)(value % 1000000));
    else
        json_text_format(to, " %" PRIu64 "\n", value);
}

static uint64_t value_of(const struct metric *metric, const void *values, size_t which)
{
    const char *at = values;
    uint32_t narrow;
    uint64_t wide;

    if (at == NULL)
        return 0;
    at += metric->offset;
    if (metric->size == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at + which * sizeof wide, sizeof wide);
    return wide;
}

/* A line NAME{pool="ID",LABEL="WORD"} VALUE for each value, without what there is not. */
static void put_lines(struct json_text *to, const struct metric *metric, const struct slice *pool,
                      const void *values)
{
    size_t count = metric->label != NULL ? metric->size / sizeof(uint64_t) : 1;

    for (size_t i = 0; i < count; i++) {
        json_text_literal(to, metric->name);
        if (pool != NULL) {
            json_text_literal(to, "{pool=");
            label(to, *pool);
        }
        if (metric->label != NULL) {
            json_text_format(to, "%s%s=", pool != NULL ? "," : "{", metric->label);
            label(to, slice_of_text(metric->words[i]));
        }
        if (pool != NULL || metric->label != NULL)
            json_text_literal(to, "}");
        put_value(to, value_of(metric, values, i), metric->unit);
    }
}

void metrics_put_head(struct json_text *to, const struct metric *metric)
{
    size_t len = strlen(metric->name);
    bool is_total = len > 6 && strcmp(metric->name + len - 6, "_total") == 0;

    head(to, metric->name, is_total ? "counter" : "gauge", metric->help);
}

void metrics_put_of_label(struct json_text *to, const char *name, const char *label_name,
                          struct slice word, uint64_t value, enum metric_unit unit)
{
    json_text_format(to, "%s{%s=", name, label_name);
    label(to, word);
    json_text_literal(to, "}");
    put_value(to, value, unit);
}

/* 0 for all values if there is no struct. */
static void write_metric(struct json_text *to, const struct metric *metric, const void *values)
{
    if (metric->may_lack && value_of(metric, values, 0) == 0)
        return;
    if (metric->write != NULL) {
        metric->write(to, values);
        return;
    }
    metrics_put_head(to, metric);
    put_lines(to, metric, NULL, values);
}

static void write_of_pools(struct json_text *to, const struct metric *metric,
                           const struct metrics *metrics)
{
    metrics_put_head(to, metric);
    for (size_t i = 0; i < metrics->pool_count; i++)
        put_lines(to, metric, &metrics->pools[i].id, &metrics->pools[i]);
}

/* --- what is no plain metric --- */

static void write_version(struct json_text *to, const void *values)
{
    (void)values;
    head(to, "stdio_bus_build_info", "gauge", "The version.");
    json_text_literal(to, "stdio_bus_build_info{version=\"" PACKAGE_VERSION "\"} 1\n");
}

#define DURATION "stdio_bus_request_duration_seconds"

static void write_durations_of(struct json_text *to, const struct metrics_pool *pool)
{
    uint64_t answers = pool->asked.outcomes[OUTCOME_RESULT] + pool->asked.outcomes[OUTCOME_ERROR];
    uint64_t sum = 0;

    for (size_t i = 0; i <= OUTCOME_BUCKETS; i++) {
        json_text_literal(to, DURATION "_bucket{pool=");
        label(to, pool->id);
        if (i < OUTCOME_BUCKETS) {
            sum += pool->asked.buckets[i];
            json_text_format(to, ",le=\"%g\"}", (double)outcome_bucket_ms[i] / 1000);
        } else {
            json_text_literal(to, ",le=\"+Inf\"}");
        }
        put_value(to, i < OUTCOME_BUCKETS ? sum : answers, METRIC_NUMBER);
    }
    json_text_literal(to, DURATION "_sum{pool=");
    label(to, pool->id);
    json_text_literal(to, "}");
    put_value(to, pool->asked.total_ms, METRIC_MS);
    json_text_literal(to, DURATION "_count{pool=");
    label(to, pool->id);
    json_text_literal(to, "}");
    put_value(to, answers, METRIC_NUMBER);
}

static void write_durations(struct json_text *to, const void *values)
{
    const struct metrics *metrics = values;

    head(to, DURATION, "histogram",
         "Time from a client's request to its answer, in whole milliseconds.");
    for (size_t i = 0; i < metrics->pool_count; i++)
        write_durations_of(to, &metrics->pools[i]);
}

/* The metrics of services: those that are always there, or the others. */
static void write_services(struct json_text *to, const struct metrics *metrics, bool always)
{
    const struct stdio_bus *bus = metrics->bus;

    for (size_t i = 0; i < bus->service_count; i++) {
        const struct metric *at = bus->options.services[i]->metrics;

        for (; at != NULL && at->name != NULL; at++) {
            if (at->always == always && (always || bus->services[i] != NULL))
                write_metric(to, at, metrics->services[i]);
        }
    }
}

static void write_always(struct json_text *to, const void *values)
{
    write_services(to, values, true);
}

static void write_others(struct json_text *to, const void *values)
{
    write_services(to, values, false);
}

/* --- all metrics, in their order --- */

static const char *const directions[] = {"received", "sent"};

static const char *const outcomes[OUTCOMES] = {
    [OUTCOME_RESULT] = "result",         [OUTCOME_ERROR] = "error",
    [OUTCOME_LOST] = "answer_lost",      [OUTCOME_ANSWERER_LEFT] = "answerer_left",
    [OUTCOME_ASKER_LEFT] = "asker_left", [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_TIMED_OUT] = "timed_out",
};

static const char *const peers[] = {"client", "worker"};

static const char *const limit_names[METRICS_LIMITS] = {"max_requests_per_client",
                                                        "max_message_rate", "idle_timeout_sec"};

static const char *const tables[METRICS_TABLES] = {"clients", "sessions", "requests",
                                                   "abandoned_requests"};

static const char *const results[] = {"failed", "done"};

#define OF_BUS(member) METRIC_AT(struct metrics, member)
#define OF_POOL(member) .of = METRIC_OF_POOLS, METRIC_AT(struct metrics_pool, member)
#define COUNTED(member) .of = METRIC_OF_COUNTERS, METRIC_AT(struct bus_counters, member)
#define LABEL(name, list) .label = (name), .words = (list)

static const struct metric rows[] = {
    {.write = write_version},
    {"stdio_bus_client_messages_total",
     "Messages that the daemon received from clients and sent to them.",
     LABEL("direction", directions), OF_BUS(messages)},
    {"stdio_bus_client_bytes_total",
     "Bytes that the daemon received from clients and sent to them.",
     LABEL("direction", directions), OF_BUS(bytes)},
    {"stdio_bus_pool_messages_total",
     "Messages that the daemon received from the workers of a pool and sent to them.",
     LABEL("direction", directions), OF_POOL(messages)},
    {"stdio_bus_pool_bytes_total",
     "Bytes that the daemon received from the workers of a pool and sent to them.",
     LABEL("direction", directions), OF_POOL(bytes)},
    {"stdio_bus_requests_total",
     "Requests of clients to the workers of a pool that are over, by outcome.",
     LABEL("outcome", outcomes), OF_POOL(asked.outcomes)},
    {"stdio_bus_worker_requests_total",
     "Requests of the workers of a pool to clients that are over, by outcome.",
     LABEL("outcome", outcomes), OF_POOL(asking.outcomes)},
    {"stdio_bus_requests_in_flight", "Requests that wait for their answer.", LABEL("asker", peers),
     OF_POOL(in_flight)},
    {.write = write_durations},
    {"stdio_bus_stored_answers_total", "Requests that got what another client was answered.",
     COUNTED(stored_answers)},
    {"stdio_bus_limited_total",
     "Requests refused, messages that waited and clients disconnected by limits of a client.",
     LABEL("limit", limit_names), OF_BUS(limited)},
    {"stdio_bus_refused_total", "Connections and messages refused, by reason.",
     LABEL("reason", refusal_names), COUNTED(refused)},
    {"stdio_bus_client_queue_bytes", "Bytes that wait for clients to read.", OF_BUS(client_queue)},
    {"stdio_bus_pool_queue_bytes", "Bytes that wait for workers to read.", OF_POOL(queue)},
    {"stdio_bus_held", "Peers whose input is held.", LABEL("peer", peers), OF_BUS(held)},
    {"stdio_bus_holds_total", "How often the input of a peer was held.", LABEL("peer", peers),
     COUNTED(holds)},
    {"stdio_bus_held_seconds_total", "Time for which the input of peers was held.",
     LABEL("peer", peers), OF_BUS(held_ms), .unit = METRIC_MS},
    {"stdio_bus_workers", "Workers by state.", LABEL("state", workers_state_names),
     OF_POOL(workers)},
    {"stdio_bus_workers_drained", "Workers that get nothing new.", OF_POOL(drained)},
    {"stdio_bus_worker_starts_total", "Processes that were executed.", OF_POOL(starts)},
    {"stdio_bus_worker_restarts_total",
     "Processes that ended without being told to, and were to be restarted.", OF_POOL(restarts)},
    {"stdio_bus_clients", "Clients that are connected.", OF_BUS(client_count)},
    {"stdio_bus_connections_total", "Clients that were connected, ever.", COUNTED(connected)},
    {.write = write_always},
    {"stdio_bus_sessions", "Sessions.", OF_BUS(sessions)},
    {"stdio_bus_table_entries", "Entries of the tables that have a limit.", LABEL("table", tables),
     OF_BUS(entries)},
    {"stdio_bus_table_limit", "The limits of these tables.", LABEL("table", tables),
     OF_BUS(limits)},
    {.write = write_others},
    {"stdio_bus_buffer_bytes", "Memory of all buffers.", OF_BUS(buffers)},
    {"stdio_bus_buffer_limit_bytes", "max_memory.", OF_BUS(max_buffers)},
    {"stdio_bus_reloads_total", "Reloads of the configuration.", LABEL("result", results),
     COUNTED(reloads)},
    {"stdio_bus_loop_rounds_total", "Rounds of the event loop.", OF_BUS(rounds)},
    {"stdio_bus_loop_busy_seconds_total", "Time in which the event loop did not wait.",
     OF_BUS(busy_us), .unit = METRIC_US},
    {"process_cpu_seconds_total", "CPU time of the daemon.", OF_BUS(cpu_us), .unit = METRIC_US},
    {"process_start_time_seconds", "Start of the daemon, since 1970.", OF_BUS(started_ms),
     .unit = METRIC_MS},
    {"process_resident_memory_bytes", "Resident memory of the daemon.", OF_BUS(resident),
     .may_lack = true},
};

void metrics_write(struct json_text *to, const struct metrics *metrics)
{
    for (const struct metric *row = rows; row < rows + sizeof rows / sizeof rows[0]; row++) {
        if (row->write != NULL)
            row->write(to, metrics);
        else if (row->of == METRIC_OF_POOLS)
            write_of_pools(to, row, metrics);
        else if (row->of == METRIC_OF_COUNTERS)
            write_metric(to, row, &metrics->bus->counters);
        else
            write_metric(to, row, metrics);
    }
}
