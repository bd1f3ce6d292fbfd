#include "build_config.h"

#include "reload/pools.h"

#include <string.h>

#include "base/error.h"
#include "bus/reports.h"
#include "config/config.h"
#include "reload/pool_holders.h"
#include "reload/renewals.h"
#include "router/departure.h"
#include "router/waiting.h"
#include "supervisor/pools.h"
#include "supervisor/sleep.h"
#include "supervisor/workers.h"

static const struct pool_config *config_named(const struct config *config, struct slice id)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if (slice_is(id, config->pools[i].id))
            return &config->pools[i];
    }
    return NULL;
}

static struct pool *pool_with(struct stdio_bus *bus, const char *id, enum pool_fate fate)
{
    struct list_node *node, *following;

    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate == fate && slice_is(pool->group.id, id))
            return pool;
    }
    return NULL;
}

/* The topic bus has its pools from the start on. */
static bool is_bridged(const struct pool *pool)
{
    return pool->group.fallback != NULL;
}

static enum key_change change_of(const struct pool *pool, const struct pool_config *config)
{
    enum key_change change = pool_config_difference(pool->config, config);

    return change == CHANGE_SHARING && is_bridged(pool) ? CHANGE_PROGRAM : change;
}

static bool is_shared(const struct pool *pool)
{
    return pool->group.mode.clients == CLIENTS_SHARED;
}

/* --- preparing --- */

/* Also a passage: it leaves by itself, and is none of the configuration's. */
static bool is_leaving(const struct worker *worker)
{
    return worker->renewal == RENEWAL_LEAVES || worker->stream.endpoint.peer.is_passage;
}

/* Workers that were there before, and do not leave. */
static size_t count_staying(const struct pool *pool)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&pool->workers, node, following)
        count += !is_leaving(list_entry(node, struct worker, link));
    return count;
}

/* Where any worker serves any client, others take the places of those that run an old program. */
static size_t count_to_add(const struct pool *pool, const struct pool_config *config)
{
    size_t staying = count_staying(pool);

    if (is_shared(pool) && change_of(pool, config) == CHANGE_PROGRAM)
        return config->instances;
    return config->instances > staying ? config->instances - staying : 0;
}

static int prepare(struct stdio_bus *bus, const struct pool_config *config, struct setup *setup)
{
    struct pool *pool = pool_with(bus, config->id, POOL_SERVES);

    if (pool != NULL && change_of(pool, config) != CHANGE_SHARING)
        return pools_add_workers(bus, pool, count_to_add(pool, config));
    pool = pools_add(bus, config, setup);
    if (pool == NULL)
        return STDIO_BUS_ERR;
    pool->fate = POOL_NEW;
    return STDIO_BUS_OK;
}

int reload_pools_prepare(struct stdio_bus *bus, struct setup *setup)
{
    bus->generation++;
    for (size_t i = 0; i < setup->config.pool_count; i++) {
        if (prepare(bus, &setup->config.pools[i], setup) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

static bool is_added(const struct worker *worker)
{
    const struct stdio_bus *bus = worker->stream.endpoint.bus;

    return worker->generation == bus->generation;
}

void reload_pools_undo(struct stdio_bus *bus)
{
    struct list_node *node, *following, *at, *next;

    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        list_each(&pool->workers, at, next) {
            struct worker *worker = list_entry(at, struct worker, link);

            if (is_added(worker))
                pools_remove_worker(bus, worker);
        }
        if (pool->fate == POOL_NEW)
            pools_remove(bus, pool);
    }
}

/* --- a pool that departs --- */

static void leave_all(struct renewals *renewals, struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following)
        renewals_add(renewals, list_entry(node, struct worker, link), RENEWAL_LEAVES);
}

static void depart(struct renewals *renewals, struct pool *pool, enum pool_fate fate)
{
    struct stdio_bus *bus = renewals->bus;

    log_info(bus->log, "", "pool %s is %s; its workers end when they are free", pool->config->id,
             fate == POOL_REMOVED ? "removed" : "replaced");
    pool->fate = fate;
    pool->is_held = true;
    pool->group.mode.spare = 0;
    renewals_depart(renewals);
    departure_detach_pool(&bus->router, &pool->group, fate == POOL_REMOVED);
    leave_all(renewals, pool);
}

static void replace(struct renewals *renewals, struct pool *pool, struct pool *by)
{
    pool_holders_part(renewals->bus, pool, by);
    depart(renewals, pool, POOL_REPLACED);
}

/* --- a pool that stays --- */

static void leave(struct renewals *renewals, struct worker *worker)
{
    renewals_add(renewals, worker, RENEWAL_LEAVES);
    waiting_set_drained(&renewals->bus->router, &worker->stream.endpoint.peer, true);
}

/* The last ones leave. */
static void shrink(struct renewals *renewals, struct pool *pool, size_t staying)
{
    struct list_node *node = pool->workers.head.prev;

    for (; node != &pool->workers.head && staying > pool->config->instances; node = node->prev) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (is_leaving(worker) || is_added(worker))
            continue;
        leave(renewals, worker);
        staying--;
    }
}

/* The workers that are there run an old program. */
static void renew(struct renewals *renewals, struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (is_added(worker) || is_leaving(worker))
            continue;
        if (is_shared(pool))
            renewals_add(renewals, worker, RENEWAL_LEAVES);
        else if (worker->state == WORKER_STARTING || worker->state == WORKER_RUNNING)
            renewals_add(renewals, worker, RENEWAL_IN_PLACE);
        else if (worker->state == WORKER_FAILED)
            worker_revive(worker);
    }
}

static void take_pool(struct renewals *renewals, struct pool *pool,
                      const struct pool_config *config, struct setup *setup)
{
    struct stdio_bus *bus = renewals->bus;
    enum key_change change = change_of(pool, config);
    bool was_bridged = is_bridged(pool);

    if (was_bridged && pool_config_difference(pool->config, config) == CHANGE_SHARING)
        log_warn(bus->log, "",
                 "pool %s serves the topic bus: keys that say how its clients share "
                 "it take effect at the next start",
                 config->id);
    pool_adopt(pool, config, setup);
    if (change == CHANGE_PROGRAM) {
        pool_change_program(pool);
        log_info(bus->log, "", "pool %s has changed; its workers are restarted when they are free",
                 config->id);
        renew(renewals, pool);
    }
    if (change == CHANGE_KEEPS || !is_shared(pool))
        shrink(renewals, pool, count_staying(pool));
}

/* --- a pool that a user has drained --- */

/* Each worker that would stay. */
static bool is_drained(const struct pool *pool)
{
    struct list_node *node, *following;
    bool any = false;

    list_each(&pool->workers, node, following) {
        const struct worker *worker = list_entry(node, struct worker, link);

        if (is_leaving(worker) || is_added(worker))
            continue;
        if (!worker->stream.endpoint.peer.drained)
            return false;
        any = true;
    }
    return any;
}

static void drain_added(struct stdio_bus *bus, struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        struct endpoint *endpoint = &worker->stream.endpoint;

        if (!is_added(worker))
            continue;
        log_info(bus->log, endpoint->context, "drained, as the other workers of its pool");
        waiting_set_drained(&bus->router, &endpoint->peer, true);
        reports_send(bus, "drained", endpoint->context, worker->pool_id, NULL);
    }
}

/* --- all of them --- */

/* The pool that is first has the messages for which none is named. */
static void arrange(struct stdio_bus *bus, const struct config *config)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        struct pool *pool = pool_with(bus, config->pools[i].id, POOL_SERVES);

        if (pool == NULL) /* never: each pool of the setup was found or made */
            continue;
        list_remove(&pool->link);
        list_append(&bus->pools, &pool->link);
        router_arrange(&bus->router, &pool->group);
    }
}

/* A worker that was added is started as at the start of the daemon. */
static void start_added(struct worker *worker)
{
    const struct pool *pool = pool_of(worker);

    if (worker->state == WORKER_STOPPED && is_added(worker) && !pool_is_supplied(pool))
        worker_handle(worker, WORKER_DEADLINE);
}

static void start_pools(struct stdio_bus *bus)
{
    struct list_node *node, *following, *at, *next;

    list_each(&bus->pools, node, following) {
        list_each(&list_entry(node, struct pool, link)->workers, at, next)
            start_added(list_entry(at, struct worker, link));
    }
    workers_each(bus, sleep_begin);
    bus->router.demand = true;
}

static void settle(struct renewals *renewals, struct pool *pool, struct setup *setup)
{
    struct stdio_bus *bus = renewals->bus;
    const struct pool_config *config = config_named(&setup->config, pool->group.id);
    struct pool *by = pool_with(bus, pool->config->id, POOL_NEW);
    bool drained = is_drained(pool);

    if (by != NULL)
        replace(renewals, pool, by);
    else if (config != NULL)
        take_pool(renewals, pool, config, setup);
    else if (is_bridged(pool))
        log_warn(bus->log, "", "pool %s serves the topic bus: it is removed at the next start",
                 pool->config->id);
    else
        depart(renewals, pool, POOL_REMOVED);
    if (drained)
        drain_added(bus, by != NULL ? by : pool);
}

void reload_pools_commit(struct renewals *renewals, struct setup *setup)
{
    struct stdio_bus *bus = renewals->bus;
    struct list_node *node, *following;

    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate == POOL_SERVES)
            settle(renewals, pool, setup);
    }
    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate == POOL_NEW) {
            log_info(bus->log, "", "pool %s is added", pool->config->id);
            pool->fate = POOL_SERVES;
        }
    }
    arrange(bus, &setup->config);
    pool_holders_return(bus);
    start_pools(bus);
}
