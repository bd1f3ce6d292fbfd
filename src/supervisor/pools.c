#include "build_config.h"

#include "supervisor/pools.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/service.h"
#include "router/departure.h"
#include "router/waiting.h"
#include "supervisor/busy.h"
#include "supervisor/crashes.h"
#include "supervisor/halt.h"
#include "supervisor/probe.h"
#include "supervisor/replay.h"
#include "supervisor/sleep.h"
#include "supervisor/workers.h"

/* NULL: the workers are programs, or errno says why there is none. */
static const struct dialer *dialer_of(struct stdio_bus *bus, const struct pool_config *config)
{
    const struct dialer *dialer = bus->options.dialer;

    errno = ENOTCONN; /* a reload cannot add what serves such pools */
    each_service(bus, at, dialer) {
        if (dialer == NULL && config->is_remote)
            dialer = at.service->dialer(at.state, config);
    }
    return dialer;
}

bool pools_passage_comes(const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;

    return peer->is_passage && list_empty(&peer->bindings) &&
           (worker->state == WORKER_STARTING || worker->state == WORKER_RUNNING);
}

void pools_set_dialer(struct worker *worker, const struct dialer *dialer)
{
    worker->program.dialer = dialer;
    worker->options.same_socket = dialer != NULL;
    worker->stream.endpoint.peer.is_link = dialer != NULL && !worker_is_front(worker);
}

int pools_find_dialers(struct stdio_bus *bus)
{
    struct list_node *at, *next_pool, *node, *following;

    list_each(&bus->pools, at, next_pool) {
        struct pool *pool = list_entry(at, struct pool, link);
        const struct dialer *dialer = pool->config->is_remote ? dialer_of(bus, pool->config) : NULL;

        if (pool->config->is_remote && dialer == NULL)
            return STDIO_BUS_ERR;
        if (dialer == NULL)
            continue;
        list_each(&pool->workers, node, following)
            pools_set_dialer(list_entry(node, struct worker, link), dialer);
    }
    return STDIO_BUS_OK;
}

static struct worker *add_worker(struct stdio_bus *bus, struct pool *pool)
{
    const struct worker_host *host = workers_host_of(&pool->config->mode);
    struct worker *worker = pool_add_worker(pool, ++bus->last_worker,
                                            bus->has_nofile ? &bus->nofile : NULL, &bus->router,
                                            &bus->transport, host, bus);

    if (worker == NULL)
        return NULL;
    worker->generation = bus->generation;
    worker->program.of_guest = bus->options.is_guest;
    timer_init(&worker->stream.endpoint.hold_timer, deliver_hold_expired, &worker->stream.endpoint);
    timer_init(&worker->replay, replay_expired, worker);
    timer_init(&worker->probe, probe_expired, worker);
    timer_init(&worker->idle, sleep_look, worker);
    timer_init(&worker->halting, halt_look, worker);
    return worker;
}

int pools_add_workers(struct stdio_bus *bus, struct pool *pool, size_t count)
{
    const struct dialer *dialer = dialer_of(bus, pool->config);

    if (pool->config->is_remote && dialer == NULL && bus->service_count > 0)
        return STDIO_BUS_ERR;
    while (count-- > 0) {
        struct worker *worker = add_worker(bus, pool);

        if (worker == NULL)
            return STDIO_BUS_ERR;
        pools_set_dialer(worker, dialer);
    }
    return STDIO_BUS_OK;
}

struct worker *pools_add_passage(struct stdio_bus *bus, struct pool *pool)
{
    struct worker *worker = add_worker(bus, pool);

    if (worker == NULL)
        return NULL;
    worker->stream.endpoint.peer.is_passage = true;
    worker->stream.endpoint.peer.rest = PEER_AWAKE;
    worker->options.same_socket = true;
    worker->program.name = "a link";
    waiting_set_drained(&bus->router, &worker->stream.endpoint.peer, true);
    return worker;
}

struct pool *pools_add(struct stdio_bus *bus, const struct pool_config *config, struct setup *setup)
{
    struct pool *pool = pool_create(config, &bus->router);

    if (pool == NULL)
        return NULL;
    pool->setup = setup_hold(setup);
    list_append(&bus->pools, &pool->link);
    if (pools_add_workers(bus, pool, config->instances) == STDIO_BUS_OK)
        return pool;
    pools_remove(bus, pool);
    return NULL;
}

int pools_create(struct stdio_bus *bus)
{
    const struct config *config = bus->options.config;
    size_t i;

    for (i = 0; i < config->pool_count; i++) {
        if (pools_add(bus, &config->pools[i], bus->options.setup) == NULL)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

/* Those that are the bus's: a freed one would stay in the heap of the event loop. */
static void stop_timers(struct worker *worker)
{
    struct stdio_bus_event_loop *loop = worker->transport->loop;

    stdio_bus_event_loop_stop_timer(loop, &worker->stream.endpoint.hold_timer);
    stdio_bus_event_loop_stop_timer(loop, &worker->replay);
    stdio_bus_event_loop_stop_timer(loop, &worker->probe);
    stdio_bus_event_loop_stop_timer(loop, &worker->idle);
    stdio_bus_event_loop_stop_timer(loop, &worker->halting);
}

void pools_remove_worker(struct stdio_bus *bus, struct worker *worker)
{
    workers_release_origin(worker);
    crashes_excuse(worker);
    list_remove(&worker->renewing);
    stop_timers(worker);
    pool_remove_worker(worker, &bus->router);
}

void pools_remove(struct stdio_bus *bus, struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following)
        pools_remove_worker(bus, list_entry(node, struct worker, link));
    if (list_linked(&pool->group.link))
        departure_detach_pool(&bus->router, &pool->group, true);
    crashes_forget(pool);
    list_remove(&pool->link);
    pool_destroy(pool);
}

#define PASSAGE_IDLE_MS 2000

static bool is_unused(struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;
    int64_t age_ms = stdio_bus_event_loop_now_ms(worker->transport->loop) -
                     worker->stream.endpoint.since_ms;

    return list_empty(&peer->sessions) && list_empty(&peer->bindings) &&
           !busy_with_anything(peer) && age_ms >= PASSAGE_IDLE_MS;
}

static void tidy_passage(struct stdio_bus *bus, struct worker *worker)
{
    if (worker->state == WORKER_RUNNING && is_unused(worker)) {
        waiting_set_drained(&bus->router, &worker->stream.endpoint.peer, true);
        worker_handle(worker, WORKER_RETIRE);
    } else if (worker_failed(worker) ||
               (worker_finished(worker) && list_empty(&worker->stream.endpoint.peer.bindings))) {
        worker_stop(worker);
        pools_remove_worker(bus, worker);
    }
}

bool pools_tidy_passages(struct stdio_bus *bus)
{
    struct worker *worker, *following;
    bool any = false;

    for (worker = workers_next(bus, NULL); worker != NULL; worker = following) {
        following = workers_next(bus, worker);
        any |= worker->stream.endpoint.peer.is_passage;
        if (worker->stream.endpoint.peer.is_passage)
            tidy_passage(bus, worker);
    }
    return any;
}

static int start_pool(struct stdio_bus *bus, struct pool *pool)
{
    size_t count = pool_starts(pool);
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (count-- == 0)
            break;
        bus->starting_count++;
        if (worker_start(worker) != STDIO_BUS_OK) {
            log_error(bus->log, worker->stream.endpoint.context, "cannot start: %s",
                      strerror(errno));
            return STDIO_BUS_ERR;
        }
    }
    return STDIO_BUS_OK;
}

int pools_start(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->pools, node, following) {
        if (start_pool(bus, list_entry(node, struct pool, link)) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

void pools_destroy(struct stdio_bus *bus)
{
    struct list_node *node;

    workers_each(bus, workers_release_origin);
    workers_each(bus, crashes_excuse);
    workers_each(bus, stop_timers);
    while ((node = list_take_first(&bus->pools)) != NULL) {
        crashes_forget(list_entry(node, struct pool, link));
        pool_destroy(list_entry(node, struct pool, link));
    }
}
