#include "build_config.h"

#include "bus/gate.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "bus/slow_clients.h"
#include "bus/token_reload.h"
#include "framing/first_frame.h"
#include "router/shares.h"

#define REFUSED_MAX 64 /* refused connections whose error is being written; others get none */

#define NO_TOKEN "the first line must be {\"token\":\"...\"}, with the token of the listener"
#define WRONG_TOKEN "the token is wrong"
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

void gate_admit(struct client *client)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    if (client->http == NULL)
        clients_announce(client);
    router_admit_client(&bus_of(client)->router, &endpoint->peer);
    slow_origins_arrived(endpoint, &client->visitor.origin);
}

/* --- the pool --- */

void gate_describe_pools(const struct bus_listener *listener, char text[GATE_POOLS_MAX])
{
    const struct config *config = listener->bus->options.config;
    size_t len;

    if (listener->pool != NULL) {
        snprintf(text, GATE_POOLS_MAX, "the pool of this listener is %s", listener->config->pool);
        return;
    }
    len = (size_t)snprintf(text, GATE_POOLS_MAX, "no such pool; there %s",
                           config->pool_count == 1 ? "is" : "are");
    for (size_t i = 0; i < config->pool_count && len < GATE_POOLS_MAX; i++)
        len += (size_t)snprintf(text + len, GATE_POOLS_MAX - len, "%s %s", i > 0 ? "," : "",
                                config->pools[i].id);
}

/* The pool of the client's messages that name none; data NULL: it has named none, and gets that of
 * the listener. Returns false with the problem, if there is no such pool. */
static bool open_pool(struct client *client, struct slice id, char problem[GATE_POOLS_MAX])
{
    struct stdio_bus *bus = bus_of(client);
    struct group *only = client->listener->pool, *pool = only;

    if (id.data != NULL)
        pool = router_pool_named(&bus->router, id);
    if (id.data != NULL && (pool == NULL || (only != NULL && pool != only))) {
        gate_describe_pools(client->listener, problem);
        return false;
    }
    if (only != NULL)
        router_confine(&client->stream.endpoint.peer, only);
    else
        router_open_pool(&client->stream.endpoint.peer, pool);
    return true;
}

/* --- the line that is asked for: the token, or that of a greeter --- */

/* At the gate, a client of a Unix socket is greeted, one of TCP shows a token. */
static bool came_by_unix(const struct client *client)
{
    return client->listener->kind == &gate_unix_listener;
}

static const char *without_line(const struct client *client)
{
    return came_by_unix(client) ? NO_GREETING : NO_TOKEN;
}

/* NULL: lines, as those of a client that a service has made. */
static const struct framing *framing_of(const struct client *client)
{
    return client->listener != NULL ? client->listener->config->framing : NULL;
}

/* From now on the client's input is in its framing, and so is what it is sent. */
static void let_in(struct client *client)
{
    clients_leave_gate(client);
    stream_hand_over(&client->stream, clients_handler_of(bus_of(client)), framing_of(client),
                     bus_of(client)->options.config->splits_arrays);
}

/* The client is let in first, so that the reason is in its framing. */
static void reject_client(struct client *client, int code, const char *problem)
{
    bus_of(client)
        ->counters.refused[code == JSONRPC_SERVER_ERROR ? REFUSAL_NO_TOKEN : refusal_of(problem)]++;
    let_in(client);
    clients_reject(client, LOG_LEVEL_WARN, code, problem);
}

static void time_over(void *user_data)
{
    struct client *client = user_data;

    if (client->http != NULL)
        clients_remove(client, LATE_TOKEN);
    else
        reject_client(client, JSONRPC_SERVER_ERROR,
                      came_by_unix(client) ? LATE_GREETING : LATE_TOKEN);
}

/* A client that is held gets the line again when its turn comes. */
static void enter(struct client *client, struct slice reply)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    if (!endpoint->peer.admitted) {
        clients_leave_gate(client);
        gate_admit(client);
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
    struct stdio_bus *bus = bus_of(client);
    const struct greeter *greeter = bus->options.greeter;
    bool admits = false;
    struct slice reply = greeter->greet(greeter->user_data, bus, message->bytes, &admits);

    if (admits) {
        router_open_pool(&from->peer,
                         greeter->pool != NULL
                             ? router_pool_named(&bus->router, slice_of_text(greeter->pool))
                             : NULL);
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
    const struct named_token *token = NULL;
    struct opening opening;
    char text[GATE_POOLS_MAX];

    if (opening_read(&opening, message->bytes) && opening.token.data != NULL)
        token = token_reload_find_escaped(client, opening.token);
    if (token == NULL) {
        reject_client(client, JSONRPC_SERVER_ERROR,
                      message->method.data == NULL ? WRONG_TOKEN : NO_TOKEN);
        return;
    }
    if (!open_pool(client, message->pool, text)) {
        reject_client(client, JSONRPC_INVALID_PARAMS, text);
        return;
    }
    token_reload_note(client, token);
    enter(client, slice_of(NULL, 0));
}

static void read_line(struct endpoint *from, const struct message *message)
{
    if (came_by_unix(client_of_endpoint(from)))
        read_greeting(from, message);
    else
        read_token(from, message);
}

static void read_other(struct stream *stream, const struct message *message,
                       enum message_problem problem)
{
    struct client *client = client_of(&stream->connection);

    (void)message;
    (void)problem;
    reject_client(client, JSONRPC_SERVER_ERROR, without_line(client));
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct client *client = client_of(connection);

    if (fault == FRAME_FAULT_FOREIGN)
        clients_handler.connection.malformed(connection, fault, problem);
    else
        reject_client(client, JSONRPC_SERVER_ERROR, without_line(client));
}

static void ended(struct connection *connection, size_t cut)
{
    struct client *client = client_of(connection);

    (void)cut;
    reject_client(client, JSONRPC_SERVER_ERROR, without_line(client));
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
    struct opening opening;
    char text[GATE_POOLS_MAX];

    client->stream.handler = clients_handler_of(bus_of(client));
    if (!opening_read(&opening, message->bytes) || opening.pool.data == NULL)
        deliver_message(from, message);
    else if (!open_pool(client, message->pool, text))
        clients_reject(client, LOG_LEVEL_WARN, JSONRPC_INVALID_PARAMS, text);
    else
        stream_hand_over(&client->stream, clients_handler_of(bus_of(client)), framing_of(client),
                         bus_of(client)->options.config->splits_arrays);
}

static void read_first_long(struct endpoint *from, const struct message *message)
{
    client_of_endpoint(from)->stream.handler = clients_handler_of(from->bus);
    deliver_long_message(from, message);
}

static void read_first_other(struct stream *stream, const struct message *message,
                             enum message_problem problem)
{
    stream->handler = clients_handler_of(stream->endpoint.bus);
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

void gate_prepare_wait(struct client *client)
{
    struct stdio_bus *bus = bus_of(client);

    timer_init(&client->gate, time_over, client);
    list_append(&bus->gated, &client->gated);
    bus->gated_count++;
}

void gate_wait(struct client *client)
{
    gate_prepare_wait(client);
    stdio_bus_event_loop_start_timer(bus_of(client)->loop, &client->gate,
                                     (int64_t)GATE_SECONDS * 1000);
}

/* Its first line may name a pool. */
static void serve(struct client *client)
{
    client->stream.handler = &first_handler;
    if (client->listener->pool != NULL)
        router_confine(&client->stream.endpoint.peer, client->listener->pool);
    gate_admit(client);
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
    const struct greeter *greeter = listener->bus->options.greeter;

    if (listener->kind == &gate_tcp_listener)
        return listener_asks_token(listener) ? OPENING_MAX : 0;
    return greeter != NULL ? greeter->line_max : 0;
}

void gate_judge(struct arrival *arrival, struct bus_listener *listener, int fd,
                const struct origin *origin)
{
    make_room(listener->bus);
    visitor_judge(arrival, listener, fd, origin);
}

struct client *gate_take(const struct arrival *arrival, struct stream_options *options)
{
    struct stdio_bus *bus = arrival->listener->bus;
    bool refused = arrival->admission != ADMISSION_GRANTED;
    struct client *client = NULL;

    options->fd_in = options->fd_out = arrival->fd;
    if (!refused || bus->refused_count < REFUSED_MAX)
        client = clients_add(bus, options, arrival->origin, refused);
    if (client == NULL) {
        close(arrival->fd);
        return NULL;
    }
    client->listener = arrival->listener;
    if (listener_on_tcp(arrival->listener))
        clients_set_tcp(client);
    return client;
}

static void accept_client(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stream_options options = {.handler = &clients_handler,
                                     .framing = listener->config->framing,
                                     .splits_arrays = listener->bus->options.config->splits_arrays,
                                     .wary = true,
                                     .may_open = true};
    struct arrival arrival;
    struct client *client;
    size_t asked;

    gate_judge(&arrival, listener, fd, origin);
    asked = arrival.admission == ADMISSION_GRANTED ? line_asked(listener) : 0;
    if (asked > 0) {
        options.handler = &gate_handler;
        options.framing = NULL;
        options.splits_arrays = false;
        options.max_body = asked;
    }
    client = gate_take(&arrival, &options);
    if (client == NULL)
        return;
    if (client->visitor.refused)
        refuse(client, arrival.text);
    else if (asked > 0)
        gate_wait(client);
    else
        serve(client);
}

const struct listener_kind gate_unix_listener = {
    .name = "unix", .of = LISTEN_UNIX, .accepted = accept_client, .visits = &clients_kind};
const struct listener_kind gate_tcp_listener = {
    .name = "tcp", .of = LISTEN_TCP, .accepted = accept_client, .visits = &clients_kind};

/* --- the archive --- */

enum gate_stage gate_stage_of(const struct client *client)
{
    const struct stream_handler *handler = client->stream.handler;

    if (handler == &gate_handler)
        return GATE_ASKS;
    if (handler == &first_handler)
        return GATE_FIRST;
    return handler == clients_handler_of(bus_of(client)) || handler != &clients_handler
               ? GATE_PASSED /* or one of a service */
               : GATE_REFUSED;
}

void gate_set_stage(struct stream_options *options, const struct client *client,
                    enum gate_stage stage)
{
    const struct stdio_bus *bus = bus_of(client);

    options->handler = stage == GATE_ASKS     ? &gate_handler
                       : stage == GATE_PASSED ? clients_handler_of(bus)
                                              : &clients_handler;
    options->framing = client->on_stdio ? bus->options.framing : framing_of(client);
    options->splits_arrays = stage != GATE_ASKS && bus->options.config->splits_arrays;
    if (stage == GATE_ASKS)
        options->framing = NULL;
}

void gate_go_on(struct client *client, enum gate_stage stage)
{
    if (stage == GATE_FIRST)
        client->stream.handler = &first_handler;
}
