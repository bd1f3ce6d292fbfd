#include "build_config.h"

#include "supervisor/halt.h"

#include "process/pool.h"
#include "router/waiting.h"
#include "supervisor/busy.h"
#include "supervisor/replay.h"
#include "supervisor/workers.h"

#define LOOK_MS 10 /* between two looks */

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

static int64_t now_ms(const struct worker *worker)
{
    return stdio_bus_event_loop_now_ms(bus_of(worker)->loop);
}

static bool is_busy(const struct worker *worker)
{
    return busy_with_anything(&worker->stream.endpoint.peer) ||
           worker->stream.connection.output.bytes > 0;
}

/* Whether clients would miss the next process. */
static bool is_used(const struct worker *worker)
{
    return !list_empty(&worker->stream.endpoint.peer.bindings) ||
           pool_of(worker)->group.mode.clients != CLIENTS_EXCLUSIVE;
}

static void end_process(struct worker *worker)
{
    enum worker_halt kind = worker->halt;

    log_info(bus_of(worker)->log, worker->stream.endpoint.context, "%s, asked for by the user%s",
             kind == HALT_RESTART ? "restart" : "stop",
             is_busy(worker) ? "; what is in flight is not waited for any longer" : "");
    worker->halt = HALT_NONE;
    worker->restart_asked = kind == HALT_RESTART && is_used(worker);
    if (kind != HALT_END)
        worker_handle(worker, WORKER_RETIRE);
}

/* The process ends by itself. */
static void give_up(struct worker *worker)
{
    if (worker->halt == HALT_REST && worker->state == WORKER_STOPPED)
        worker_handle(worker, WORKER_RETIRE);
    worker->halt = HALT_NONE;
}

void halt_look(void *user_data)
{
    struct worker *worker = user_data;
    struct peer *peer = &worker->stream.endpoint.peer;

    if (worker->state != WORKER_STARTING && worker->state != WORKER_RUNNING) {
        give_up(worker);
        return;
    }
    if (peer_serves(peer))
        waiting_worker_available(&bus_of(worker)->router, peer, PEER_ABSENT);
    if (replay_runs(worker) || (is_busy(worker) && now_ms(worker) < worker->halt_until_ms))
        stdio_bus_event_loop_start_timer(bus_of(worker)->loop, &worker->halting, LOOK_MS);
    else
        end_process(worker);
}

/* Nothing runs. That the last process has failed may be mended. */
static void start_again(struct worker *worker, bool was_failing)
{
    struct peer *peer = &worker->stream.endpoint.peer;

    if (worker->state == WORKER_FAILED) {
        worker_revive(worker);
    } else if (!timer_started(&worker->deadline)) {
        if (!was_failing || list_empty(&peer->bindings))
            return;
        pool_of(worker)->group.failure.count = 0; /* without the delay that grows */
        waiting_call(&bus_of(worker)->router, peer);
        return;
    }
    stdio_bus_event_loop_stop_timer(bus_of(worker)->loop, &worker->deadline);
    worker_handle(worker, WORKER_DEADLINE);
}

/* Whether it has a process. */
static bool halt(struct worker *worker, enum worker_halt halt, bool was_failing)
{
    switch (worker->state) {
    case WORKER_STARTING:
    case WORKER_RUNNING:
        if (halt != HALT_RESTART)
            worker->stream.endpoint.peer.rest = PEER_ASLEEP;
        worker->halt = halt;
        worker->halt_until_ms = now_ms(worker) + HALT_MS;
        halt_look(worker);
        return true;
    case WORKER_STOPPING:
        return true;
    case WORKER_STOPPED:
    case WORKER_FAILED:
        break;
    }
    if (halt == HALT_RESTART)
        start_again(worker, was_failing);
    else if (halt == HALT_REST && worker->state == WORKER_STOPPED)
        worker_handle(worker, WORKER_RETIRE);
    return false;
}

size_t halt_processes(struct stdio_bus *bus, enum worker_halt kind)
{
    struct list_node *pool, *next_pool, *node, *following;
    size_t count = 0;

    list_each(&bus->pools, pool, next_pool) {
        struct pool *halted = list_entry(pool, struct pool, link);
        bool was_failing = pool_is_failing(halted);

        halted->halted = kind != HALT_RESTART;
        list_each(&halted->workers, node, following)
            count += halt(list_entry(node, struct worker, link), kind, was_failing);
    }
    return count;
}

bool halt_is_awaited(const struct stdio_bus *bus)
{
    const struct worker *worker = NULL;

    while ((worker = workers_next(bus, worker)) != NULL) {
        if (worker->halt != HALT_NONE)
            return true;
    }
    return false;
}
