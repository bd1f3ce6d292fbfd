#include "build_config.h"

#include "topics/clients.h"

#include "base/error.h"
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

static struct rmp_client *client_of_visitor(struct visitor *visitor)
{
    return list_entry(visitor, struct rmp_client, visitor);
}

static struct rmp_hub *hub_of(const struct visitors *clients)
{
    return list_entry(clients, struct rmp_hub, clients);
}

/* --- the end of a client --- */

/* Its subscriptions end. */
static void leave_broker(struct rmp_client *client)
{
    if (!client->has_joined)
        return;
    client->has_joined = false;
    rmp_broker_leave(client->hub->broker, &client->peer);
}

static void leave(struct visitor *visitor, const char *reason)
{
    struct rmp_client *client = client_of_visitor(visitor);

    (void)reason;
    list_remove(&client->ready);
    leave_broker(client);
    router_forget_origin(&client->hub->bus->router, visitor->present);
}

/* Orderly: it still gets what it was sent. */
static void close_client(struct rmp_client *client)
{
    leave_broker(client);
    connection_linger(&client->connection);
}

/* With what waits for it in the broker. */
static void close_visitor(struct visitor *visitor)
{
    struct rmp_client *client = client_of_visitor(visitor);

    client->is_closing = true;
    if (!client->peer.busy)
        close_client(client);
}

static void reject(struct rmp_client *client, const char *problem)
{
    visitor_complain(&client->visitor, LOG_LEVEL_WARN, problem);
    close_client(client);
}

/* --- reports of the connection --- */

static void read_frame(struct connection *connection, struct slice wire)
{
    struct rmp_client *client = client_of(connection);
    enum rmp_next next;

    if (client->is_done) {
        client->is_done = false;
        return;
    }
    if (visitor_hold(&client->visitor))
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
                 origin_name(&client->visitor.origin), "a frame was refused: %s", problem);
    if (client->reader.error != RMP_OK)
        rmp_frames_refuse(client);
    visitor_hold(&client->visitor);
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
                     origin_name(&client->visitor.origin),
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
    visitor_release(&client->visitor);
}

static void full(struct connection *connection, bool is_full)
{
    if (!is_full)
        drained(client_of(connection));
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    visitor_failed(&client_of(connection)->visitor, failure, error, "closed");
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
            visitor_remove(&client->visitor, "an answer for it was lost");
        else
            connection_resume(&client->connection);
    }
}

/* --- the beginning --- */

static void prepare(struct visitor *visitor, struct connection_options *options)
{
    static const struct body_check no_check; /* the framing has none */
    struct rmp_client *client = client_of_visitor(visitor);

    client->hub = hub_of(visitor->of);
    client->reader.rules = &client->hub->rules;
    visitor->connection = &client->connection;
    visitor_name(visitor, client->context, sizeof client->context);
    *options = (struct connection_options){.context = client->context,
                                           .handler = &handler,
                                           .framing = &framing_rmp,
                                           .check = &no_check,
                                           .check_state = &client->reader,
                                           .max_body = rmp_framing_max(&client->hub->rules)};
}

static void join(struct rmp_client *client)
{
    rmp_broker_join(client->hub->broker, &client->peer, &peer_ops, RMP_KIND_AGENT);
    client->peer.user = rmp_client_user(&client->visitor.origin);
    client->has_joined = true;
}

static void begin(struct visitor *visitor)
{
    struct rmp_client *client = client_of_visitor(visitor);

    router_note_origin(&client->hub->bus->router, visitor->present);
    join(client);
}

/* --- the shutdown --- */

void rmp_clients_stop_input(struct rmp_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->clients.list, node, following)
        connection_stop_input(list_entry(node, struct visitor, link)->connection);
    rmp_bridge_stop(hub->bridge);
}

void rmp_clients_before_close(struct rmp_hub *hub)
{
    rmp_broker_close(hub->broker, rmp_hub_time(hub));
    rmp_clients_due(hub);
}

/* --- the archive --- */

static void archive_peer(struct rmp_archive *topics, struct rmp_client *client)
{
    if (!archive_present(topics->archive, client->has_joined))
        return;
    if (!topics->archive->saves)
        join(client);
    rmp_archive_peer(topics, &client->peer);
}

static void archive_client(struct archive *archive, struct visitor *visitor, void *user_data)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct rmp_client, asked.is_command, asked.wants_ack, is_done, lacks_answer),
        ARCHIVE_INTEGERS(struct rmp_client, asked.id),
    };
    struct rmp_client *client = client_of_visitor(visitor);
    const struct connection *connection = &client->connection;
    bool is_ready;

    if (!archive->saves)
        router_note_origin(&client->hub->bus->router, visitor->present);
    if (archive_ok(archive))
        rmp_reader_archive(archive, &client->reader, &client->connection.framing_state,
                           connection->at_hand);
    archive_peer(user_data, client);
    ARCHIVE_FIELDS(archive, client, fields);
    rmp_header_archive(archive, &client->asked.header);
    is_ready = archive_present(archive, list_linked(&client->ready));
    if (archive_loads(archive) && is_ready)
        list_append(&client->hub->ready, &client->ready);
}

/* --- the kind --- */

const struct visitor_kind rmp_clients_kind = {
    .name = "rmp",
    .frames = "frames",
    .level = LOG_LEVEL_INFO,
    .keeps_awake = true,
    .leave = leave,
    .close = close_visitor,
    .size = sizeof(struct rmp_client),
    .prepare = prepare,
    .begin = begin,
    .archive = ARCHIVE_OP(archive_client),
};
