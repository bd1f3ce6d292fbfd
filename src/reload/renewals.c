#include "build_config.h"

#include "reload/renewals.h"

#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/service.h"
#include "reload/pool_holders.h"
#include "router/waiting.h"
#include "supervisor/busy.h"
#include "supervisor/pools.h"
#include "supervisor/replay.h"

/* A new process that exits at once takes no place: for so long the older ones continue beside
 * it. */
#define SETTLE_MS 300

static struct peer *peer_of(struct worker *worker)
{
    return &worker->stream.endpoint.peer;
}

/* --- what is left to do --- */

/* timer_fn: makes a round. */
static void due(void *user_data)
{
    (void)user_data;
}

void renewals_init(struct renewals *renewals, struct stdio_bus *bus)
{
    renewals->bus = bus;
    list_init(&renewals->workers);
    timer_init(&renewals->timer, due, renewals);
}

void renewals_attend(struct renewals *renewals)
{
    renewals->bus->attentive += !renewals->attends;
    renewals->attends = true;
}

void renewals_add(struct renewals *renewals, struct worker *worker, enum worker_renewal renewal)
{
    worker->renewal = renewal;
    if (!list_linked(&worker->renewing))
        list_append(&renewals->workers, &worker->renewing);
    renewals_attend(renewals);
}

void renewals_depart(struct renewals *renewals)
{
    renewals->departs = true;
    renewals_attend(renewals);
}

bool renewals_any(const struct renewals *renewals)
{
    return renewals->departs || !list_empty(&renewals->workers);
}

void renewals_stop(struct renewals *renewals)
{
    stdio_bus_event_loop_stop_timer(renewals->bus->loop, &renewals->timer);
}

/* --- whether a worker is free --- */

static bool is_free(struct worker *worker)
{
    const struct peer *peer = peer_of(worker);
    const struct pool *pool = pool_of(worker);

    if (worker->renewal == RENEWAL_LEAVES && pool->fate == POOL_SERVES && !peer->drained &&
        worker->state == WORKER_RUNNING)
        return false;
    if (pool->fate == POOL_REMOVED)
        return !busy_with_anything(peer);
    if (!list_empty(&peer->sessions) || !list_empty(&peer->tasks) ||
        (pool->fate == POOL_REPLACED && pool->is_held))
        return false;
    if (!list_empty(&peer->bindings) &&
        (worker->renewal == RENEWAL_LEAVES || (!peer->pool->stateless && !replay_can_move(worker))))
        return false;
    return !busy_with_anything(peer);
}

/* --- workers whose places others take --- */

/* How long until a worker of a younger configuration has taken its place; -1: none is about to. */
static int64_t place_taken_in(const struct worker *worker, int64_t now_ms)
{
    struct list_node *node, *following;
    int64_t soonest_ms = -1;

    list_each(&pool_of(worker)->workers, node, following) {
        struct worker *other = list_entry(node, struct worker, link);
        int64_t left_ms = other->stream.endpoint.since_ms + SETTLE_MS - now_ms;

        if (other->generation <= worker->generation || peer_of(other)->availability != PEER_READY)
            continue;
        if (left_ms < 0)
            left_ms = 0;
        if (soonest_ms < 0 || left_ms < soonest_ms)
            soonest_ms = left_ms;
    }
    return soonest_ms;
}

/* Of a pool that stays: the worker gets nothing new once another one is there for that. */
static void give_place(struct renewals *renewals, struct worker *worker)
{
    struct stdio_bus *bus = renewals->bus;
    int64_t left_ms = place_taken_in(worker, stdio_bus_event_loop_now_ms(bus->loop));

    if (left_ms == 0)
        waiting_set_drained(&bus->router, peer_of(worker), true);
    else if (left_ms > 0 && !timer_started(&renewals->timer))
        stdio_bus_event_loop_start_timer(bus->loop, &renewals->timer, left_ms);
}

/* --- the end of a worker --- */

static void note_past(struct pool_past *past, const struct worker *worker)
{
    traffic_add(&past->carried, &worker->carried);
    past->starts += worker->starts;
    past->restarts += worker->restarts;
}

/* The clients of a worker that has crashed get the next process. */
static bool may_go(struct worker *worker)
{
    const struct pool *pool = pool_of(worker);

    return worker_finished(worker) &&
           (pool->fate == POOL_REMOVED || (list_empty(&peer_of(worker)->bindings) &&
                                           !(pool->fate == POOL_REPLACED && pool->is_held)));
}

static void renew(struct renewals *renewals, struct worker *worker)
{
    struct stdio_bus *bus = renewals->bus;
    struct pool *pool = pool_of(worker);

    if (worker->renewal == RENEWAL_LEAVES && may_go(worker)) {
        worker_stop(worker);
        note_past(&pool->past, worker);
        pools_remove_worker(bus, worker);
        return;
    }
    if (worker->state != WORKER_STARTING && worker->state != WORKER_RUNNING)
        return;
    if (worker->renewal == RENEWAL_LEAVES && pool->fate == POOL_SERVES &&
        !peer_of(worker)->drained && worker->state == WORKER_RUNNING)
        give_place(renewals, worker);
    if (!is_free(worker))
        return;
    worker->restart_asked = worker->renewal == RENEWAL_IN_PLACE &&
                            (!list_empty(&peer_of(worker)->bindings) ||
                             pool->group.mode.clients != CLIENTS_EXCLUSIVE);
    log_info(bus->log, worker->stream.endpoint.context, "free: ending it after the reload");
    worker_handle(worker, WORKER_RETIRE);
}

/* --- the end of a pool --- */

/* Counters continue in the pool that has the name now. */
static void pass_on(const struct stdio_bus *bus, const struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&bus->pools, node, following) {
        struct pool *other = list_entry(node, struct pool, link);

        if (other->fate != POOL_SERVES || !slice_equal(other->group.id, pool->group.id))
            continue;
        traffic_add(&other->past.carried, &pool->past.carried);
        other->past.starts += pool->past.starts;
        other->past.restarts += pool->past.restarts;
        request_counts_add(&other->group.asked, &pool->group.asked);
        request_counts_add(&other->group.asking, &pool->group.asking);
        request_counts_add(&other->group.asked, &pool->stateless.asked);
        request_counts_add(&other->group.asking, &pool->stateless.asking);
    }
}

/* --- the end of a listener --- */

static bool is_used(const struct bus_listener *listener)
{
    const struct stdio_bus *bus = listener->bus;
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        if (client_at(node)->listener == listener)
            return true;
    }
    each_service(bus, at, uses_listener) {
        if (at.service->uses_listener(at.state, listener))
            return true;
    }
    return false;
}

/* Frees the listeners that are gone and that no client refers to. Returns whether others are left.
 */
static bool tidy_listeners(struct stdio_bus *bus)
{
    struct list_node *node, *following;
    bool any_left = false;

    list_each(&bus->listeners, node, following) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        if (!listener->is_gone)
            continue;
        if (is_used(listener))
            any_left = true;
        else
            listeners_remove(listener, true);
    }
    return any_left;
}

/* --- what departs --- */

/* After the end of a client or a worker. */
static void look_at_departing(struct renewals *renewals)
{
    struct stdio_bus *bus = renewals->bus;
    struct list_node *node, *following;

    renewals->departs = tidy_listeners(bus);
    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate == POOL_SERVES)
            continue;
        pool->is_held = pool_holders_any(bus, pool);
        if (!pool->is_held && list_empty(&pool->workers)) {
            pass_on(bus, pool);
            pools_remove(bus, pool);
        } else {
            renewals->departs = true;
        }
    }
}

static void go_on(struct renewals *renewals)
{
    struct stdio_bus *bus = renewals->bus;
    struct list_node *node, *following;

    if (renewals->departs && bus->end_noted)
        look_at_departing(renewals);
    list_each(&renewals->workers, node, following)
        renew(renewals, list_entry(node, struct worker, renewing));
    if (renewals->departs && bus->end_noted)
        look_at_departing(renewals);
}

void renewals_run(struct renewals *renewals, bool more)
{
    if (renewals_any(renewals) && renewals->bus->phase < BUS_PHASE_DRAINING)
        go_on(renewals);
    renewals->bus->attentive -= renewals->attends;
    renewals->attends = false;
    if (more || renewals_any(renewals))
        renewals_attend(renewals);
}
