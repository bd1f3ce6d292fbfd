#include "build_config.h"

#include "monitor/status.h"

#include <unistd.h>

#include "bus/listeners.h"
#include "bus/service.h"
#include "process/pool.h"
#include "supervisor/workers.h"
#include "transport/memory.h"
#include "json/text.h"

static const char *const phases[] = {
    [BUS_PHASE_STARTING] = "starting", [BUS_PHASE_SERVING] = "serving",
    [BUS_PHASE_ENDING] = "ending",     [BUS_PHASE_DRAINING] = "stopping",
    [BUS_PHASE_FLUSHING] = "stopping", [BUS_PHASE_STOPPED] = "stopped",
};

static const char *const levels[] = {"debug", "info", "warn", "error"};

/* No pool has lost all of its workers. */
static bool pools_are_served(const struct stdio_bus *bus)
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&bus->pools, pool, next_pool) {
        bool any_left = list_entry(pool, struct pool, link)->fate != POOL_SERVES;

        list_each(&list_entry(pool, struct pool, link)->workers, node, following)
            any_left |= !worker_failed(list_entry(node, struct worker, link));
        if (!any_left)
            return false;
    }
    return true;
}

static void write_workers(const struct stdio_bus *bus, struct json_text *to)
{
    size_t counts[WORKER_FAILED + 1] = {0}, i;
    const struct worker *worker = NULL;

    while ((worker = workers_next(bus, worker)) != NULL)
        counts[worker->state]++;
    row_begin(to, "workers", '{');
    for (i = 0; i <= WORKER_FAILED; i++)
        row_number(to, workers_state_names[i], (int64_t)counts[i]);
    row_end(to, '}');
}

/* Where its clients connect, and how their messages are framed. */
static void write_listener(const struct bus_listener *listener, struct json_text *to)
{
    const struct listen_config *config = listener->config;
    const struct framing *framing = config->framing != NULL ? config->framing : &framing_ndjson;

    row_begin(to, NULL, '{');
    row_string(to, "kind", listen_kind_name(config->address.kind));
    if (config->address.is_unix) {
        row_string(to, "path", config->address.path);
    } else {
        row_string(to, "host", config->address.host);
        row_number(to, "port", (int64_t)listeners_port(listener));
    }
    row_boolean(to, "token", listener_asks_token(listener));
    if (config->pool != NULL)
        row_string(to, "pool", config->pool);
    if (config->address.kind != LISTEN_HTTP)
        row_string(to, "framing", framing->name);
    row_end(to, '}');
}

static void write_listeners(const struct stdio_bus *bus, struct json_text *to)
{
    struct list_node *node, *following;

    row_begin(to, "listen", '[');
    list_each(&bus->listeners, node, following) {
        const struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        if (listener->config != NULL && !listener->is_gone)
            write_listener(listener, to);
    }
    row_end(to, ']');
}

void status_write(struct stdio_bus *bus, struct json_text *to)
{
    const struct limits *limits = &bus->options.config->limits;
    const struct router *router = &bus->router;
    bool serves = bus->phase == BUS_PHASE_SERVING;

    row_begin(to, NULL, '{');
    row_string(to, "version", PACKAGE_VERSION);
    row_number(to, "pid", (int64_t)getpid());
    row_string(to, "phase", phases[bus->phase]);
    row_boolean(to, "healthy", serves && pools_are_served(bus));
    row_number(to, "runs_ms", stdio_bus_event_loop_now_ms(bus->loop) - bus->started_ms);
    row_string(to, "log_level", levels[bus->log->level]);
    write_workers(bus, to);
    row_number(to, "clients", (int64_t)bus->client_count);
    row_number(to, "max_connections", (int64_t)limits->max_connections);
    each_service(bus, at, describe)
        at.service->describe(at.state, to);
    row_number(to, "sessions", (int64_t)router->sessions.table.count);
    row_number(to, "max_sessions", (int64_t)limits->max_sessions);
    row_number(to, "requests", (int64_t)router->from_clients.active_count);
    row_number(to, "max_pending_requests", (int64_t)limits->max_pending_requests);
    row_number(to, "memory", (int64_t)memory_used(&bus->transport));
    row_number(to, "max_memory", (int64_t)limits->max_memory);
    row_number(to, "max_output_queue", (int64_t)limits->max_output_queue);
    write_listeners(bus, to);
    row_end(to, '}');
}
