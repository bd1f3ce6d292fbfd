#include "build_config.h"

#include "bus/metrics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/metrics_text.h"
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
