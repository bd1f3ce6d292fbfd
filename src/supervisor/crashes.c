#include "build_config.h"

#include "supervisor/crashes.h"

#include <stdlib.h>

#include "bus/origins.h"
#include "router/affinity.h"
#include "router/bind.h"
#include "router/eras.h"
#include "router/waiting.h"

struct crash {
    struct penalty penalty;
    struct peer_origin *origin; /* a reference */
    struct stdio_bus *bus;
    struct timer timer; /* ends the delay, then forgets the crashes */
    unsigned streak;
    int64_t window_ms;
};

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

static void forget_crash(struct crash *crash)
{
    stdio_bus_event_loop_stop_timer(crash->bus->loop, &crash->timer);
    waiting_release_all(&crash->bus->router, &crash->penalty.held);
    list_remove(&crash->penalty.link);
    origins_release(crash->origin);
    free(crash);
}

static void time_over(void *user_data)
{
    struct crash *crash = user_data;

    if (!crash->penalty.delays) {
        forget_crash(crash);
        return;
    }
    crash->penalty.delays = false;
    waiting_release_all(&crash->bus->router, &crash->penalty.held);
    stdio_bus_event_loop_start_timer(crash->bus->loop, &crash->timer, crash->window_ms);
}

/* The crashes of this origin in the pool; NULL if out of memory. */
static struct crash *get(struct worker *worker, struct group *pool)
{
    struct list_node *node, *following;
    struct crash *crash;

    list_each(&pool->penalties, node, following) {
        crash = list_entry(node, struct crash, penalty.link);
        if (crash->origin == worker->blamed)
            return crash;
    }
    crash = calloc(1, sizeof *crash);
    if (crash == NULL) {
        log_error(bus_of(worker)->log, worker->stream.endpoint.context,
                  "out of memory: the clients of its origin do not wait after the crash");
        return NULL;
    }
    crash->penalty.origin = crash->origin = worker->blamed;
    origins_hold(crash->origin);
    crash->bus = bus_of(worker);
    crash->window_ms = worker->restart.window_ms;
    list_init(&crash->penalty.held);
    timer_init(&crash->timer, time_over, crash);
    list_append(&pool->penalties, &crash->penalty.link);
    return crash;
}

/* A link ends for what other machines do: the node that serves it blames the crashes there. */
void crashes_blame(struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;
    const struct binding *binding = affinity_sole(peer);

    if (worker->after_end != WORKER_RESTARTS || worker->program.dialer != NULL || binding == NULL ||
        peer->pool->mode.clients != CLIENTS_EXCLUSIVE || worker->blamed != NULL)
        return;
    worker->blamed = binding->client->origin;
    origins_hold(worker->blamed);
}

void crashes_excuse(struct worker *worker)
{
    origins_release(worker->blamed);
    worker->blamed = NULL;
}

/* A language server exits when its client tells it to. */
static bool is_crash(const struct worker *worker)
{
    return worker->stream.endpoint.peer.pool->mode.on_exit != EXIT_CLOSES ||
           worker->child.status != 0;
}

void crashes_note(struct worker *worker)
{
    struct group *pool = eras_claimed(worker->stream.endpoint.peer.pool);
    struct crash *crash;

    if (pool->mode.on_exit == EXIT_CLOSES && worker->child.pid > 0)
        return; /* its status is not known yet */
    if (worker->blamed != NULL && is_crash(worker) && (crash = get(worker, pool)) != NULL &&
        !crash->penalty.delays) {
        crash->penalty.delays = true;
        stdio_bus_event_loop_start_timer(crash->bus->loop, &crash->timer,
                                         restart_delay(crash->streak++));
    }
    crashes_excuse(worker);
}

void crashes_forget(struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->group.penalties, node, following)
        forget_crash(list_entry(node, struct crash, penalty.link));
}
