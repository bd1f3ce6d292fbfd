#include "build_config.h"

#include "topics/hub_archive.h"

#include <stdlib.h>

#include "bus/origins.h"
#include "event/timer_archive.h"
#include "rmp/header_archive.h"
#include "rmp/queue_archive.h"
#include "topics/bridge_archive.h"
#include "topics/clients.h"
#include "transport/connection_archive.h"

#define NO_MEMORY "out of memory"

/* --- a client --- */

static void archive_identity(struct archive *archive, struct rmp_client *client)
{
    archive_mark(archive, "rmp");
    archive_text(archive, client->context, sizeof client->context);
    origin_archive(archive, &client->origin);
    origins_archive(archive, client->hub->bus, &client->present);
    archive_expect(archive, client->present != NULL, "a client of the topic bus has no origin");
}

static void archive_connection(struct archive *archive, struct rmp_client *client)
{
    struct connection *connection = &client->connection;
    const struct connection_options options = rmp_clients_options(client, -1);

    connection_archive(archive, connection, &client->hub->bus->transport, &options);
    archive_expect(archive, connection_is_open(connection),
                   "a client of the topic bus has no connection");
    if (archive_ok(archive))
        rmp_reader_archive(archive, &client->reader, &connection->framing_state,
                           connection->at_hand);
}

static void archive_asked(struct archive *archive, struct rmp_asked *asked)
{
    archive_flag(archive, &asked->is_command);
    ARCHIVE_INTEGER(archive, asked->id);
    archive_flag(archive, &asked->wants_ack);
    rmp_header_archive(archive, &asked->header);
}

static void archive_peer(struct rmp_archive *topics, struct rmp_client *client)
{
    bool has_joined = client->has_joined;

    archive_flag(topics->archive, &has_joined);
    if (!has_joined || !archive_ok(topics->archive))
        return;
    if (!topics->archive->saves)
        rmp_clients_join(client);
    rmp_archive_peer(topics, &client->peer);
}

static void archive_state(struct rmp_archive *topics, struct rmp_client *client)
{
    struct archive *archive = topics->archive;
    struct rmp_hub *hub = client->hub;
    bool is_ready = list_linked(&client->ready);

    archive_connection(archive, client);
    archive_peer(topics, client);
    archive_asked(archive, &client->asked);
    archive_flag(archive, &client->is_done);
    archive_flag(archive, &client->is_held);
    archive_flag(archive, &client->lacks_answer);
    archive_flag(archive, &is_ready);
    if (!archive->saves && archive_ok(archive) && is_ready)
        list_append(&hub->ready, &client->ready);
}

/* A client that fails to load before it is listed is freed here. */
static void load_client(struct rmp_archive *topics, struct rmp_hub *hub)
{
    struct rmp_client *client = rmp_clients_new(hub);

    if (client == NULL) {
        archive_fail(topics->archive, NO_MEMORY);
        return;
    }
    archive_identity(topics->archive, client);
    if (!archive_ok(topics->archive)) {
        if (client->present != NULL)
            origins_release(client->present);
        free(client);
        return;
    }
    rmp_clients_enter(client);
    archive_state(topics, client);
}

static void archive_clients(struct rmp_archive *topics, struct rmp_hub *hub)
{
    size_t count = archive_count(topics->archive, hub->client_count);
    struct list_node *node, *following;

    if (!topics->archive->saves) {
        for (; count > 0 && archive_ok(topics->archive); count--)
            load_client(topics, hub);
        return;
    }
    list_each(&hub->clients, node, following) {
        struct rmp_client *client = list_entry(node, struct rmp_client, link);

        archive_identity(topics->archive, client);
        archive_state(topics, client);
    }
}

/* --- all of it --- */

/* The timer of the broker's deadline is started at the end of the round. */
static void archive_hub(struct archive *archive, struct rmp_hub *hub)
{
    archive_mark(archive, "rmphub");
    ARCHIVE_INTEGER(archive, hub->last_client);
    ARCHIVE_INTEGER(archive, hub->last_msg_id);
    ARCHIVE_INTEGER(archive, hub->lost);
    timer_archive(archive, hub->bus->loop, &hub->retry);
}

void rmp_hub_archive(struct router_archive *state, struct rmp_hub *hub)
{
    struct archive *archive = state->archive;
    struct rmp_archive topics;

    archive_hub(archive, hub);
    rmp_archive_begin(&topics, archive, hub->broker);
    archive_clients(&topics, hub);
    rmp_bridge_archive(state, &topics, hub->bridge);
    rmp_archive_topics(&topics);
    rmp_archive_queues(&topics);
    rmp_archive_end(&topics);
}
