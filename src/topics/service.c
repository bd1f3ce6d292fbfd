#include "build_config.h"

#include "topics/service.h"

#include "base/error.h"
#include "bus/listeners.h"
#include "monitor/metrics.h"
#include "rmp/broker_archive.h"
#include "router/router_archive.h"
#include "topics/clients.h"
#include "json/text.h"

#define MODE_DEFAULT 0660

static bool is_wanted(const struct bus_options *options)
{
    return services_socket(options, &rmp_service) != NULL;
}

static void *create(struct stdio_bus *bus)
{
    struct rmp_hub *hub = rmp_hub_create(bus, rmp_clients_due, &rmp_clients_kind);

    bus->attentive += hub != NULL;
    bus->topics = hub != NULL ? hub->broker : NULL;
    return hub;
}

static void start(void *state)
{
    struct rmp_hub *hub = state;

    rmp_bridge_start(hub->bridge);
}

static void detach(void *state)
{
    rmp_hub_detach(state);
}

static void destroy(void *state)
{
    rmp_hub_destroy(state);
}

/* What subscribers are about to get of a run is in its file before. */
static void before_writing(void *state)
{
    struct rmp_hub *hub = state;

    rmp_runs_save(hub->runs);
}

static void after_writing(void *state)
{
    rmp_hub_plan(state);
}

static void before_close(void *state)
{
    rmp_clients_before_close(state);
}

static void stop_input(void *state)
{
    rmp_clients_stop_input(state);
}

/* --- its metrics --- */

static const char *const reasons[] = {"ttl_expired", "duplicate", "backpressure_timeout"};

#define VALUE(member) METRIC_AT(struct rmp_hub_metrics, member)

static const struct metric metrics[] = {
    {"stdio_bus_rmp_clients", "Clients of the RMP socket.", VALUE(clients), .always = true},
    {"stdio_bus_rmp_drops_total", "Messages of the topic bus dropped, by reason.", "reason",
     reasons, VALUE(drops)},
    {"stdio_bus_rmp_publications_total", "Publications that were not refused.",
     VALUE(counters.received)},
    {"stdio_bus_rmp_deliveries_total", "Messages that subscribers got.", VALUE(counters.sent)},
    {"stdio_bus_rmp_replays_total", "Kept events that new subscribers asked for.",
     VALUE(counters.replayed)},
    {"stdio_bus_rmp_waits_total", "Publications that waited for a subscriber.",
     VALUE(counters.waits)},
    {"stdio_bus_rmp_notices_suppressed_total", "Drops without a notice on rlp/sys/drops.",
     VALUE(counters.notices_suppressed)},
    {"stdio_bus_rmp_topics", "Topics that have a subscription.", VALUE(now.topics)},
    {"stdio_bus_rmp_subscriptions", "Subscriptions.", VALUE(now.subscriptions)},
    {"stdio_bus_rmp_dedupe_keys", "Messages by which duplicates are known.",
     VALUE(now.dedupe_keys)},
    {"stdio_bus_rmp_queued_messages", "Messages that wait for subscribers.",
     VALUE(now.queued_messages)},
    {"stdio_bus_rmp_queued_bytes", "Bytes of these messages.", VALUE(now.queued_bytes)},
    {"stdio_bus_rmp_waiting_publications", "Publications that wait.",
     VALUE(now.waiting_publications)},
    {"stdio_bus_rmp_history_runs", "Runs whose events are kept.", VALUE(runs)},
    {"stdio_bus_rmp_history_events", "Events that are kept.", VALUE(events)},
    {"stdio_bus_rmp_history_bytes", "Bytes of these events and runs.", VALUE(bytes)},
    {"stdio_bus_rmp_history_write_errors_total", "Failed writes of files of the history.",
     VALUE(failures)},
    {.name = NULL},
};

static const void *measure(void *state)
{
    struct rmp_hub *hub = state;
    const struct rmp_history *history = &hub->runs->history;
    const struct rmp_counters *counters = rmp_broker_counters(hub->broker);

    hub->metrics = (struct rmp_hub_metrics){
        .clients = hub->clients.count,
        .drops = {counters->drops_ttl, counters->drops_duplicate, counters->drops_backpressure},
        .counters = *counters,
        .now = rmp_broker_gauges(hub->broker),
        .runs = history->runs.count,
        .events = history->events,
        .bytes = history->bytes,
        .failures = hub->runs->failures,
    };
    return &hub->metrics;
}

static void describe(const void *state, struct json_text *to)
{
    const struct rmp_hub *hub = state;

    row_number(to, "rmp_clients", (int64_t)hub->clients.count);
    row_number(to, "rmp_runs", (int64_t)hub->runs->history.runs.count);
}

static void limit(void *state, const struct limits *limits)
{
    rmp_hub_bound(state, limits);
}

/* The timer of the broker's deadline is started at the end of the round. */
static void archive_hub(void *state, struct router_archive *to)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_hub, last_msg_id, lost),
    };
    struct archive *archive = to->archive;
    struct rmp_hub *hub = state;
    struct rmp_archive topics;

    archive_mark(archive, "rmphub");
    ARCHIVE_FIELDS(archive, hub, fields);
    timer_archive(archive, hub->bus->loop, &hub->retry);
    rmp_archive_begin(&topics, archive, hub->broker);
    visitors_archive(archive, &hub->clients, &topics);
    rmp_bridge_archive(to, &topics, hub->bridge);
    rmp_archive_topics(&topics);
    rmp_archive_queues(&topics);
    rmp_archive_end(&topics);
}

/* --- its listener --- */

static int find_socket(char path[UNIX_PATH_SIZE], const char *asked, const struct config *config,
                       struct log *log)
{
    const struct rmp_place place = {asked != NULL && asked[0] != '\0' ? asked : NULL,
                                    config->rmp.socket_path, config->rmp.sockets_dir};
    char reason[RMP_SOCKET_REASON_MAX];

    if (asked == NULL && !config->rmp.enabled)
        return EXIT_DONE;
    if (rmp_socket_make(path, &place, reason) == STDIO_BUS_OK)
        return EXIT_DONE;
    log_error(log, "", "no RMP socket: %s", reason);
    return EXIT_OS_ERROR;
}

/* The keys of the listeners of the command line hold for this socket too; its mode is wider where
 * they have none. */
static struct access socket_access(const struct bus_options *options)
{
    struct access access = options->config->listen.access;

    if (!access.has_mode)
        access.mode = MODE_DEFAULT;
    return access;
}

static const struct listener_kind listener = {
    .name = "rmp",
    .accepted = visitors_accepted,
    .visits = &rmp_clients_kind,
    .option = "rmp",
    .find = find_socket,
    .access = socket_access,
};

const struct service rmp_service = {
    .is_wanted = is_wanted,
    .create = create,
    .start = start,
    .detach = detach,
    .destroy = destroy,
    .listener = &listener,
    .before_writing = before_writing,
    .after_writing = after_writing,
    .stop_input = stop_input,
    .before_close = before_close,
    .metrics = metrics,
    .measure = measure,
    .describe = describe,
    .limit = limit,
    .archive = ARCHIVE_OP(archive_hub),
};
