#include "build_config.h"

#include "upgrade/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "bus/service.h"
#include "process/pool.h"
#include "process/worker.h"
#include "router/router_archive.h"
#include "supervisor/early_exit.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"
#include "transport/connection.h"
#include "transport/origin.h"

/* --- the bus --- */

/* Workers get the limit of descriptors that the first program was started with. */
static void archive_bus(struct archive *archive, struct stdio_bus *bus)
{
    static const struct archive_field fields[] = {
        ARCHIVE_CHOICE(struct stdio_bus, phase, BUS_PHASE_ENDING),
        ARCHIVE_CHOICE(struct stdio_bus, reason, BUS_SYSTEM_ERROR),
        ARCHIVE_FLAGS(struct stdio_bus, has_nofile),
        ARCHIVE_INTEGERS(struct stdio_bus, last_worker, started_ms, started_epoch_ms, idle_closed,
                         rate_waits, nofile, counters),
    };
    enum log_level level = bus->log->level;

    archive_mark(archive, "bus");
    ARCHIVE_FIELDS(archive, bus, fields);
    archive_expect(archive, bus->phase >= BUS_PHASE_SERVING, "the daemon did not serve");
    /* The log of a check has errors alone. */
    ARCHIVE_ENUM(archive, level, LOG_LEVEL_ERROR);
    if (archive->stand_in < 0)
        bus->log->level = level;
    timer_archive(archive, bus->loop, &bus->drain);
    timer_archive(archive, bus->loop, &bus->idle);
}

/* The services of both programs are the same. */
static void archive_presence(struct archive *archive, const struct stdio_bus *bus)
{
    size_t count = archive_count(archive, bus->service_count);

    archive_expect(archive, count == bus->service_count, "the programs have other services");
    for (size_t i = 0; i < bus->service_count; i++) {
        bool is_there = archive_present(archive, bus->services[i] != NULL);

        archive_expect(archive, is_there == (bus->services[i] != NULL),
                       "only one of both has a service");
    }
}

/* --- pools --- */

static void archive_worker(struct archive *archive, void *owner, void *item)
{
    struct router_archive *state = owner;
    struct worker *worker = item;
    struct stdio_bus *bus = list_entry(state->router, struct stdio_bus, router);
    enum workers_handler handler = WORKERS_MESSAGES;

    if (archive->saves && worker->stream.handler != NULL)
        handler = (enum workers_handler)(worker->stream.handler - workers_handlers);
    ARCHIVE_ENUM(archive, handler, WORKERS_HANDLERS - 1);
    archive_flag(archive, &worker->stream.endpoint.peer.is_passage);
    worker_archive(archive, worker, &workers_handlers[handler]);
    origins_archive(archive, bus, &worker->stream.endpoint.peer.origin);
    origins_archive(archive, bus, &worker->blamed);
    router_archive_peer(state, &worker->stream.endpoint.peer);
}

/* The places of these are among the others' by the time they were added. */
static void archive_passages(struct archive *archive, struct stdio_bus *bus, struct pool *pool)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&pool->workers, node, following)
        count += list_entry(node, struct worker, link)->stream.endpoint.peer.is_passage;
    count = archive_count(archive, count);
    while (archive_loads(archive) && count-- > 0) {
        struct worker *worker = pools_add_passage(bus, pool);

        if (!archive_made(archive, worker != NULL))
            return;
    }
}

static void archive_pool(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct pool, seen_protocol),
        ARCHIVE_INTEGERS(struct pool, past.carried, past.starts, past.restarts),
    };
    struct router_archive *state = owner;
    struct pool *pool = item;
    struct slice id = pool->group.id, found;

    archive_mark(archive, "pool");
    found = archive_slice(archive, id);
    archive_expect(archive, found.data != NULL && slice_equal(found, id), "the pools are others");
    ARCHIVE_FIELDS(archive, pool, fields);
    early_exit_archive(archive, pool);
    archive_passages(archive, list_entry(state->router, struct stdio_bus, router), pool);
    ARCHIVE_ITEMS(archive, &pool->workers, struct worker, link, archive_worker, owner,
                  "a pool has another number of workers");
}

/* --- clients --- */

static void archive_identity(struct archive *archive, struct stdio_bus *bus, struct client *client)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct client, token),
        ARCHIVE_FLAGS(struct client, on_stdio, on_tcp),
    };

    archive_mark(archive, "client");
    ARCHIVE_FIELDS(archive, client, fields);
    listeners_archive_one(archive, bus, &client->listener);
    archive_expect(archive, !client->on_stdio || client->listener == NULL,
                   "the client on stdin has a listener");
}

/* Any other client. One that has half closed has another timer. */
static void archive_messages(struct archive *archive, struct stdio_bus *bus, struct client *client)
{
    struct timer *timer = &client->stream.endpoint.hold_timer;
    bool half_closed = timer->fn == clients_half_close_expired;
    enum gate_stage stage = archive->saves ? gate_stage_of(client) : GATE_PASSED;
    struct stream_options options = {.borrowed = client->on_stdio};

    archive_flag(archive, &half_closed);
    ARCHIVE_ENUM(archive, stage, GATE_FIRST);
    archive_expect(archive,
                   client->listener != NULL || stage == GATE_PASSED || stage == GATE_REFUSED,
                   "a client without a listener is at a gate");
    if (!archive_ok(archive))
        return;
    if (half_closed && !archive->saves)
        timer_init(timer, clients_half_close_expired, client);
    gate_set_stage(&options, client, stage);
    stream_archive(archive, &client->stream, &bus->transport, &options);
    if (!archive->saves)
        gate_go_on(client, stage);
}

/* Its messages are read by a service. */
static bool is_served(const struct client *client)
{
    return client->http != NULL || client->websocket != NULL;
}

static void archive_stream(struct router_archive *state, struct stdio_bus *bus,
                           struct client *client)
{
    if (archive_present(state->archive, is_served(client))) {
        each_service(bus, at, archive_client)
            at.service->archive_client(at.state, state, client);
    } else if (archive_ok(state->archive)) {
        archive_messages(state->archive, bus, client);
    }
}

static void archive_gate(struct archive *archive, struct stdio_bus *bus, struct client *client)
{
    if (!archive_present(archive, list_linked(&client->gated)))
        return;
    if (!archive->saves)
        gate_prepare_wait(client);
    timer_archive(archive, bus->loop, &client->gate);
}

static void archive_peer(struct router_archive *state, struct stdio_bus *bus, struct client *client)
{
    struct archive *archive = state->archive;
    struct peer *peer = &client->stream.endpoint.peer;
    bool is_admitted = archive_present(archive, peer->admitted);

    router_archive_peer(state, peer);
    if (archive_loads(archive) && is_admitted)
        router_admit_client(&bus->router, peer);
}

static void archive_client(struct archive *archive, void *owner, void *item)
{
    struct router_archive *state = owner;
    struct stdio_bus *bus = list_entry(state->router, struct stdio_bus, router);
    struct client *client = item != NULL ? item : clients_new(bus);

    if (!archive_made(archive, client != NULL))
        return;
    if (!visitor_archive(archive, &client->visitor))
        return;
    if (!archive->saves)
        clients_enter(client, true);
    archive_identity(archive, bus, client);
    archive_stream(state, bus, client);
    visitor_archived(archive, &client->visitor);
    archive_peer(state, bus, client);
    archive_gate(archive, bus, client);
    client_limits_archive(archive, &client->stream.endpoint);
}

/* --- memory, and what waits to be written --- */

static void queue_again(struct connection *connection)
{
    if (connection->output.bytes > 0 && !list_linked(&connection->dirty))
        list_append(&connection->transport->dirty, &connection->dirty);
}

static void each_connection(struct stdio_bus *bus, void (*fn)(struct connection *connection))
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following) {
            struct worker *worker = list_entry(node, struct worker, link);

            if (connection_is_open(&worker->stream.connection))
                fn(&worker->stream.connection);
        }
    }
    visitors_each_connection(bus, fn);
}

/* --- all of it --- */

void upgrade_state_places(struct archive *archive, struct upgrade_places *places)
{
    static const struct archive_field fields[] = {
        ARCHIVE_CHOICE(struct listen_address, kind, LISTEN_FD),
        ARCHIVE_FLAGS(struct listen_address, is_unix),
        ARCHIVE_TEXTS(struct listen_address, path, host, fd_name),
        ARCHIVE_INTEGERS(struct listen_address, port, fd),
    };
    struct listen_config *listens = places->listens;
    size_t count = places->listen_count;

    archive_mark(archive, "places");
    for (size_t i = 0; i < SERVICES_MAX; i++)
        archive_text(archive, places->sockets[i], sizeof places->sockets[i]);
    archive_expect(archive, archive_count(archive, count) == count,
                   "the number of listeners is another one");
    for (size_t i = 0; i < count; i++)
        ARCHIVE_FIELDS(archive, &listens[i].address, fields);
}

void upgrade_state(struct archive *archive, struct stdio_bus *bus, char *version)
{
    struct router_archive state;

    archive_text(archive, version, UPGRADE_VERSION_MAX);
    router_archive_begin(&state, archive, &bus->router);
    if (archive_ok(archive)) {
        archive_bus(archive, bus);
        archive_presence(archive, bus);
        ARCHIVE_ITEMS(archive, &bus->pools, struct pool, link, archive_pool, &state,
                      "the number of pools is another one");
        listeners_archive(archive, bus);
        each_service(bus, at, archive_sessions)
            at.service->archive_sessions(at.state, &state);
        ARCHIVE_LIST(archive, &bus->clients.list, struct client, visitor.link, archive_client,
                     &state);
        ARCHIVE_INTEGER(archive, bus->clients.last_number);
        each_service(bus, at, archive_waiting)
            at.service->archive_waiting(at.state, &state);
        each_service(bus, at, archive)
            at.service->archive(at.state, &state);
        router_archive_groups(&state);
        router_archive_tables(&state);
        archive_mark(archive, "end");
        archive_expect(archive, archive->at == archive->len, "the state has more than it should");
    }
    router_archive_end(&state);
    if (archive->saves || !archive_ok(archive))
        return;
    each_connection(bus, connection_reserve_again);
    each_connection(bus, connection_wait_again);
    each_connection(bus, queue_again);
    bus->end_noted = true;
}
