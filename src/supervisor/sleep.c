#include "build_config.h"

#include "supervisor/sleep.h"

#include "bus/state.h"
#include "process/pool.h"
#include "router/eras.h"
#include "router/waiting.h"
#include "supervisor/busy.h"
#include "supervisor/replay.h"

#define LOOKS 4 /* in idle_stop_sec */

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

static int64_t time_of(const struct worker *worker)
{
    return (int64_t)pool_of(worker)->group.mode.idle_stop_sec * 1000;
}

static void look_again(struct worker *worker)
{
    stdio_bus_event_loop_start_timer(bus_of(worker)->loop, &worker->idle, time_of(worker) / LOOKS);
}

/* What the server sends of itself, and what is being remembered of it. */
static bool handshake_is_needed(const struct handshake *handshake)
{
    return handshake->watches || subscriptions_any(&handshake->subscriptions) ||
           handshake->remembering.asks;
}

/* A message is under way, or the process keeps what clients have of it. */
static bool is_needed(const struct worker *worker)
{
    const struct connection *connection = &worker->stream.connection;
    const struct peer *peer = &worker->stream.endpoint.peer;

    if (bus_of(worker)->phase != BUS_PHASE_SERVING || worker->state != WORKER_RUNNING ||
        peer->availability != PEER_READY || busy_with_anything(peer) ||
        connection->output.bytes > 0 || connection->input_state == INPUT_PAUSED ||
        !list_empty(&peer->sessions) || !list_empty(&peer->tasks))
        return true;
    if (peer->pool->mode.clients == CLIENTS_EXCLUSIVE && peer_is_fresh(peer))
        return true; /* it is spare */
    if (peer->handshake != NULL && handshake_is_needed(peer->handshake))
        return true;
    return !list_empty(&peer->bindings) && !peer->pool->stateless && !replay_can_move(worker);
}

static void fall_asleep(struct worker *worker)
{
    log_repeated(bus_of(worker)->log, LOG_LEVEL_INFO, worker->stream.endpoint.context,
                 LOG_NO_SOURCE, "not called for %lld s: ending it until it is",
                 (long long)time_of(worker) / 1000);
    worker->sleeps++;
    worker->stream.endpoint.peer.rest = PEER_ASLEEP;
    worker_handle(worker, WORKER_RETIRE);
}

void sleep_begin(struct worker *worker)
{
    if (time_of(worker) == 0 || worker->state != WORKER_RUNNING)
        return;
    worker->idle_since_ms = stdio_bus_event_loop_now_ms(bus_of(worker)->loop);
    look_again(worker);
}

void sleep_look(void *user_data)
{
    struct worker *worker = user_data;
    const struct connection *connection = &worker->stream.connection;
    uint64_t frames = connection->frames_in + connection->frames_out;
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus_of(worker)->loop);

    if (time_of(worker) == 0)
        return;
    if (frames != worker->idle_frames || is_needed(worker)) {
        worker->idle_frames = frames;
        worker->idle_since_ms = now_ms;
    }
    if (now_ms - worker->idle_since_ms >= time_of(worker))
        fall_asleep(worker);
    else
        look_again(worker);
}

static void renew_pool(struct stdio_bus *bus, struct pool *pool)
{
    struct list_node *node, *following;
    bool is_used = false;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        struct peer *peer = &worker->stream.endpoint.peer;

        if (!list_empty(&peer->bindings))
            waiting_call(&bus->router, peer);
        is_used |= !list_empty(&peer->bindings) || worker->state != WORKER_STOPPED;
    }
    if (!is_used)
        pool_forget(pool);
    else
        eras_forget(&pool->group);
}

void sleep_renew(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->pools, node, following)
        renew_pool(bus, list_entry(node, struct pool, link));
}

void sleep_process_ended(struct worker *worker)
{
    stdio_bus_event_loop_stop_timer(bus_of(worker)->loop, &worker->idle);
}
