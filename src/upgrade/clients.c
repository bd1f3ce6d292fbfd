#include "build_config.h"

#include "upgrade/clients.h"

#include <stdlib.h>

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "bus/service.h"
#include "event/timer_archive.h"
#include "transport/origin.h"

#define NO_MEMORY "out of memory"

/* --- a client --- */

static void archive_identity(struct archive *archive, struct stdio_bus *bus, struct client *client)
{
    archive_mark(archive, "client");
    ARCHIVE_INTEGER(archive, client->number);
    ARCHIVE_INTEGER(archive, client->token);
    archive_flag(archive, &client->on_stdio);
    archive_flag(archive, &client->on_tcp);
    archive_flag(archive, &client->refused);
    archive_flag(archive, &client->announced);
    origin_archive(archive, &client->origin);
    listeners_archive_one(archive, bus, &client->listener);
    archive_expect(archive, client->on_stdio == (client->listener == NULL),
                   "a client has no listener");
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
    archive_expect(archive, !client->on_stdio || stage == GATE_PASSED || stage == GATE_REFUSED,
                   "the client on stdin is at a gate");
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
    bool served = is_served(client);

    archive_flag(state->archive, &served);
    if (!archive_ok(state->archive))
        return;
    if (served)
        services_archive_client(bus, state, client);
    else
        archive_messages(state->archive, bus, client);
}

static void archive_gate(struct archive *archive, struct stdio_bus *bus, struct client *client)
{
    bool is_gated = list_linked(&client->gated);

    archive_flag(archive, &is_gated);
    if (!is_gated || !archive_ok(archive))
        return;
    if (!archive->saves)
        gate_prepare_wait(client);
    timer_archive(archive, bus->loop, &client->gate);
}

/* The bus knows it from now on, as if it had been accepted. */
static void add_client(struct stdio_bus *bus, struct client *client)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    list_append(&bus->clients, &client->link);
    router_add_client(&bus->router, &endpoint->peer);
    client_limits_start(endpoint, !client->on_stdio);
    if (client->refused)
        bus->refused_count++;
    else
        bus->client_count++;
}

static void archive_peer(struct router_archive *state, struct stdio_bus *bus, struct client *client)
{
    struct archive *archive = state->archive;
    struct peer *peer = &client->stream.endpoint.peer;
    bool is_admitted = peer->admitted;

    origins_archive(archive, bus, &peer->origin);
    archive_flag(archive, &is_admitted);
    if (!archive_ok(archive))
        return;
    if (!archive->saves && peer->origin != NULL)
        connection_set_origin(&client->stream.connection, origins_transport(peer->origin));
    router_archive_peer(state, peer);
    if (!archive->saves && is_admitted)
        router_admit_client(&bus->router, peer);
}

/* A client that fails to load before `add_client` is freed here. */
static void load_client(struct router_archive *state, struct stdio_bus *bus)
{
    struct client *client = clients_new(bus);

    if (client == NULL) {
        archive_fail(state->archive, NO_MEMORY);
        return;
    }
    archive_identity(state->archive, bus, client);
    if (!archive_ok(state->archive)) {
        free(client);
        return;
    }
    add_client(bus, client);
    archive_stream(state, bus, client);
    archive_peer(state, bus, client);
    archive_gate(state->archive, bus, client);
    client_limits_archive(state->archive, &client->stream.endpoint);
}

static void save_client(struct router_archive *state, struct stdio_bus *bus, struct client *client)
{
    archive_identity(state->archive, bus, client);
    archive_stream(state, bus, client);
    archive_peer(state, bus, client);
    archive_gate(state->archive, bus, client);
    client_limits_archive(state->archive, &client->stream.endpoint);
}

void upgrade_clients(struct router_archive *state, struct stdio_bus *bus)
{
    size_t count = archive_count(state->archive, list_count(&bus->clients));
    struct list_node *node, *following;

    if (state->archive->saves) {
        list_each(&bus->clients, node, following)
            save_client(state, bus, list_entry(node, struct client, link));
        return;
    }
    for (; count > 0 && archive_ok(state->archive); count--)
        load_client(state, bus);
}

void upgrade_clients_connections(struct stdio_bus *bus, void (*fn)(struct connection *connection))
{
    struct list_node *node, *following;

    list_each(&bus->clients, node, following)
        fn(&list_entry(node, struct client, link)->stream.connection);
}
