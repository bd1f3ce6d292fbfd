/* The functions of stdio_bus_embed.h. */
#include "build_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/visitor.h"
#include "embed/embedded_worker.h"
#include "embed/host.h"
#include "embed/sigpipe.h"
#include "process/pool.h"
#include "supervisor/bus.h"

static void act(void *state)
{
    embedded_workers_remove_ended(state);
}

static const struct service host_service = {
    .create = host_create,
    .detach = host_detach,
    .act = act,
    .report = host_report,
};

static const struct service *const services[] = {&host_service, NULL};

/* --- the state --- */

/* The core works on behalf of the host: no function of the bus may be called until leave. */
static void enter(struct host *host)
{
    host->inside++;
}

static void leave(struct host *host)
{
    host->inside--;
}

/* Something is to be done before anything arrives: calls outside a round leave it, too. */
static bool has_work(const struct host *host)
{
    return host->events.count > 0 || bus_has_work(host->bus);
}

/* The poll_fd shows what is left to do. To be called last. */
static void arm(struct host *host)
{
    bool is_over = host->state == STDIO_BUS_STATE_CREATED || host->state == STDIO_BUS_STATE_STOPPED;

    if (host->is_polled && !host->in_callback && !is_over)
        waker_arm(&host->waker,
                  has_work(host) ? EVENT_LOOP_NOW : event_loop_due_ms(host->bus->loop));
}

/* What stands in the way of a call in one of the states from `first` to `last`. */
static int check_state(const struct host *host, stdio_bus_state_t first, stdio_bus_state_t last)
{
    return host->inside == 0 && host->state >= first && host->state <= last ? STDIO_BUS_OK
                                                                            : STDIO_BUS_ERR_STATE;
}

static int step_core(struct host *host, int timeout_ms)
{
    struct stdio_bus *bus = host->bus;
    enum bus_outcome outcome = bus_step(bus, timeout_ms);

    if (outcome == BUS_RUNNING)
        return bus->served;
    host->state = STDIO_BUS_STATE_STOPPED;
    if (outcome == BUS_SYSTEM_ERROR)
        host_note_error(host, STDIO_BUS_ERR, "the bus cannot wait for events");
    return bus->served;
}

/* --- the configuration --- */

static void report_problem(void *user_data, bool is_error, const char *text)
{
    struct host *host = user_data;
    const stdio_bus_options_t *options = &host->options;

    log_write(&host->log, is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "", "%s", text);
    if (is_error && options->on_error != NULL)
        options->on_error(NULL, STDIO_BUS_ERR_CONFIG, text, options->user_data);
}

static int complain(struct host *host, int code, const char *text)
{
    if (host->options.on_error != NULL)
        host->options.on_error(NULL, code, text, host->options.user_data);
    return code;
}

/* The listener of the options, with the keys that the configuration has for it. */
static int read_listener(struct host *host)
{
    const stdio_bus_listener_config_t *from = &host->options.listener;
    struct setup *setup = host->setup;
    char problem[LISTEN_PROBLEM_MAX], text[LISTEN_HOST_MAX + 16];
    struct listen_config *to;
    bool is_valid;

    if (from->mode == STDIO_BUS_LISTEN_NONE)
        return STDIO_BUS_OK;
    setup->listens = to = calloc(1, sizeof *to);
    if (to == NULL)
        return complain(host, STDIO_BUS_ERR, "out of memory");
    setup->listen_count = 1;
    *to = setup->config.listen;
    if (from->mode == STDIO_BUS_LISTEN_UNIX) {
        to->token_file = NULL;
        is_valid = from->unix_path != NULL &&
                   listen_address_of_path(&to->address, from->unix_path, problem);
    } else {
        const char *name = from->tcp_host != NULL ? from->tcp_host : "";
        bool is_bare = strchr(name, ':') != NULL && name[0] != '[';

        is_valid = from->mode == STDIO_BUS_LISTEN_TCP &&
                   (size_t)snprintf(text, sizeof text, is_bare ? "[%s]:%u" : "%s:%u", name,
                                    from->tcp_port) < sizeof text &&
                   listen_address_of_host(&to->address, text, 0, problem);
    }
    return is_valid ? STDIO_BUS_OK
                    : complain(host, STDIO_BUS_ERR_INVALID, "the listener has no valid address");
}

/* What a daemon serves, and this library does not. */
static void note_ignored(struct host *host)
{
    const struct config *config = &host->setup->config;

    if (config->listen_count > 0 || config->has_metrics || config->control != NULL ||
        config->rmp.enabled)
        log_warn(&host->log, "",
                 "listeners with an address, \"metrics\", \"control\" and \"rmp\" are for the "
                 "daemon: the library ignores them");
}

static int read_setup(struct host *host)
{
    const stdio_bus_options_t *options = &host->options;
    struct config *config;
    int status;

    host->setup = setup_create();
    if (host->setup == NULL)
        return complain(host, STDIO_BUS_ERR, "out of memory");
    config = &host->setup->config;
    if (options->config_path != NULL)
        status = config_read_sources(config, options->config_path, &host->setup->sources,
                                     report_problem, host);
    else
        status = config_read_text(config, options->config_json, strlen(options->config_json),
                                  "config_json", report_problem, host);
    if (status != STDIO_BUS_OK)
        return STDIO_BUS_ERR_CONFIG;
    if (config->pool_count == 0)
        return complain(host, STDIO_BUS_ERR_CONFIG, "the configuration has no pool");
    note_ignored(host);
    return read_listener(host);
}

/* --- creation --- */

static void take_line(void *user_data, enum log_level level, const char *line)
{
    struct host *host = user_data;
    const stdio_bus_options_t *options = &host->options;

    enter(host);
    options->on_log(host->bus, (int)level, line, options->user_data);
    leave(host);
}

static void open_log(struct host *host)
{
    int wanted = host->options.log_level;
    enum log_level level = LOG_LEVEL_DEBUG;

    if (wanted > (int)LOG_LEVEL_ERROR)
        level = LOG_LEVEL_ERROR;
    else if (wanted > 0)
        level = (enum log_level)wanted;
    if (host->options.on_log != NULL)
        log_open_calls(&host->log, take_line, host, level);
    else
        log_open(&host->log, STDERR_FILENO, level);
    host->log.writes = sigpipe_writev;
}

static void free_host(struct host *host)
{
    embedded_workers_free(host);
    setup_release(host->setup);
    log_close(&host->log);
    free(host);
}

static struct stdio_bus *create_bus(struct host *host)
{
    const struct bus_options options = {
        .config = &host->setup->config,
        .setup = host->setup,
        .log = &host->log,
        .listens = host->setup->listens,
        .listen_count = host->setup->listen_count,
        .services = services,
        .host = host,
        .is_guest = true,
    };

    return bus_create(&options);
}

stdio_bus_t *stdio_bus_create(const stdio_bus_options_t *options)
{
    struct host *host;

    if (options == NULL)
        return NULL;
    host = calloc(1, sizeof *host);
    if (host == NULL) {
        if (options->on_error != NULL)
            options->on_error(NULL, STDIO_BUS_ERR, "out of memory", options->user_data);
        return NULL;
    }
    host->options = *options;
    host->waker.fd = -1;
    list_init(&host->embedded);
    list_init(&host->embedded_pools);
    open_log(host);
    if (options->on_message == NULL ||
        (options->config_path == NULL) == (options->config_json == NULL)) {
        (void)complain(host, STDIO_BUS_ERR_INVALID,
                       "on_message, and one of config_path and config_json, must be set");
        goto fail;
    }
    if (read_setup(host) != STDIO_BUS_OK)
        goto fail;
    host->bus = create_bus(host);
    if (host->bus != NULL)
        return host->bus;
    (void)complain(host, STDIO_BUS_ERR, "out of memory or descriptors");

fail:
    host->bus = NULL;
    free_host(host);
    return NULL;
}

/* --- start and stop --- */

/* After a start that failed: no process is left. */
static int stop_at_once(struct host *host, int code, const char *text)
{
    if (host->bus->phase < BUS_PHASE_DRAINING)
        bus_stop(host->bus);
    bus_stop(host->bus); /* kills */
    while (host->state != STDIO_BUS_STATE_STOPPED)
        (void)step_core(host, -1);
    host_note_error(host, code, text);
    return code;
}

static int start(struct host *host)
{
    struct stdio_bus *bus = host->bus;

    host->state = STDIO_BUS_STATE_STARTING;
    if (bus_start(bus) != STDIO_BUS_OK)
        return stop_at_once(
            host, STDIO_BUS_ERR,
            "cannot open the listener or start the workers: the log has the reason");
    while (bus->phase == BUS_PHASE_STARTING && host->state == STDIO_BUS_STATE_STARTING)
        (void)step_core(host, -1);
    if (bus->phase != BUS_PHASE_SERVING)
        return stop_at_once(host, STDIO_BUS_ERR_WORKER,
                            "a worker cannot be executed: the log has the reason");
    host->state = STDIO_BUS_STATE_RUNNING;
    return STDIO_BUS_OK;
}

int stdio_bus_start(stdio_bus_t *bus)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;
    int status;

    if (host == NULL)
        return STDIO_BUS_ERR_INVALID;
    if (host->in_callback ||
        check_state(host, STDIO_BUS_STATE_CREATED, STDIO_BUS_STATE_CREATED) != STDIO_BUS_OK)
        return STDIO_BUS_ERR_STATE;
    enter(host);
    status = start(host);
    leave(host);
    (void)host_call_back(host,
                         status == STDIO_BUS_OK ? EVENT_MESSAGES_WAIT : EVENT_MESSAGES_DROPPED);
    arm(host);
    return status;
}

int stdio_bus_stop(stdio_bus_t *bus, int timeout_sec)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;

    if (host == NULL)
        return STDIO_BUS_ERR_INVALID;
    if (host->inside > 0)
        return STDIO_BUS_ERR_STATE;
    if (host->state != STDIO_BUS_STATE_RUNNING)
        return STDIO_BUS_OK;
    enter(host);
    host->state = STDIO_BUS_STATE_STOPPING;
    if (timeout_sec >= 0)
        host->setup->config.limits.drain_timeout_sec = (unsigned)timeout_sec;
    bus_stop(bus);
    leave(host);
    arm(host);
    return STDIO_BUS_OK;
}

void stdio_bus_destroy(stdio_bus_t *bus)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;

    if (host == NULL)
        return;
    if (host->inside > 0 || host->in_callback) {
        if (host->options.on_error != NULL)
            host->options.on_error(bus, STDIO_BUS_ERR_STATE, "destroyed inside a callback",
                                   host->options.user_data);
        return;
    }
    log_close(&host->log); /* from here on no callback is called */
    log_open(&host->log, -1, LOG_LEVEL_ERROR);
    bus_destroy(bus);
    free_host(host);
}

/* --- rounds and messages --- */

/* Writes what was sent outside of a round of the core. */
static void flush(struct host *host)
{
    struct transport *transport = &host->bus->transport;

    if (list_empty(&transport->dirty))
        return;
    enter(host);
    connection_flush_all(transport);
    leave(host);
}

static int step(struct host *host, int timeout_ms)
{
    int count;

    enter(host);
    count = step_core(host, has_work(host) ? 0 : timeout_ms);
    leave(host);
    count += host_call_back(host, EVENT_MESSAGES_GIVEN);
    flush(host);
    arm(host);
    return count;
}

int stdio_bus_step(stdio_bus_t *bus, int timeout_ms)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;

    if (host == NULL)
        return STDIO_BUS_ERR_INVALID;
    if (host->in_callback ||
        check_state(host, STDIO_BUS_STATE_RUNNING, STDIO_BUS_STATE_STOPPING) != STDIO_BUS_OK)
        return STDIO_BUS_ERR_STATE;
    return step(host, timeout_ms);
}

int stdio_bus_ingest(stdio_bus_t *bus, const char *msg, size_t len)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;
    int status;

    if (host == NULL || msg == NULL || len == 0)
        return STDIO_BUS_ERR_INVALID;
    if (check_state(host, STDIO_BUS_STATE_RUNNING, STDIO_BUS_STATE_RUNNING) != STDIO_BUS_OK)
        return STDIO_BUS_ERR_STATE;
    enter(host);
    status = host_ingest(host, slice_of(msg, len));
    leave(host);
    if (host->in_callback) /* its step writes */
        return status;
    flush(host);
    arm(host);
    return status;
}

/* --- embedded workers --- */

int stdio_bus_register_embedded_worker(stdio_bus_t *bus, int fd_to_worker, int fd_from_worker,
                                       const char *pool_id)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;
    int status;

    if (host == NULL || fd_to_worker < 0 || fd_from_worker < 0 || pool_id == NULL ||
        pool_id[0] == '\0' || strlen(pool_id) > POOL_ID_MAX)
        return STDIO_BUS_ERR_INVALID;
    if (check_state(host, STDIO_BUS_STATE_RUNNING, STDIO_BUS_STATE_RUNNING) != STDIO_BUS_OK)
        return STDIO_BUS_ERR_STATE;
    enter(host);
    status = embedded_worker_add(host, fd_to_worker, fd_from_worker, pool_id);
    leave(host);
    arm(host);
    return status;
}

int stdio_bus_unregister_embedded_worker(stdio_bus_t *bus, int worker_id)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;
    int status;

    if (host == NULL)
        return STDIO_BUS_ERR_INVALID;
    if (check_state(host, STDIO_BUS_STATE_RUNNING, STDIO_BUS_STATE_STOPPING) != STDIO_BUS_OK)
        return STDIO_BUS_ERR_STATE;
    enter(host);
    status = embedded_worker_remove(host, worker_id);
    leave(host);
    arm(host);
    return status;
}

/* --- what there is --- */

/* Calls fn for each worker. */
static void each_worker(const struct stdio_bus *bus,
                        void (*fn)(void *user_data, const struct worker *worker), void *user_data)
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following)
            fn(user_data, list_entry(node, struct worker, link));
    }
}

static int limited(size_t count)
{
    return count < INT_MAX ? (int)count : INT_MAX;
}

stdio_bus_state_t stdio_bus_get_state(const stdio_bus_t *bus)
{
    return bus != NULL ? host_of(bus)->state : STDIO_BUS_STATE_STOPPED;
}

static void count_running(void *user_data, const struct worker *worker)
{
    *(size_t *)user_data += worker->state == WORKER_RUNNING;
}

int stdio_bus_worker_count(const stdio_bus_t *bus)
{
    size_t count = 0;

    if (bus != NULL && host_of(bus)->state != STDIO_BUS_STATE_STOPPED)
        each_worker(bus, count_running, &count);
    return limited(count);
}

int stdio_bus_session_count(const stdio_bus_t *bus)
{
    return bus != NULL ? limited(bus->router.sessions.table.count) : 0;
}

int stdio_bus_pending_count(const stdio_bus_t *bus)
{
    return bus != NULL ? limited(bus->router.from_clients.active_count) : 0;
}

int stdio_bus_client_count(const stdio_bus_t *bus)
{
    return bus != NULL ? limited(bus->client_count) : 0;
}

int stdio_bus_get_poll_fd(const stdio_bus_t *bus)
{
    struct host *host = bus != NULL ? host_of(bus) : NULL;

    if (host == NULL)
        return -1;
    host->is_polled = true;
    arm(host);
    return host->waker.fd >= 0 ? stdio_bus_event_loop_get_poll_fd(bus->loop) : -1;
}

static void count_restarts(void *user_data, const struct worker *worker)
{
    *(uint64_t *)user_data += worker->restarts;
}

static void add_client(struct traffic *to, const struct stdio_bus *bus)
{
    const struct list_node *node;

    for (node = bus->clients.list.head.next; node != &bus->clients.list.head; node = node->next)
        connection_add_traffic(list_entry(node, struct visitor, link)->connection, to);
}

void stdio_bus_get_stats(const stdio_bus_t *bus, stdio_bus_stats_t *stats)
{
    const struct host *host = bus != NULL ? host_of(bus) : NULL;
    struct traffic traffic = {.bytes_in = 0};

    if (stats == NULL)
        return;
    *stats = (stdio_bus_stats_t){.messages_in = 0};
    if (host == NULL)
        return;
    traffic_add(&traffic, &host->carried);
    traffic_add(&traffic, &bus->counters.gone);
    add_client(&traffic, bus);
    stats->messages_in = traffic.frames_in;
    stats->messages_out = traffic.frames_out;
    stats->bytes_in = traffic.bytes_in;
    stats->bytes_out = traffic.bytes_out;
    each_worker(bus, count_restarts, &stats->worker_restarts);
    stats->routing_errors = host->dropped;
    for (int i = REFUSAL_SESSIONS; i < REFUSALS; i++)
        stats->routing_errors += bus->counters.refused[i];
    stats->client_connects = host->connects;
    stats->client_disconnects = host->disconnects;
}
