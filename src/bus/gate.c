#include "build_config.h"

#include "bus/gate.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/admission.h"
#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/listeners.h"
#include "bus/slow_origins.h"
#include "framing/opening.h"

#define REFUSED_MAX 64 /* refused connections whose error is being written; others get none */

#define NO_TOKEN "the first line must be {\"token\":\"...\"}, with the token of the listener"
#define WRONG_TOKEN "the token is wrong"
#define POOLS_TEXT_MAX 256
#define LATE_TOKEN "no token came within 10 seconds"
#define NO_GREETING "this socket is for stdio_bus --share"
#define LATE_GREETING "no first line came within 10 seconds"

static struct client *client_of(struct connection *connection)
{
    return list_entry(connection, struct client, stream.connection);
}

static struct stdio_bus *bus_of(const struct client *client)
{
    return client->stream.endpoint.bus;
}

/* From now on the client has a share, and takes turns with others of its origin. */
static void admit(struct client *client)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    router_admit_client(&bus_of(client)->router, &endpoint->peer);
    slow_origins_arrived(endpoint, &client->origin);
}

/* --- the pool --- */

/* Names the pools that there are, as far as they fit. */
static void describe_pools(const struct config *config, char text[POOLS_TEXT_MAX])
{
    size_t len = (size_t)snprintf(text, POOLS_TEXT_MAX, "no such pool; there %s",
                                  config->pool_count == 1 ? "is" : "are");

    for (size_t i = 0; i < config->pool_count && len < POOLS_TEXT_MAX; i++)
        len += (size_t)snprintf(text + len, POOLS_TEXT_MAX - len, "%s %s", i > 0 ? "," : "",
                                config->pools[i].id);
}

/* The pool of the client's messages that name none; data NULL: it has named none. Returns false
 * with the problem, if there is no such pool. */
static bool open_pool(struct client *client, struct slice id, char problem[POOLS_TEXT_MAX])
{
    struct stdio_bus *bus = bus_of(client);
    struct group *pool = id.data != NULL ? router_pool_named(&bus->router, id) : NULL;

    if (id.data != NULL && pool == NULL) {
        describe_pools(bus->options.config, problem);
        return false;
    }
    router_open_pool(&client->stream.endpoint.peer, pool);
    return true;
}

/* --- the line that is asked for: the token, or that of a greeter --- */

static const char *without_line(const struct client *client)
{
    return client->on_tcp ? NO_TOKEN : NO_GREETING;
}

/* From now on the client's input is in its framing, and so is what it is sent. */
static void let_in(struct client *client)
{
    const struct bus_options *options = &bus_of(client)->options;

    clients_leave_gate(client);
    stream_hand_over(&client->stream, &clients_handler, options->framing,
                     options->config->splits_arrays);
}

static void turn_away(struct client *client, int code, const char *problem)
{
    let_in(client); /* the reason is read in that framing */
    clients_reject(client, LOG_LEVEL_WARN, code, problem);
}

static void time_over(void *user_data)
{
    struct client *client = user_data;

    turn_away(client, JSONRPC_SERVER_ERROR, client->on_tcp ? LATE_TOKEN : LATE_GREETING);
}

/* A client that is held gets the line again when its turn comes. */
static void enter(struct client *client, struct slice reply)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    if (!endpoint->peer.admitted) {
        clients_leave_gate(client);
        admit(client);
    }
    if (peer_held(&endpoint->peer))
        return;
    if (reply.len > 0 && deliver_line(endpoint, reply) != STDIO_BUS_OK)
        log_error(bus_of(client)->log, endpoint->context, "out of memory: a reply was lost");
    let_in(client);
}

static void read_greeting(struct endpoint *from, const struct message *message)
{
    struct client *client = client_of_endpoint(from);
    const struct stdio_bus *bus = bus_of(client);
    const struct greeter *greeter = bus->options.greeter;
    bool admits = false;
    struct slice reply = greeter->greet(greeter->user_data, bus, message->bytes, &admits);

    if (admits) {
        enter(client, reply);
        return;
    }
    clients_leave_gate(client);
    if (reply.len > 0 && deliver_line(from, reply) != STDIO_BUS_OK)
        log_error(bus->log, from->context, "out of memory: a reply was lost");
    from->ops->close(from);
}

static void read_token(struct endpoint *from, const struct message *message)
{
    struct client *client = client_of_endpoint(from);
    struct opening opening;
    char text[POOLS_TEXT_MAX];

    if (!opening_read(&opening, message->bytes) || opening.token.data == NULL ||
        !token_matches(bus_of(client)->options.token, opening.token)) {
        turn_away(client, JSONRPC_SERVER_ERROR,
                  message->method.data == NULL ? WRONG_TOKEN : NO_TOKEN);
        return;
    }
    if (!open_pool(client, message->pool, text)) {
        turn_away(client, JSONRPC_INVALID_PARAMS, text);
        return;
    }
    enter(client, slice_of(NULL, 0));
}

static void read_line(struct endpoint *from, const struct message *message)
{
    if (client_of_endpoint(from)->on_tcp)
        read_token(from, message);
    else
        read_greeting(from, message);
}

static void read_other(struct stream *stream, const struct message *message,
                       enum message_problem problem)
{
    struct client *client = client_of(&stream->connection);

    (void)message;
    (void)problem;
    turn_away(client, JSONRPC_SERVER_ERROR, without_line(client));
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct client *client = client_of(connection);

    if (fault == FRAME_FAULT_FOREIGN)
        clients_handler.connection.malformed(connection, fault, problem);
    else
        turn_away(client, JSONRPC_SERVER_ERROR, without_line(client));
}

static void ended(struct connection *connection, size_t cut)
{
    struct client *client = client_of(connection);

    (void)cut;
    turn_away(client, JSONRPC_SERVER_ERROR, without_line(client));
}

static const struct stream_handler gate_handler = {
    .message = read_line,
    .unacceptable = read_other,
    .connection =
        {
            .frame = stream_read,
            .malformed = malformed,
            .skipped = stream_skipped,
            .refused = malformed,
            .ended = ended,
            .full = deliver_full,
            .failed = clients_failed,
            .starved = deliver_starved,
        },
};

/* --- the first message, where no token is asked for --- */

/* What follows is for the handler of all clients. An opening line that names a pool is done with;
 * any other line is a message. */
static void read_first(struct endpoint *from, const struct message *message)
{
    struct client *client = client_of_endpoint(from);
    const struct bus_options *options = &bus_of(client)->options;
    struct opening opening;
    char text[POOLS_TEXT_MAX];

    client->stream.handler = &clients_handler;
    if (!opening_read(&opening, message->bytes) || opening.pool.data == NULL)
        deliver_message(from, message);
    else if (!open_pool(client, message->pool, text))
        clients_reject(client, LOG_LEVEL_WARN, JSONRPC_INVALID_PARAMS, text);
    else
        stream_hand_over(&client->stream, &clients_handler, options->framing,
                         options->config->splits_arrays);
}

static void read_first_long(struct endpoint *from, const struct message *message)
{
    client_of_endpoint(from)->stream.handler = &clients_handler;
    deliver_long_message(from, message);
}

static void read_first_other(struct stream *stream, const struct message *message,
                             enum message_problem problem)
{
    stream->handler = &clients_handler;
    clients_handler.unacceptable(stream, message, problem);
}

/* The reports of the connection are those of all clients. */
static const struct stream_handler first_handler = {
    .message = read_first,
    .long_message = read_first_long,
    .unacceptable = read_first_other,
};

/* --- a connection --- */

/* A connection that does not send its line must not keep others out. */
static void make_room(struct stdio_bus *bus)
{
    if (list_empty(&bus->gated) ||
        (bus->gated_count < GATE_MAX &&
         bus->client_count < bus->options.config->limits.max_connections))
        return;
    clients_remove(list_entry(bus->gated.head.next, struct client, gated),
                   "it has sent no first line, and another connection takes its place");
}

static void wait_for_line(struct client *client)
{
    struct stdio_bus *bus = bus_of(client);

    timer_init(&client->gate, time_over, client);
    stdio_bus_event_loop_start_timer(bus->loop, &client->gate, (int64_t)GATE_SECONDS * 1000);
    list_append(&bus->gated, &client->gated);
    bus->gated_count++;
}

/* Its first line may name a pool. */
static void serve(struct client *client)
{
    client->stream.handler = &first_handler;
    admit(client);
}

/* The connection does not become a client, and gets the reason. */
static void refuse(struct client *client, const char *reason)
{
    static const struct message_id no_id;

    deliver_error(&client->stream.endpoint, no_id, JSONRPC_SERVER_ERROR, reason);
    client->stream.endpoint.ops->close(&client->stream.endpoint);
}

/* How long the line that is asked for may be; 0: none is. */
static size_t line_asked(const struct bus_listener *listener)
{
    const struct bus_options *options = &listener->bus->options;

    if (listener->kind == BUS_LISTENER_TCP)
        return options->token != NULL ? OPENING_MAX : 0;
    return options->greeter != NULL ? options->greeter->line_max : 0;
}

void gate_accepted(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stdio_bus *bus = listener->bus;
    struct stream_options options = {.handler = &clients_handler,
                                     .framing = bus->options.framing,
                                     .fd_in = fd,
                                     .fd_out = fd,
                                     .splits_arrays = bus->options.config->splits_arrays,
                                     .wary = true,
                                     .may_open = true};
    struct client *client = NULL;
    char text[ADMISSION_TEXT_MAX];
    size_t asked;
    bool refused;

    make_room(bus);
    refused = admission_refuses(listener, origin, text, sizeof text);
    asked = refused ? 0 : line_asked(listener);
    if (asked > 0) {
        options.handler = &gate_handler;
        options.framing = NULL;
        options.splits_arrays = false;
        options.max_body = asked;
    }
    if (refused)
        log_repeated(bus->log, LOG_LEVEL_WARN, "", origin_name(origin), "refused %s: %s",
                     origin->text, text);
    if (!refused || bus->refused_count < REFUSED_MAX)
        client = clients_add(bus, &options, origin, refused);
    if (client != NULL && listener->kind == BUS_LISTENER_TCP)
        clients_set_tcp(client);
    if (client == NULL)
        close(fd);
    else if (refused)
        refuse(client, text);
    else if (asked > 0)
        wait_for_line(client);
    else
        serve(client);
}
