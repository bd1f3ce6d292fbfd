#include "build_config.h"

#include "bus_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->bus;
}

static const char *context(const struct worker *worker)
{
    return worker->endpoint.connection.context;
}

/* --- what the connection of a worker tells --- */

/* Spec 5.3. */
static void worker_malformed(struct connection *connection, int code, const char *problem)
{
    struct worker *worker = worker_of(connection);

    (void)code;
    log_error(bus_of(worker)->log, context(worker), "malformed output: %s; terminating it",
              problem);
    worker_handle(worker, WORKER_MISBEHAVED);
}

/* ADR-010: it goes on. Whoever waits for what was in the frame waits in vain. */
static enum connection_verdict worker_refused(struct connection *connection, int code,
                                              const char *problem)
{
    struct worker *worker = worker_of(connection);

    (void)code;
    log_error(bus_of(worker)->log, context(worker), "refused a frame of its output: %s", problem);
    return CONNECTION_NEXT;
}

/* A client that had sent everything and waited for this answer is done now. */
static void check_asker_done(const struct route *route)
{
    if ((route->action == ROUTE_FORWARD || route->action == ROUTE_FORWARD_EDITED) &&
        route->answered != NULL)
        bus_check_client_done(list_entry(endpoint_of_peer(route->to), struct client, endpoint));
}

/* It is JSON, but no message. */
static enum connection_verdict unacceptable(struct worker *worker, const struct message *message,
                                            const char *problem)
{
    struct connection *connection = &worker->endpoint.connection;

    if (connection->framed)
        return worker_refused(connection, 0, problem);
    if (worker->skips_bad_output)
        connection_tell_skipped(connection, message->bytes, problem);
    else
        worker_malformed(connection, 0, problem);
    return CONNECTION_NEXT;
}

static enum connection_verdict worker_message(struct connection *connection,
                                              const struct message *message,
                                              enum message_problem problem)
{
    struct worker *worker = worker_of(connection);
    struct stdio_bus *bus = bus_of(worker);
    enum connection_verdict verdict;
    struct route route;

    if (problem != MESSAGE_OK)
        return unacceptable(worker, message, message_problem_text(problem));
    router_from_worker(&bus->router, &worker->endpoint.peer, message, &route);
    verdict = bus_carry_out(bus, &worker->endpoint, message, &route);
    if (verdict == CONNECTION_NEXT)
        check_asker_done(&route);
    return verdict;
}

/* The same in a pool with keys of its own. */
static enum connection_verdict sharing_message(struct connection *connection,
                                               const struct message *message,
                                               enum message_problem problem)
{
    struct worker *worker = worker_of(connection);
    enum connection_verdict verdict;
    struct route route;

    if (problem != MESSAGE_OK)
        return unacceptable(worker, message, message_problem_text(problem));
    verdict = bus_sharing_worker_message(worker, message, &route);
    if (verdict == CONNECTION_NEXT)
        check_asker_done(&route);
    return verdict;
}

static void worker_ended(struct connection *connection, size_t cut)
{
    struct worker *worker = worker_of(connection);

    if (cut > 0)
        log_warn(bus_of(worker)->log, context(worker),
                 "its output ended in the middle of a message; %zu bytes were dropped", cut);
    worker_handle(worker, WORKER_OUTPUT_ENDED);
}

static void worker_full(struct connection *connection, bool full)
{
    struct worker *worker = worker_of(connection);

    log_debug(bus_of(worker)->log, context(worker), full ? "backpressure: its queue is full"
                                                         : "backpressure released");
    router_set_full(&bus_of(worker)->router, &worker->endpoint.peer, full);
}

static void worker_flushed(struct connection *connection)
{
    (void)connection;
}

static void worker_connection_failed(struct connection *connection,
                                     enum connection_failure failure, int error)
{
    struct worker *worker = worker_of(connection);
    struct log *log = bus_of(worker)->log;

    if (failure == CONNECTION_BROKEN) {
        log_warn(log, context(worker), "its stdin is closed (%s); %zu bytes for it were dropped",
                 strerror(error), connection->output.bytes);
        worker_handle(worker, WORKER_INPUT_BROKEN);
        return;
    }
    if (connection->held && !worker->endpoint.blocks_itself) {
        /* We are not reading from it, so that it may well be unable to read from us. Whoever it
         * is held for has a time limit too. */
        connection_renew_stall(connection);
        return;
    }
    log_error(log, context(worker),
              "did not read for backpressure_timeout_sec; %zu bytes for it were dropped; "
              "terminating it",
              connection->output.bytes);
    worker_handle(worker, WORKER_MISBEHAVED);
}

static void worker_starved(struct connection *connection)
{
    struct worker *worker = worker_of(connection);

    bus_starve(bus_of(worker), &worker->endpoint);
}

static const struct connection_handler connection_handler = {
    worker_message, worker_malformed, worker_refused,           worker_ended,
    worker_full,    worker_flushed,   worker_connection_failed, worker_starved,
};

static void sharing_flushed(struct connection *connection)
{
    worker_end_input(worker_of(connection));
}

static const struct connection_handler sharing_handler = {
    sharing_message, worker_malformed, worker_refused,           worker_ended,
    worker_full,     sharing_flushed,  worker_connection_failed, worker_starved,
};

/* --- what a worker itself tells --- */

static void worker_available(struct worker *worker, enum peer_availability availability)
{
    struct stdio_bus *bus = bus_of(worker);

    /* While starting, the first to be up would get everything; afterwards, nobody gets anything. */
    if (availability == PEER_HERE &&
        (bus->phase == BUS_PHASE_STARTING || bus->phase >= BUS_PHASE_DRAINING))
        return;
    router_worker_available(&bus->router, &worker->endpoint.peer, availability);
}

/* A client's request will not be answered by the worker that had it (spec 7.1.2). */
static void tell_client(void *user_data, struct peer *asker, struct message_id id)
{
    struct stdio_bus *bus = user_data;
    struct endpoint *to = endpoint_of_peer(asker);
    char text[64];

    log_warn(bus->log, to->connection.context,
             "its pending request (id %s) is discarded: the worker exited",
             log_escape(text, sizeof text, id.text));
    bus_send_error(bus, to, id, JSONRPC_SERVER_ERROR, "worker exited before answering");
}

static void worker_gone(struct worker *worker)
{
    struct stdio_bus *bus = bus_of(worker);

    timers_stop(stdio_bus_event_loop_timers(bus->loop), &worker->endpoint.hold);
    router_worker_gone(&bus->router, &worker->endpoint.peer, tell_client, bus);
    bus_check_clients_done(bus);
}

static bool all_failed(const struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++) {
        if (bus->workers[i].state != WORKER_FAILED)
            return false;
    }
    return true;
}

static void worker_over(struct worker *worker)
{
    struct stdio_bus *bus = bus_of(worker);

    listener_descriptor_freed(&bus->listener);
    bus->router.demand = bus->sharing;
    if (bus->phase < BUS_PHASE_DRAINING && all_failed(bus)) {
        log_error(bus->log, "", "no worker is left");
        bus_begin_stop(bus, BUS_NO_WORKER_LEFT);
    }
    bus_check_stopped(bus);
}

static void worker_first_exec(struct worker *worker, bool succeeded)
{
    struct stdio_bus *bus = bus_of(worker);

    if (bus->phase != BUS_PHASE_STARTING)
        return; /* one that was started for a client: its restarts will tell */
    if (!succeeded)
        bus_begin_stop(bus, BUS_BAD_COMMAND);
    else if (--bus->starting_count == 0)
        bus_serve(bus);
}

static const struct worker_host worker_host = {
    &connection_handler, worker_available, worker_gone, worker_over, worker_first_exec,
};

static const struct worker_host sharing_host = {
    &sharing_handler, worker_available, worker_gone, worker_over, worker_first_exec,
};

/* --- all of them --- */

static void hold_expired(void *user_data)
{
    struct worker *worker = user_data;

    router_hold_expired(&bus_of(worker)->router, &worker->endpoint.peer);
}

static int create_worker(struct stdio_bus *bus, const struct pool_config *pool, size_t pool_index)
{
    struct worker *worker = &bus->workers[bus->worker_count];

    worker->bus = bus;
    worker->number = (unsigned)bus->worker_count + 1;
    worker->pool = pool->id;
    worker->program = (struct program){pool->argv, pool->envp, pool->cwd,
                                       bus->has_nofile ? &bus->nofile : NULL};
    worker->framing = pool->framing;
    worker->skips_bad_output = pool->skip_bad_output;
    worker->endpoint.is_worker = true;
    timer_init(&worker->endpoint.hold, hold_expired, worker);
    if (worker_init(worker, &bus->transport,
                    sharing_is_plain(&pool->sharing) ? &worker_host : &sharing_host) !=
        STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    bus->worker_count++;
    return router_add_worker(&bus->router, &worker->endpoint.peer, pool_index);
}

int bus_create_workers(struct stdio_bus *bus)
{
    const struct config *config = bus->options.config;
    size_t total = 0, i;
    unsigned instance;

    for (i = 0; i < config->pool_count; i++)
        total += config->pools[i].instances;
    bus->workers = calloc(total, sizeof *bus->workers);
    if (bus->workers == NULL)
        return STDIO_BUS_ERR;
    for (i = 0; i < config->pool_count; i++) {
        const struct pool_config *pool = &config->pools[i];

        if (router_add_pool(&bus->router, slice_of(pool->id, strlen(pool->id))) < 0)
            return STDIO_BUS_ERR;
        router_set_sharing(&bus->router, i, &pool->sharing);
        bus->sharing = bus->sharing || !sharing_is_plain(&pool->sharing);
        for (instance = 0; instance < pool->instances; instance++) {
            if (create_worker(bus, pool, i) != STDIO_BUS_OK)
                return STDIO_BUS_ERR;
        }
    }
    return STDIO_BUS_OK;
}

/* Of an exclusive pool only the spare ones: the others are for clients that come. */
static bool starts_at_once(const struct stdio_bus *bus, const struct worker *worker)
{
    const struct router_group *pool = &bus->router.pools[worker->endpoint.peer.pool];

    size_t i;

    if (pool->sharing.clients != CLIENTS_EXCLUSIVE)
        return true;
    for (i = 0; i < pool->sharing.spare && i < pool->count; i++) {
        if (pool->workers[i] == &worker->endpoint.peer)
            return true;
    }
    return false;
}

int bus_start_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++)
        bus->starting_count += starts_at_once(bus, &bus->workers[i]);
    for (i = 0; i < bus->worker_count; i++) {
        if (!starts_at_once(bus, &bus->workers[i]))
            continue;
        if (worker_start(&bus->workers[i]) != STDIO_BUS_OK) {
            log_error(bus->log, context(&bus->workers[i]), "cannot start: %s", strerror(errno));
            return STDIO_BUS_ERR;
        }
    }
    return STDIO_BUS_OK;
}

void bus_serve_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++) {
        if (bus->workers[i].state == WORKER_RUNNING)
            router_worker_available(&bus->router, &bus->workers[i].endpoint.peer, PEER_HERE);
    }
}

void bus_reap_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++)
        worker_check_exit(&bus->workers[i]);
}

void bus_stop_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++)
        worker_handle(&bus->workers[i], WORKER_STOP);
}

void bus_kill_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++)
        worker_kill(&bus->workers[i]);
}

bool bus_workers_finished(const struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++) {
        if (!worker_finished(&bus->workers[i]))
            return false;
    }
    return true;
}

void bus_destroy_workers(struct stdio_bus *bus)
{
    size_t i;

    for (i = 0; i < bus->worker_count; i++)
        worker_destroy(&bus->workers[i]);
    free(bus->workers);
    bus->workers = NULL;
    bus->worker_count = 0;
}
