#include "build_config.h"

#include "topics/clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/origins.h"
#include "rmp/broker_archive.h"
#include "topics/client.h"
#include "topics/commands.h"
#include "topics/frames.h"
#include "transport/origin.h"

#define MEMORY_RETRY_MS 100

static struct rmp_client *client_of(struct connection *connection)
{
    return list_entry(connection, struct rmp_client, connection);
}

/* --- the end of a client --- */

/* Its subscriptions end. */
static void leave(struct rmp_client *client)
{
    if (!client->has_joined)
        return;
    client->has_joined = false;
    rmp_broker_leave(client->hub->broker, &client->peer);
}

static void log_disconnected(const struct rmp_client *client, const char *reason)
{
    struct log *log = client->hub->bus->log;
    const struct connection *connection = &client->connection;
    struct slice source = origin_name(&client->origin);

    if (connection->output.bytes > 0)
        log_repeated(log, LOG_LEVEL_WARN, client->context, source,
                     "disconnected (%s), %zu bytes for it were dropped (%s)", reason,
                     connection->output.bytes, client->origin.text);
    log_repeated(log, LOG_LEVEL_INFO, client->context, source,
                 "disconnected: %s; %" PRIu64 " frames in (%" PRIu64 " bytes), %" PRIu64
                 " out (%" PRIu64 " bytes)",
                 reason, connection->frames_in, connection->bytes_in, connection->frames_out,
                 connection->bytes_out);
}

static void remove_client(struct rmp_client *client, const char *reason)
{
    struct rmp_hub *hub = client->hub;
    struct stdio_bus *bus = hub->bus;

    if (!list_linked(&client->link))
        return;
    log_disconnected(client, reason);
    list_remove(&client->link);
    list_remove(&client->ready);
    hub->client_count--;
    bus->client_count--;
    notifier_changed(bus);
    leave(client);
    connection_close(&client->connection);
    router_forget_origin(&bus->router, client->present);
    origins_release(client->present);
    stdio_bus_event_loop_defer(bus->loop, &client->deferred, free, client);
    listeners_descriptor_freed(bus);
    if (bus->router.client_count == 0 && hub->client_count == 0)
        bus_start_idle(bus);
    bus->end_noted = true;
}

/* Orderly: it still gets what it was sent. */
static void close_client(struct rmp_client *client)
{
    leave(client);
    connection_linger(&client->connection);
}

static void reject(struct rmp_client *client, const char *problem)
{
    log_repeated(client->hub->bus->log, LOG_LEVEL_WARN, client->context,
                 origin_name(&client->origin), "unacceptable input: %s; closing it (%s)", problem,
                 client->origin.text);
    close_client(client);
}

/* --- reports of the connection --- */

/* A client that does not read its answers is not read from. Returns whether that is so. */
static bool hold(struct rmp_client *client)
{
    if (!client->connection.full)
        return false;
    client->is_held = true;
    connection_pause(&client->connection);
    return true;
}

static void read_frame(struct connection *connection, struct slice wire)
{
    struct rmp_client *client = client_of(connection);
    enum rmp_next next;

    if (client->is_done) {
        client->is_done = false;
        return;
    }
    if (hold(client))
        return;
    next = client->reader.is_command ? rmp_commands_take(client, wire)
                                     : rmp_frames_take(client, wire);
    if (next == RMP_NEXT_WAIT)
        connection_pause(connection);
    else if (next == RMP_NEXT_CLOSE)
        reject(client, "no command");
}

/* HTTP and TLS get no answer; nor does a command. */
static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct rmp_client *client = client_of(connection);
    const struct rmp_reader *reader = &client->reader;

    if (fault != FRAME_FAULT_FOREIGN && !reader->is_command && reader->error != RMP_OK)
        rmp_frames_refuse(client);
    reject(client, problem);
}

static void refused(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct rmp_client *client = client_of(connection);

    (void)fault;
    log_repeated(connection->transport->log, LOG_LEVEL_WARN, client->context,
                 origin_name(&client->origin), "a frame was refused: %s", problem);
    if (client->reader.error != RMP_OK)
        rmp_frames_refuse(client);
    hold(client);
}

static void skipped(struct connection *connection, struct slice line, const char *problem)
{
    (void)connection;
    (void)line;
    (void)problem;
}

/* A subscriber may have shut down its sending side; a hang-up is reported apart. */
static void ended(struct connection *connection, size_t cut)
{
    struct rmp_client *client = client_of(connection);

    if (cut > 0)
        log_repeated(connection->transport->log, LOG_LEVEL_WARN, client->context,
                     origin_name(&client->origin),
                     "its input ended in the middle of a frame; %zu bytes were dropped", cut);
    if (client->peer.subscription_count == 0)
        close_client(client);
}

/* The queue of the connection is half empty: what waits in the broker follows. */
static void drained(struct rmp_client *client)
{
    struct rmp_hub *hub = client->hub;

    if (client->has_joined)
        rmp_broker_resume(hub->broker, &client->peer, rmp_hub_time(hub));
    if (client->is_closing && !client->peer.busy)
        close_client(client);
    if (!client->is_held)
        return;
    client->is_held = false;
    connection_resume(&client->connection);
}

static void full(struct connection *connection, bool is_full)
{
    if (!is_full)
        drained(client_of(connection));
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    struct rmp_client *client = client_of(connection);

    switch (failure) {
    case CONNECTION_BROKEN:
        remove_client(client, error != 0 ? strerror(error) : "hung up");
        break;
    case CONNECTION_STALLED:
        remove_client(client, "it did not read for backpressure_timeout_sec");
        break;
    case CONNECTION_LINGERED:
        remove_client(client, "closed");
        break;
    }
}

/* The timer resumes it. */
static void starved(struct connection *connection)
{
    struct rmp_client *client = client_of(connection);
    struct rmp_hub *hub = client->hub;

    log_warn(hub->bus->log, client->context, "out of memory: not reading from it for a moment");
    if (!list_linked(&client->ready))
        list_append(&hub->ready, &client->ready);
    if (!timer_started(&hub->retry))
        stdio_bus_event_loop_start_timer(hub->bus->loop, &hub->retry, MEMORY_RETRY_MS);
}

static const struct connection_handler handler = {
    .frame = read_frame,
    .malformed = malformed,
    .skipped = skipped,
    .refused = refused,
    .ended = ended,
    .full = full,
    .failed = failed,
    .starved = starved,
};

/* --- operations of the broker's peer --- */

static struct rmp_client *client_of_peer(struct rmp_peer *peer)
{
    return list_entry(peer, struct rmp_client, peer);
}

static enum rmp_taken deliver(struct rmp_peer *to, const struct rmp_sub_name *name,
                              const struct rmp_publication *publication)
{
    struct rmp_client *client = client_of_peer(to);

    if (client->connection.full)
        return RMP_BUSY;
    return name->dialect == RMP_DIALECT_JSON
               ? rmp_commands_deliver(client, name->sub_id, publication)
               : rmp_frames_deliver(client, publication);
}

static void published(struct rmp_peer *publisher, uint64_t token, const struct rmp_result *result)
{
    struct rmp_client *client = client_of_peer(publisher);

    (void)token;
    if (client->asked.is_command)
        rmp_commands_answer(client, &client->asked, result);
    else
        rmp_frames_answer(client, &client->asked, result);
    client->is_done = true;
    if (!list_linked(&client->ready))
        list_append(&client->hub->ready, &client->ready);
}

static const struct rmp_peer_ops peer_ops = {.deliver = deliver, .published = published};

void rmp_clients_due(void *user_data)
{
    struct rmp_hub *hub = user_data;
    struct list_node *node;
    struct list ready;

    hub->due_ms = RMP_NO_DEADLINE;
    rmp_broker_run(hub->broker, rmp_hub_time(hub));
    list_init(&ready);
    list_move_all(&ready, &hub->ready);
    while ((node = list_take_first(&ready)) != NULL) {
        struct rmp_client *client = list_entry(node, struct rmp_client, ready);

        if (client->lacks_answer)
            remove_client(client, "an answer for it was lost");
        else
            connection_resume(&client->connection);
    }
}

/* --- the beginning --- */

static struct connection_options options_of(struct rmp_client *client, int fd)
{
    static const struct body_check no_check; /* the framing has none */

    return (struct connection_options){.context = client->context,
                                       .handler = &handler,
                                       .framing = &framing_rmp,
                                       .check = &no_check,
                                       .check_state = &client->reader,
                                       .max_body = rmp_framing_max(&client->hub->rules),
                                       .fd_in = fd,
                                       .fd_out = fd};
}

static struct rmp_client *new_client(struct rmp_hub *hub)
{
    struct rmp_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->hub = hub;
    client->reader.rules = &hub->rules;
    return client;
}

/* NULL when memory or descriptors are out; then the descriptor is the caller's. */
static struct rmp_client *open_client(struct rmp_hub *hub, int fd, const struct origin *origin)
{
    struct rmp_client *client = new_client(hub);
    struct peer_origin *present = client != NULL ? origins_get(hub->bus, origin) : NULL;
    struct connection_options options;

    if (present == NULL) {
        free(client);
        return NULL;
    }
    client->present = present;
    client->origin = *origin;
    snprintf(client->context, sizeof client->context, "rmp=%u", ++hub->last_client);
    options = options_of(client, fd);
    if (connection_open(&client->connection, &hub->bus->transport, &options) == STDIO_BUS_OK)
        return client;
    origins_release(present);
    free(client);
    return NULL;
}

static void enter(struct rmp_client *client)
{
    struct rmp_hub *hub = client->hub;

    connection_set_origin(&client->connection, origins_transport(client->present));
    list_append(&hub->clients, &client->link);
    hub->client_count++;
    hub->bus->client_count++;
    router_note_origin(&hub->bus->router, client->present);
}

static void join(struct rmp_client *client)
{
    rmp_broker_join(client->hub->broker, &client->peer, &peer_ops, RMP_KIND_AGENT);
    client->peer.user = rmp_client_user(&client->origin);
    client->has_joined = true;
}

static void serve(struct rmp_client *client)
{
    struct stdio_bus *bus = client->hub->bus;

    enter(client);
    notifier_changed(bus);
    join(client);
    log_repeated(bus->log, LOG_LEVEL_INFO, client->context, origin_name(&client->origin),
                 "connected: %s", client->origin.text);
}

/* Whoever is refused gets no answer: nobody knows its dialect. */
void rmp_clients_accepted(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stdio_bus *bus = listener->bus;
    struct rmp_client *client = NULL;
    char text[ADMISSION_TEXT_MAX];

    if (admission_judge(listener, origin, text, sizeof text) != ADMISSION_GRANTED) {
        bus->counters.refused[refusal_of(text)]++;
        log_repeated(bus->log, LOG_LEVEL_WARN, "", origin_name(origin), "refused %s: %s",
                     origin->text, text);
    } else {
        client = open_client(listener->service, fd, origin);
        if (client == NULL)
            log_repeated(bus->log, LOG_LEVEL_WARN, "", origin_name(origin), "cannot serve %s: %s",
                         origin->text, strerror(errno));
    }
    if (client != NULL)
        serve(client);
    else
        close(fd);
}

/* --- the shutdown --- */

void rmp_clients_stop_input(struct rmp_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->clients, node, following)
        connection_stop_input(&list_entry(node, struct rmp_client, link)->connection);
    rmp_bridge_stop(hub->bridge);
}

void rmp_clients_close(struct rmp_hub *hub, bool now)
{
    struct list_node *node, *following;

    rmp_broker_close(hub->broker, rmp_hub_time(hub));
    rmp_clients_due(hub); /* publications that wait have ended */
    list_each(&hub->clients, node, following) {
        struct rmp_client *client = list_entry(node, struct rmp_client, link);

        client->is_closing = true;
        if (now)
            remove_client(client, "shutting down");
        else if (!client->peer.busy)
            close_client(client);
    }
}

void rmp_clients_remove_idle(struct rmp_hub *hub, const char *reason)
{
    struct list_node *node, *following;

    list_each(&hub->clients, node, following) {
        struct rmp_client *client = list_entry(node, struct rmp_client, link);

        if (connection_took_nothing(&client->connection))
            remove_client(client, reason);
    }
}

/* --- the upgrade in place --- */

void rmp_clients_connections(struct rmp_hub *hub, void (*fn)(struct connection *connection))
{
    struct list_node *node, *following;

    list_each(&hub->clients, node, following)
        fn(&list_entry(node, struct rmp_client, link)->connection);
}

/* --- the archive --- */

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
    const struct connection_options options = options_of(client, -1);

    connection_archive(archive, connection, &client->hub->bus->transport, &options);
    archive_expect(archive, connection_is_open(connection),
                   "a client of the topic bus has no connection");
    if (archive_ok(archive))
        rmp_reader_archive(archive, &client->reader, &connection->framing_state,
                           connection->at_hand);
}

static void archive_peer(struct rmp_archive *topics, struct rmp_client *client)
{
    if (!archive_present(topics->archive, client->has_joined))
        return;
    if (!topics->archive->saves)
        join(client);
    rmp_archive_peer(topics, &client->peer);
}

/* A client that fails to load before `enter` is freed here. */
static void archive_client(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct rmp_client, asked.is_command, asked.wants_ack, is_done, is_held,
                      lacks_answer),
        ARCHIVE_INTEGERS(struct rmp_client, asked.id),
    };
    struct rmp_archive *topics = owner;
    struct rmp_hub *hub = topics->owner;
    struct rmp_client *client = item != NULL ? item : new_client(hub);
    bool is_ready;

    if (!archive_made(archive, client != NULL))
        return;
    archive_identity(archive, client);
    if (!archive->saves && !archive_ok(archive)) {
        if (client->present != NULL)
            origins_release(client->present);
        free(client);
        return;
    }
    if (!archive->saves)
        enter(client);
    archive_connection(archive, client);
    archive_peer(topics, client);
    ARCHIVE_FIELDS(archive, client, fields);
    rmp_header_archive(archive, &client->asked.header);
    is_ready = archive_present(archive, list_linked(&client->ready));
    if (archive_loads(archive) && is_ready)
        list_append(&hub->ready, &client->ready);
}

void rmp_clients_archive(struct rmp_archive *topics, struct rmp_hub *hub)
{
    topics->owner = hub;
    ARCHIVE_LIST(topics->archive, &hub->clients, struct rmp_client, link, archive_client, topics);
}
