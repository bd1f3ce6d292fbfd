#include "build_config.h"

#include "bus/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/service.h"
#include "bus/workers.h"
#include "process/pool.h"
#include "transport/memory.h"

/* --- workers --- */

void metrics_add_hold(struct metrics *metrics, const struct endpoint *endpoint)
{
    metrics->held[endpoint->is_worker] += endpoint->held_since_ms != 0;
    metrics->held_ms[endpoint->is_worker] += (uint64_t)deliver_held_ms(endpoint);
}

static void add_worker(struct metrics *metrics, struct metrics_pool *to,
                       const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;

    to->traffic.bytes_in += worker->carried.bytes_in;
    to->traffic.bytes_out += worker->carried.bytes_out;
    to->traffic.frames_in += worker->carried.frames_in;
    to->traffic.frames_out += worker->carried.frames_out;
    connection_add_traffic(&worker->stream.connection, &to->traffic);
    to->workers[worker->state]++;
    to->drained += peer->drained;
    to->starts += worker->starts;
    to->restarts += worker->restarts;
    to->queue += worker->stream.connection.output.bytes;
    to->in_flight[0] += workers_answering(peer);
    to->in_flight[1] += list_count(&peer->asked);
    metrics_add_hold(metrics, &worker->stream.endpoint);
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

        to->traffic.bytes_in += pool->past.carried.bytes_in;
        to->traffic.bytes_out += pool->past.carried.bytes_out;
        to->traffic.frames_in += pool->past.carried.frames_in;
        to->traffic.frames_out += pool->past.carried.frames_out;
        to->starts += pool->past.starts;
        to->restarts += pool->past.restarts;
        request_counts_add(&to->asked, &pool->group.asked);
        request_counts_add(&to->asking, &pool->group.asking);
        request_counts_add(&to->asked, &pool->stateless.asked);
        request_counts_add(&to->asking, &pool->stateless.asking);
        list_each(&pool->workers, at, following)
            add_worker(metrics, to, list_entry(at, struct worker, link));
    }
    metrics->states = workers_state_names;
}

/* --- clients, tables --- */

static void read_clients(struct stdio_bus *bus, struct metrics *metrics)
{
    struct list_node *node, *following;

    metrics->clients = bus->counters.gone;
    list_each(&bus->clients, node, following) {
        const struct client *client = list_entry(node, struct client, link);

        connection_add_traffic(&client->stream.connection, &metrics->clients);
        metrics->client_queue += client->stream.connection.output.bytes;
        metrics->client_count += !client->refused;
        metrics_add_hold(metrics, &client->stream.endpoint);
    }
    metrics->connected = bus->counters.connected;
    metrics->limited[0] = bus->router.limited_requests;
    metrics->limited[1] = bus->rate_waits;
    metrics->limited[2] = bus->idle_closed;
    metrics->http_connected = bus->counters.http_sessions;
    services_measure(bus, metrics);
}

static void read_tables(const struct stdio_bus *bus, struct metrics *metrics)
{
    const struct limits *limits = &bus->options.config->limits;
    const struct router *router = &bus->router;
    size_t i;

    metrics->sessions = router->sessions.table.count;
    metrics->requests = router->from_clients.active_count;
    metrics->abandoned = router->from_clients.abandoned_count;
    metrics->max_sessions = limits->max_sessions;
    metrics->max_requests = limits->max_pending_requests;
    metrics->max_clients = limits->max_connections;
    metrics->buffers = memory_used(&bus->transport);
    metrics->max_buffers = limits->max_memory;
    metrics->stored_answers = bus->counters.stored_answers;
    for (i = 0; i < REFUSALS; i++)
        metrics->refused[i] = bus->counters.refused[i];
    for (i = 0; i < 2; i++) {
        metrics->holds[i] = bus->counters.holds[i];
        metrics->held_ms[i] += bus->counters.held_ms[i];
    }
}

/* --- the process --- */

/* Linux: the second number in /proc/self/statm; elsewhere 0. */
static uint64_t read_resident(void)
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

    metrics->version = PACKAGE_VERSION;
    metrics->reloads[0] = bus->counters.reloads[0];
    metrics->reloads[1] = bus->counters.reloads[1];
    metrics->rounds = usage.rounds;
    metrics->busy_us = usage.busy_us;
    metrics->started = (double)bus->started_epoch_ms / 1000;
    metrics->resident = read_resident();
    if (getrusage(RUSAGE_SELF, &resources) == 0)
        metrics->cpu_us = microseconds(resources.ru_utime) + microseconds(resources.ru_stime);
}

void metrics_of_bus(struct stdio_bus *bus, struct json_text *to)
{
    struct metrics_pool *pools = calloc(list_count(&bus->pools) + 1, sizeof *pools);
    struct metrics metrics = {.version = ""};

    if (pools == NULL) {
        to->failed = true;
        return;
    }
    read_pools(bus, &metrics, pools);
    read_clients(bus, &metrics);
    read_tables(bus, &metrics);
    read_process(bus, &metrics);
    metrics_write(to, &metrics);
    free(pools);
}

/* --- the text --- */

#define PREFIX "stdio_bus_"

/* A value of one pool. */
typedef uint64_t pool_value_fn(const struct metrics_pool *pool, size_t which);

/* --- lines --- */

static void head(struct json_text *to, const char *name, const char *type, const char *help)
{
    json_text_literal(to, "# HELP ");
    json_text_literal(to, name);
    json_text_literal(to, " ");
    json_text_literal(to, help);
    json_text_literal(to, "\n# TYPE ");
    json_text_literal(to, name);
    json_text_literal(to, " ");
    json_text_literal(to, type);
    json_text_literal(to, "\n");
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

static void put_count(struct json_text *to, uint64_t value)
{
    json_text_format(to, " %" PRIu64 "\n", value);
}

/* Milliseconds or microseconds as seconds, exactly. */
static void seconds(struct json_text *to, uint64_t value, unsigned per_second)
{
    if (per_second == 1000)
        json_text_format(to, " %" PRIu64 ".%03u\n", value / 1000, (unsigned)(value % 1000));
    else
        json_text_format(to, " %" PRIu64 ".%06u\n", value / 1000000, (unsigned)(value % 1000000));
}

static void single(struct json_text *to, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    head(to, name, type, help);
    json_text_literal(to, name);
    put_count(to, value);
}

/* A line NAME{LABEL="VALUE"} N for each value. */
static void labelled(struct json_text *to, const char *name, const char *key,
                     const char *const *values, const uint64_t *counts, size_t number)
{
    size_t i;

    for (i = 0; i < number; i++) {
        json_text_literal(to, name);
        json_text_format(to, "{%s=", key);
        label(to, slice_of(values[i], strlen(values[i])));
        json_text_literal(to, "}");
        put_count(to, counts[i]);
    }
}

/* A line for each pool and value of a second label, if there is one. */
static void of_pools(struct json_text *to, const struct metrics *metrics, const char *name,
                     const char *key, const char *const *values, size_t number,
                     pool_value_fn *value)
{
    size_t i, j;

    for (i = 0; i < metrics->pool_count; i++) {
        for (j = 0; j < number; j++) {
            json_text_literal(to, name);
            json_text_literal(to, "{pool=");
            label(to, metrics->pools[i].id);
            if (key != NULL) {
                json_text_format(to, ",%s=", key);
                label(to, slice_of(values[j], strlen(values[j])));
            }
            json_text_literal(to, "}");
            put_count(to, value(&metrics->pools[i], j));
        }
    }
}

/* --- messages --- */

static const char *const directions[] = {"received", "sent"};

static uint64_t pool_messages(const struct metrics_pool *pool, size_t which)
{
    return which == 0 ? pool->traffic.frames_in : pool->traffic.frames_out;
}

static uint64_t pool_bytes(const struct metrics_pool *pool, size_t which)
{
    return which == 0 ? pool->traffic.bytes_in : pool->traffic.bytes_out;
}

static void write_messages(struct json_text *to, const struct metrics *metrics)
{
    const uint64_t messages[] = {metrics->clients.frames_in, metrics->clients.frames_out};
    const uint64_t bytes[] = {metrics->clients.bytes_in, metrics->clients.bytes_out};

    head(to, PREFIX "client_messages_total", "counter",
         "Messages that the daemon received from clients and sent to them.");
    labelled(to, PREFIX "client_messages_total", "direction", directions, messages, 2);
    head(to, PREFIX "client_bytes_total", "counter",
         "Bytes that the daemon received from clients and sent to them.");
    labelled(to, PREFIX "client_bytes_total", "direction", directions, bytes, 2);
    head(to, PREFIX "pool_messages_total", "counter",
         "Messages that the daemon received from the workers of a pool and sent to them.");
    of_pools(to, metrics, PREFIX "pool_messages_total", "direction", directions, 2, pool_messages);
    head(to, PREFIX "pool_bytes_total", "counter",
         "Bytes that the daemon received from the workers of a pool and sent to them.");
    of_pools(to, metrics, PREFIX "pool_bytes_total", "direction", directions, 2, pool_bytes);
}

/* --- requests --- */

static const char *const outcomes[OUTCOMES] = {
    [OUTCOME_RESULT] = "result",         [OUTCOME_ERROR] = "error",
    [OUTCOME_LOST] = "answer_lost",      [OUTCOME_ANSWERER_LEFT] = "answerer_left",
    [OUTCOME_ASKER_LEFT] = "asker_left", [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_TIMED_OUT] = "timed_out",
};

static uint64_t asked(const struct metrics_pool *pool, size_t which)
{
    return pool->asked.outcomes[which];
}

static uint64_t asking(const struct metrics_pool *pool, size_t which)
{
    return pool->asking.outcomes[which];
}

static const char *const askers[] = {"client", "worker"};

static uint64_t in_flight(const struct metrics_pool *pool, size_t which)
{
    return pool->in_flight[which];
}

static void write_histogram(struct json_text *to, const struct metrics_pool *pool)
{
    const char *name = PREFIX "request_duration_seconds";
    uint64_t answers = pool->asked.outcomes[OUTCOME_RESULT] + pool->asked.outcomes[OUTCOME_ERROR];
    uint64_t sum = 0;
    size_t i;

    for (i = 0; i <= OUTCOME_BUCKETS; i++) {
        json_text_literal(to, name);
        json_text_literal(to, "_bucket{pool=");
        label(to, pool->id);
        if (i < OUTCOME_BUCKETS) {
            sum += pool->asked.buckets[i];
            json_text_format(to, ",le=\"%g\"}", (double)outcome_bucket_ms[i] / 1000);
            put_count(to, sum);
        } else {
            json_text_literal(to, ",le=\"+Inf\"}");
            put_count(to, answers);
        }
    }
    json_text_literal(to, name);
    json_text_literal(to, "_sum{pool=");
    label(to, pool->id);
    json_text_literal(to, "}");
    seconds(to, pool->asked.total_ms, 1000);
    json_text_literal(to, name);
    json_text_literal(to, "_count{pool=");
    label(to, pool->id);
    json_text_literal(to, "}");
    put_count(to, answers);
}

static const char *const limit_names[METRICS_LIMITS] = {"max_requests_per_client",
                                                        "max_message_rate", "idle_timeout_sec"};

static void write_requests(struct json_text *to, const struct metrics *metrics)
{
    size_t i;

    head(to, PREFIX "requests_total", "counter",
         "Requests of clients to the workers of a pool that are over, by outcome.");
    of_pools(to, metrics, PREFIX "requests_total", "outcome", outcomes, OUTCOMES, asked);
    head(to, PREFIX "worker_requests_total", "counter",
         "Requests of the workers of a pool to clients that are over, by outcome.");
    of_pools(to, metrics, PREFIX "worker_requests_total", "outcome", outcomes, OUTCOMES, asking);
    head(to, PREFIX "requests_in_flight", "gauge", "Requests that wait for their answer.");
    of_pools(to, metrics, PREFIX "requests_in_flight", "asker", askers, 2, in_flight);
    head(to, PREFIX "request_duration_seconds", "histogram",
         "Time from a client's request to its answer, in whole milliseconds.");
    for (i = 0; i < metrics->pool_count; i++)
        write_histogram(to, &metrics->pools[i]);
    single(to, PREFIX "stored_answers_total", "counter",
           "Requests that got what another client was answered.", metrics->stored_answers);
    head(to, PREFIX "limited_total", "counter",
         "Requests refused, messages that waited and clients disconnected by limits of a client.");
    labelled(to, PREFIX "limited_total", "limit", limit_names, metrics->limited, METRICS_LIMITS);
    head(to, PREFIX "refused_total", "counter", "Connections and messages refused, by reason.");
    labelled(to, PREFIX "refused_total", "reason", refusal_names, metrics->refused, REFUSALS);
}

/* --- waiting --- */

static uint64_t pool_queue(const struct metrics_pool *pool, size_t which)
{
    (void)which;
    return pool->queue;
}

static void write_waiting(struct json_text *to, const struct metrics *metrics)
{
    size_t i;

    single(to, PREFIX "client_queue_bytes", "gauge", "Bytes that wait for clients to read.",
           metrics->client_queue);
    head(to, PREFIX "pool_queue_bytes", "gauge", "Bytes that wait for workers to read.");
    of_pools(to, metrics, PREFIX "pool_queue_bytes", NULL, NULL, 1, pool_queue);
    head(to, PREFIX "held", "gauge", "Peers whose input is held.");
    labelled(to, PREFIX "held", "peer", askers, metrics->held, 2);
    head(to, PREFIX "holds_total", "counter", "How often the input of a peer was held.");
    labelled(to, PREFIX "holds_total", "peer", askers, metrics->holds, 2);
    head(to, PREFIX "held_seconds_total", "counter", "Time for which the input of peers was held.");
    for (i = 0; i < 2; i++) {
        json_text_format(to, PREFIX "held_seconds_total{peer=\"%s\"}", askers[i]);
        seconds(to, metrics->held_ms[i], 1000);
    }
}

/* --- workers, clients, tables --- */

static uint64_t workers(const struct metrics_pool *pool, size_t which)
{
    return pool->workers[which];
}

static uint64_t drained(const struct metrics_pool *pool, size_t which)
{
    (void)which;
    return pool->drained;
}

static uint64_t starts(const struct metrics_pool *pool, size_t which)
{
    (void)which;
    return pool->starts;
}

static uint64_t restarts(const struct metrics_pool *pool, size_t which)
{
    (void)which;
    return pool->restarts;
}

static void write_workers(struct json_text *to, const struct metrics *metrics)
{
    head(to, PREFIX "workers", "gauge", "Workers by state.");
    of_pools(to, metrics, PREFIX "workers", "state", metrics->states, METRICS_STATES, workers);
    head(to, PREFIX "workers_drained", "gauge", "Workers that get nothing new.");
    of_pools(to, metrics, PREFIX "workers_drained", NULL, NULL, 1, drained);
    head(to, PREFIX "worker_starts_total", "counter", "Processes that were executed.");
    of_pools(to, metrics, PREFIX "worker_starts_total", NULL, NULL, 1, starts);
    head(to, PREFIX "worker_restarts_total", "counter",
         "Processes that ended without being told to, and were to be restarted.");
    of_pools(to, metrics, PREFIX "worker_restarts_total", NULL, NULL, 1, restarts);
}

static void write_tables(struct json_text *to, const struct metrics *metrics)
{
    static const char *const tables[] = {"clients", "sessions", "requests", "abandoned_requests"};
    const uint64_t used[] = {metrics->client_count + metrics->http_sessions, metrics->sessions,
                             metrics->requests, metrics->abandoned};
    const uint64_t most[] = {metrics->max_clients, metrics->max_sessions, metrics->max_requests,
                             metrics->max_requests};

    single(to, PREFIX "clients", "gauge", "Clients that are connected.", metrics->client_count);
    single(to, PREFIX "connections_total", "counter", "Clients that were connected, ever.",
           metrics->connected);
    single(to, PREFIX "http_sessions", "gauge", "Sessions of MCP over HTTP.",
           metrics->http_sessions);
    single(to, PREFIX "http_sessions_total", "counter", "Sessions of MCP over HTTP, ever.",
           metrics->http_connected);
    single(to, PREFIX "rmp_clients", "gauge", "Clients of the RMP socket.", metrics->rmp_clients);
    single(to, PREFIX "control_clients", "gauge", "Clients of the control socket.",
           metrics->control_clients);
    single(to, PREFIX "sessions", "gauge", "Sessions.", metrics->sessions);
    head(to, PREFIX "table_entries", "gauge", "Entries of the tables that have a limit.");
    labelled(to, PREFIX "table_entries", "table", tables, used, 4);
    head(to, PREFIX "table_limit", "gauge", "The limits of these tables.");
    labelled(to, PREFIX "table_limit", "table", tables, most, 4);
}

/* --- the topic bus --- */

static void write_topics(struct json_text *to, const struct metrics *metrics)
{
    static const char *const reasons[] = {"ttl_expired", "duplicate", "backpressure_timeout"};
    const struct rmp_counters *counters = &metrics->topics;
    const struct rmp_gauges *now = &metrics->topics_now;
    const uint64_t drops[] = {counters->drops_ttl, counters->drops_duplicate,
                              counters->drops_backpressure};
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } singles[] = {
        {"publications_total", "counter", "Publications that were not refused.",
         counters->received},
        {"deliveries_total", "counter", "Messages that subscribers got.", counters->sent},
        {"replays_total", "counter", "Kept events that new subscribers asked for.",
         counters->replayed},
        {"waits_total", "counter", "Publications that waited for a subscriber.", counters->waits},
        {"notices_suppressed_total", "counter", "Drops without a notice on rlp/sys/drops.",
         counters->notices_suppressed},
        {"topics", "gauge", "Topics that have a subscription.", now->topics},
        {"subscriptions", "gauge", "Subscriptions.", now->subscriptions},
        {"dedupe_keys", "gauge", "Messages by which duplicates are known.", now->dedupe_keys},
        {"queued_messages", "gauge", "Messages that wait for subscribers.", now->queued_messages},
        {"queued_bytes", "gauge", "Bytes of these messages.", now->queued_bytes},
        {"waiting_publications", "gauge", "Publications that wait.", now->waiting_publications},
        {"history_runs", "gauge", "Runs whose events are kept.", metrics->history_runs},
        {"history_events", "gauge", "Events that are kept.", metrics->history_events},
        {"history_bytes", "gauge", "Bytes of these events and runs.", metrics->history_bytes},
        {"history_write_errors_total", "counter", "Failed writes of files of the history.",
         metrics->history_failures},
    };
    char name[64];

    head(to, PREFIX "rmp_drops_total", "counter", "Messages of the topic bus dropped, by reason.");
    labelled(to, PREFIX "rmp_drops_total", "reason", reasons, drops, 3);
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        snprintf(name, sizeof name, PREFIX "rmp_%s", singles[i].name);
        single(to, name, singles[i].type, singles[i].help, singles[i].value);
    }
}

/* --- the process --- */

static void write_process(struct json_text *to, const struct metrics *metrics)
{
    static const char *const results[] = {"failed", "done"};

    single(to, PREFIX "buffer_bytes", "gauge", "Memory of all buffers.", metrics->buffers);
    single(to, PREFIX "buffer_limit_bytes", "gauge", "max_memory.", metrics->max_buffers);
    head(to, PREFIX "reloads_total", "counter", "Reloads of the configuration.");
    labelled(to, PREFIX "reloads_total", "result", results, metrics->reloads, 2);
    single(to, PREFIX "loop_rounds_total", "counter", "Rounds of the event loop.", metrics->rounds);
    head(to, PREFIX "loop_busy_seconds_total", "counter",
         "Time in which the event loop did not wait.");
    json_text_literal(to, PREFIX "loop_busy_seconds_total");
    seconds(to, metrics->busy_us, 1000000);
    head(to, "process_cpu_seconds_total", "counter", "CPU time of the daemon.");
    json_text_literal(to, "process_cpu_seconds_total");
    seconds(to, metrics->cpu_us, 1000000);
    head(to, "process_start_time_seconds", "gauge", "Start of the daemon, since 1970.");
    json_text_format(to, "process_start_time_seconds %.3f\n", metrics->started);
    if (metrics->resident > 0)
        single(to, "process_resident_memory_bytes", "gauge", "Resident memory of the daemon.",
               metrics->resident);
}

void metrics_write(struct json_text *to, const struct metrics *metrics)
{
    head(to, PREFIX "build_info", "gauge", "The version.");
    json_text_format(to, PREFIX "build_info{version=\"%s\"} 1\n", metrics->version);
    write_messages(to, metrics);
    write_requests(to, metrics);
    write_waiting(to, metrics);
    write_workers(to, metrics);
    write_tables(to, metrics);
    if (metrics->has_topics)
        write_topics(to, metrics);
    write_process(to, metrics);
}
