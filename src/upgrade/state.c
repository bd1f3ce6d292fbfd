#include "build_config.h"

#include "upgrade/state.h"

#include <string.h>

#include "base/error.h"
#include "bus/early_exit.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "bus/service.h"
#include "bus/workers.h"
#include "event/timer_archive.h"
#include "process/pool.h"
#include "process/worker_archive.h"
#include "router/router_archive.h"
#include "transport/connection_archive.h"
#include "upgrade/clients.h"

/* --- the bus --- */

static void archive_counters(struct archive *archive, struct bus_counters *counters)
{
    archive_mark(archive, "counters");
    ARCHIVE_INTEGER(archive, counters->reloads[0]);
    ARCHIVE_INTEGER(archive, counters->reloads[1]);
    ARCHIVE_INTEGER(archive, counters->connected);
    traffic_archive(archive, &counters->gone);
    ARCHIVE_INTEGER(archive, counters->http_sessions);
    for (int i = 0; i < REFUSALS; i++)
        ARCHIVE_INTEGER(archive, counters->refused[i]);
    ARCHIVE_INTEGER(archive, counters->stored_answers);
    for (int i = 0; i < 2; i++) {
        ARCHIVE_INTEGER(archive, counters->holds[i]);
        ARCHIVE_INTEGER(archive, counters->held_ms[i]);
    }
}

/* Workers get the limit that the first program was started with. */
static void archive_nofile(struct archive *archive, struct stdio_bus *bus)
{
    archive_flag(archive, &bus->has_nofile);
    ARCHIVE_INTEGER(archive, bus->nofile.rlim_cur);
    ARCHIVE_INTEGER(archive, bus->nofile.rlim_max);
}

static void archive_bus(struct archive *archive, struct stdio_bus *bus)
{
    archive_mark(archive, "bus");
    ARCHIVE_ENUM(archive, bus->phase, BUS_PHASE_ENDING);
    ARCHIVE_ENUM(archive, bus->reason, BUS_SYSTEM_ERROR);
    archive_expect(archive, bus->phase >= BUS_PHASE_SERVING, "the daemon did not serve");
    ARCHIVE_INTEGER(archive, bus->last_worker);
    ARCHIVE_INTEGER(archive, bus->started_ms);
    ARCHIVE_INTEGER(archive, bus->started_epoch_ms);
    ARCHIVE_INTEGER(archive, bus->idle_closed);
    ARCHIVE_INTEGER(archive, bus->rate_waits);
    ARCHIVE_ENUM(archive, bus->log->level, LOG_LEVEL_ERROR);
    timer_archive(archive, bus->loop, &bus->drain);
    timer_archive(archive, bus->loop, &bus->idle);
    archive_nofile(archive, bus);
    archive_counters(archive, &bus->counters);
}

/* The services of both programs are the same. */
static void archive_presence(struct archive *archive, const struct stdio_bus *bus)
{
    size_t count = archive_count(archive, bus->service_count);

    archive_expect(archive, count == bus->service_count, "the programs have other services");
    for (size_t i = 0; i < bus->service_count && archive_ok(archive); i++) {
        bool is_there = bus->services[i] != NULL;

        archive_flag(archive, &is_there);
        archive_expect(archive, is_there == (bus->services[i] != NULL),
                       "only one of both has a service");
    }
}

/* --- pools --- */

static void archive_worker(struct router_archive *state, struct stdio_bus *bus,
                           struct worker *worker)
{
    struct archive *archive = state->archive;
    enum workers_handler handler = WORKERS_MESSAGES;

    if (archive->saves && worker->stream.handler != NULL)
        handler = (enum workers_handler)(worker->stream.handler - workers_handlers);
    ARCHIVE_ENUM(archive, handler, WORKERS_HANDLERS - 1);
    archive_expect(archive, handler < WORKERS_HANDLERS, "a worker has no handler");
    if (!archive_ok(archive))
        return;
    worker_archive(archive, worker, &workers_handlers[handler]);
    origins_archive(archive, bus, &worker->stream.endpoint.peer.origin);
    origins_archive(archive, bus, &worker->blamed);
    router_archive_peer(state, &worker->stream.endpoint.peer);
}

static void archive_pool(struct router_archive *state, struct stdio_bus *bus, struct pool *pool)
{
    struct archive *archive = state->archive;
    struct slice id = pool->group.id, found;
    struct list_node *node, *following;
    size_t count = list_count(&pool->workers);

    archive_mark(archive, "pool");
    found = archive_slice(archive, id);
    archive_expect(archive, found.data != NULL && slice_equal(found, id), "the pools are others");
    archive_expect(archive, archive_count(archive, count) == count,
                   "a pool has another number of workers");
    archive_flag(archive, &pool->seen_protocol);
    early_exit_archive(archive, pool);
    traffic_archive(archive, &pool->past.carried);
    ARCHIVE_INTEGER(archive, pool->past.starts);
    ARCHIVE_INTEGER(archive, pool->past.restarts);
    list_each(&pool->workers, node, following) {
        if (archive_ok(archive))
            archive_worker(state, bus, list_entry(node, struct worker, link));
    }
}

static void archive_pools(struct router_archive *state, struct stdio_bus *bus)
{
    struct list_node *node, *following;
    size_t count = list_count(&bus->pools);

    archive_expect(state->archive, archive_count(state->archive, count) == count,
                   "the number of pools is another one");
    list_each(&bus->pools, node, following)
        archive_pool(state, bus, list_entry(node, struct pool, link));
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
    upgrade_clients_connections(bus, fn);
    services_each_connection(bus, fn);
}

/* --- all of it --- */

void upgrade_state_places(struct archive *archive, struct upgrade_places *places)
{
    struct listen_config *listens = places->listens;
    size_t count = places->listen_count;

    archive_mark(archive, "places");
    archive_text(archive, places->control, sizeof places->control);
    archive_text(archive, places->rmp, sizeof places->rmp);
    archive_expect(archive, archive_count(archive, count) == count,
                   "the number of listeners is another one");
    for (size_t i = 0; i < count && archive_ok(archive); i++) {
        struct listen_address *address = &listens[i].address;

        ARCHIVE_ENUM(archive, address->kind, LISTEN_FD);
        archive_flag(archive, &address->is_unix);
        archive_text(archive, address->path, sizeof address->path);
        archive_text(archive, address->host, sizeof address->host);
        ARCHIVE_INTEGER(archive, address->port);
        ARCHIVE_INTEGER(archive, address->fd);
        archive_text(archive, address->fd_name, sizeof address->fd_name);
    }
}

void upgrade_state(struct archive *archive, struct stdio_bus *bus, char *version)
{
    struct router_archive state;

    archive_text(archive, version, UPGRADE_VERSION_MAX);
    router_archive_begin(&state, archive, &bus->router);
    if (archive_ok(archive)) {
        archive_bus(archive, bus);
        archive_presence(archive, bus);
        archive_pools(&state, bus);
        listeners_archive(archive, bus);
        services_archive_sessions(bus, &state);
        upgrade_clients(&state, bus);
        services_archive_waiting(bus, &state);
        ARCHIVE_INTEGER(archive, bus->last_client);
        services_archive(bus, &state);
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
