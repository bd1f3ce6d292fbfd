#include "build_config.h"

#include "bus/clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/cancel.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/listeners.h"
#include "bus/reports.h"
#include "router/departure.h"
#include "router/waiting.h"
#include "transport/listener.h"
#include "transport/origin.h"

static const struct message_id no_id;

static struct client *client_of(struct connection *connection)
{
    return list_entry(connection, struct client, stream.connection);
}

static struct stdio_bus *bus_of(const struct client *client)
{
    return client->stream.endpoint.bus;
}

static void close_client(struct client *client)
{
    client->stream.endpoint.ops->close(&client->stream.endpoint);
}

static const char *context(const struct client *client)
{
    return client->stream.endpoint.context;
}

void clients_leave_gate(struct client *client)
{
    if (!list_linked(&client->gated))
        return;
    list_remove(&client->gated);
    bus_of(client)->gated_count--;
    stdio_bus_event_loop_stop_timer(bus_of(client)->loop, &client->gate);
}

void clients_announce(struct client *client)
{
    const char *name = client->visitor.origin.name;
    bool is_named = client->token != 0 && strncmp(name, "token ", 6) == 0;

    visitor_announce(&client->visitor, is_named ? name : NULL);
}

/* The client has disconnected (spec 7.2). */
static void leave(struct visitor *visitor, const char *reason)
{
    struct client *client = client_of_visitor(visitor);
    struct endpoint *endpoint = &client->stream.endpoint;
    struct stdio_bus *bus = endpoint->bus;

    reports_client_gone(&client->stream, visitor->number, reason);
    clients_leave_gate(client);
    if (client->leaving != NULL)
        client->leaving(client);
    depart_client(endpoint);
    client_limits_stop(endpoint);
    if (client->on_stdio)
        bus_note_stop(bus, bus->was_refused ? BUS_NO_WORKER_LEFT : BUS_DONE);
}

static void close_visitor(struct visitor *visitor)
{
    close_client(client_of_visitor(visitor));
}

const struct visitor_kind clients_kind = {
    .name = "client",
    .frames = "messages",
    .level = LOG_LEVEL_INFO,
    .leave = leave,
    .close = close_visitor,
};

void clients_remove(struct client *client, const char *reason)
{
    visitor_remove(&client->visitor, reason);
}

void clients_reject(struct client *client, enum log_level level, int code, const char *problem)
{
    struct stdio_bus *bus = bus_of(client);

    bus->counters.refused[code == JSONRPC_PARSE_ERROR ? REFUSAL_MALFORMED : refusal_of(problem)]++;
    visitor_complain(&client->visitor, level, problem);
    deliver_error(&client->stream.endpoint, no_id, code, problem);
    close_client(client);
    if (client->on_stdio && bus->reason == BUS_RUNNING)
        bus->reason = BUS_CLIENT_MALFORMED;
}

static void client_malformed(struct connection *connection, enum frame_fault fault,
                             const char *problem)
{
    struct client *client = client_of(connection);

    if (fault == FRAME_FAULT_FOREIGN) { /* a reply would only tell a web page what listens here */
        log_repeated(bus_of(client)->log, LOG_LEVEL_WARN, context(client),
                     origin_name(&client->visitor.origin), "%s; closing it without a reply (%s)",
                     problem, client->visitor.origin.text);
        close_client(client);
        return;
    }
    /* Too long is an error, not JSON a warning (spec 7.3.2, 4.3). */
    clients_reject(client, fault == FRAME_FAULT_SYNTAX ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR,
                   stream_error_code(fault), problem);
}

/* ADR-010: the client gets an error, and continues. */
static void refuse_frame(struct client *client, int code, const char *problem)
{
    log_repeated(bus_of(client)->log, LOG_LEVEL_WARN, context(client),
                 origin_name(&client->visitor.origin), "refused a frame: %s", problem);
    deliver_error(&client->stream.endpoint, no_id, code, problem);
}

static void client_refused(struct connection *connection, enum frame_fault fault,
                           const char *problem)
{
    struct client *client = client_of(connection);

    refuse_frame(client, stream_error_code(fault), problem);
    if (connection->input_state != INPUT_ENDED)
        deliver_error_held(&client->stream.endpoint);
}

static void client_unacceptable(struct stream *stream, const struct message *message,
                                enum message_problem problem)
{
    struct client *client = client_of(&stream->connection);
    const char *text = message_problem_text(problem);

    (void)message;
    if (stream->connection.has_lines) /* too long is an error (spec 7.3.2) */
        clients_reject(client, problem == MESSAGE_TOO_LONG ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN,
                       JSONRPC_INVALID_REQUEST, text);
    else if (!deliver_error_held(&client->stream.endpoint))
        refuse_frame(client, JSONRPC_INVALID_REQUEST, text);
}

/* A client that has closed its input is done when no request of it is in flight any more. */
static void end_if_answered(struct client *client)
{
    struct connection *connection = &client->stream.connection;

    if (client->http != NULL || connection->input_state != INPUT_ENDED ||
        !list_empty(&client->stream.endpoint.peer.asked))
        return;
    stdio_bus_event_loop_stop_timer(bus_of(client)->loop, &client->stream.endpoint.hold_timer);
    close_client(client);
}

void clients_end_answered(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following)
        end_if_answered(client_at(node));
}

/* --- TCP --- */

void clients_set_tcp(struct client *client)
{
    client->on_tcp = true;
    tcp_set(client->stream.connection.fd_in);
}

void clients_half_close_expired(void *user_data)
{
    clients_remove(user_data,
                   "its input had ended, and half_close_sec later a request was unanswered");
}

/* A peer that has closed looks like one that waits for its answers. Its system forgets a closed
 * connection after a while (Linux: a minute) and answers the next probe with a reset, which is
 * reported as a hang-up; half_close_sec is for peers that do not. */
static void bound_half_close(struct client *client)
{
    struct stdio_bus *bus = bus_of(client);
    struct timer *timer = &client->stream.endpoint.hold_timer; /* without input it is never held */

    if (!client->on_tcp || !list_linked(&client->visitor.link))
        return;
    tcp_set_half_closed(client->stream.connection.fd_in);
    stdio_bus_event_loop_stop_timer(bus->loop, timer);
    timer_init(timer, clients_half_close_expired, client);
    stdio_bus_event_loop_start_timer(bus->loop, timer,
                                     (int64_t)bus->options.config->limits.half_close_sec * 1000);
}

/* --- the end of a client's input, of its connection --- */

/* The client has shut down its sending side, and still gets the answers to its requests. */
static void client_ended(struct connection *connection, size_t cut)
{
    struct client *client = client_of(connection);
    struct stdio_bus *bus = bus_of(client);

    if (cut > 0)
        log_repeated(bus->log, LOG_LEVEL_WARN, context(client),
                     origin_name(&client->visitor.origin),
                     "its input ended in the middle of a message; %zu bytes were dropped", cut);
    cancel_subscriptions_of(bus, &client->stream.endpoint.peer);
    departure_client_input(&bus->router, &client->stream.endpoint.peer, depart_unanswered, bus);
    if (client->on_stdio && bus->phase == BUS_PHASE_SERVING) {
        log_info(bus->log, "", "end of input: finishing what is in flight");
        bus->phase = BUS_PHASE_ENDING;
        if (bus->options.dialer == NULL) /* the daemon that was dialled bounds it */
            bus_start_drain(bus);
    }
    bound_half_close(client);
    end_if_answered(client);
}

void clients_failed(struct connection *connection, enum connection_failure failure, int error)
{
    struct client *client = client_of(connection);
    const char *closing = client->stream.endpoint.peer.closing;
    struct stdio_bus *bus = bus_of(client);

    if (failure == CONNECTION_BROKEN && client->on_stdio && bus->reason == BUS_RUNNING &&
        !visitor_has_left(error)) {
        log_error(bus->log, context(client), "cannot go on: %s", strerror(error));
        bus->reason = BUS_SYSTEM_ERROR; /* a full disk, a directory */
    }
    visitor_failed(&client->visitor, failure, error, closing != NULL ? closing : "closed");
}

#define HANDLER(message_fn, long_message_fn)                                                       \
    {                                                                                              \
        .message = (message_fn), .long_message = (long_message_fn),                                \
        .unacceptable = client_unacceptable,                                                       \
        .connection = {                                                                            \
            .frame = stream_read,                                                                  \
            .malformed = client_malformed,                                                         \
            .skipped = stream_skipped,                                                             \
            .refused = client_refused,                                                             \
            .ended = client_ended,                                                                 \
            .full = deliver_full,                                                                  \
            .failed = clients_failed,                                                              \
            .starved = deliver_starved,                                                            \
        },                                                                                         \
    }

const struct stream_handler clients_handler = HANDLER(deliver_message, deliver_long_message);

static const struct stream_handler limited_handler = HANDLER(client_limits_message,
                                                             client_limits_long_message);

const struct stream_handler *clients_handler_of(const struct stdio_bus *bus)
{
    return bus->options.config->limits.max_message_rate > 0 ? &limited_handler : &clients_handler;
}

void clients_enter(struct client *client, bool may_idle)
{
    struct endpoint *endpoint = &client->stream.endpoint;

    endpoint->peer.origin = client->visitor.present;
    router_add_client(&bus_of(client)->router, &endpoint->peer);
    client_limits_start(endpoint, may_idle);
}

struct client *clients_new(struct stdio_bus *bus)
{
    size_t limits = client_limits_size(bus);
    struct client *client = calloc(1, sizeof *client + limits);
    struct endpoint *endpoint;

    if (client == NULL)
        return NULL;
    stream_init(&client->stream);
    endpoint = &client->stream.endpoint;
    endpoint->limits = limits > 0 ? (struct client_limits *)(client + 1) : NULL;
    endpoint->bus = bus;
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    client->visitor.of = &bus->clients;
    client->visitor.connection = &client->stream.connection;
    client->visitor.number = ++bus->clients.last_number;
    visitor_name(&client->visitor, endpoint->context, sizeof endpoint->context);
    client->stream.connection.context = endpoint->context;
    return client;
}

struct client *clients_add(struct stdio_bus *bus, const struct stream_options *options,
                           const struct origin *origin, bool refused)
{
    struct client *client = clients_new(bus);
    struct stream_options stream = *options;

    if (bus->options.config->has_protocol)
        stream.max_long = bus->options.config->limits.max_message;
    if (client == NULL || visitor_init(&client->visitor, origin, refused) != STDIO_BUS_OK ||
        stream_open(&client->stream, &bus->transport, &stream) != STDIO_BUS_OK) {
        log_repeated(bus->log, options->borrowed ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "",
                     origin_name(origin), "cannot serve %s: %s", origin->text, strerror(errno));
        if (client != NULL)
            visitor_drop(&client->visitor);
        return NULL;
    }
    visitor_enter(&client->visitor);
    clients_enter(client, !stream.borrowed);
    if (!refused)
        reports_client_came(&client->stream, client->visitor.number, origin);
    return client;
}

int clients_add_stdio(struct stdio_bus *bus)
{
    const struct stream_options options = {
        .handler = clients_handler_of(bus),
        .framing = bus->options.framing,
        .fd_in = STDIN_FILENO,
        .fd_out = STDOUT_FILENO,
        .borrowed = true,
        .splits_arrays = bus->options.config->splits_arrays,
    };
    struct origin origin;
    struct client *client;

    origin_of_stdio(&origin);
    client = clients_add(bus, &options, &origin, false);
    if (client == NULL)
        return STDIO_BUS_ERR;
    client->on_stdio = true;
    clients_announce(client);
    router_admit_client(&bus->router, &client->stream.endpoint.peer);
    return STDIO_BUS_OK;
}

static void end_hold(struct client *client)
{
    struct peer *peer = &client->stream.endpoint.peer;

    if (!peer_held(peer)) /* its connection may be paused for another peer: a session of HTTP */
        return;
    waiting_leave(&bus_of(client)->router, peer);
    deliver_resume(peer);
}

void clients_stop_input(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following)
        end_hold(client_at(node));
    list_each(&bus->clients.list, node, following)
        connection_stop_input(&client_at(node)->stream.connection);
}

void clients_close_full(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        struct client *client = client_at(node);

        if (client->stream.connection.full)
            clients_remove(client, "it did not read while the daemon was shutting down");
    }
}
