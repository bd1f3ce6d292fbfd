#include "build_config.h"

#include "bus_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define REFUSED_MAX 64 /* connections over the limit that are still being told so */

static struct client *client_of(struct connection *connection)
{
    return list_entry(endpoint_of_connection(connection), struct client, endpoint);
}

static const char *context(const struct client *client)
{
    return client->endpoint.connection.context;
}

static void free_client(void *user_data)
{
    free(user_data);
}

/* A worker's request will not be answered by the client that was asked. */
static void tell_worker(void *user_data, struct peer *asker, struct message_id id)
{
    bus_send_error(user_data, endpoint_of_peer(asker), id, JSONRPC_SERVER_ERROR,
                   "client disconnected before answering");
}

/* The client has disconnected (spec 7.2). */
static void remove_client(struct client *client, const char *reason)
{
    struct stdio_bus *bus = client->bus;
    struct connection *connection = &client->endpoint.connection;

    if (!list_linked(&client->link))
        return;
    if (connection->output.bytes > 0)
        log_warn(bus->log, context(client), "disconnected (%s), %zu bytes for it were dropped",
                 reason, connection->output.bytes);
    else
        log_debug(bus->log, context(client), "disconnected (%s)", reason);
    list_remove(&client->link);
    if (client->refused)
        bus->refused_count--;
    else
        bus->client_count--;
    if (bus->sharing) {
        bus_cancel_requests_of(client);
        bus_retire_workers_of(client);
        bus->router.demand = true;
    }
    router_client_gone(&bus->router, &client->endpoint.peer, tell_worker, bus);
    timers_stop(stdio_bus_event_loop_timers(bus->loop), &client->endpoint.hold);
    connection_close(connection);
    stdio_bus_event_loop_defer(bus->loop, &client->deferred, free_client, client);
    listener_descriptor_freed(&bus->listener);
    if (client->on_stdio)
        bus_begin_stop(bus, BUS_DONE);
    bus_check_stopped(bus);
}

/* Spec 4.3: the client gets one line that says why, and is closed once that is written. */
static void reject(struct client *client, enum log_level level, int code, const char *problem)
{
    struct stdio_bus *bus = client->bus;
    struct message_id none = {ID_NONE, {NULL, 0}};

    log_write(bus->log, level, context(client), "unacceptable input: %s; closing it", problem);
    bus_send_error(bus, &client->endpoint, none, code, problem);
    connection_linger(&client->endpoint.connection);
    if (client->on_stdio && bus->reason == BUS_RUNNING)
        bus->reason = BUS_CLIENT_MALFORMED;
}

static void client_malformed(struct connection *connection, int code, const char *problem)
{
    /* Too long is an error, not JSON a warning (spec 7.3.2, 4.3). */
    reject(client_of(connection), code == JSONRPC_PARSE_ERROR ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR,
           code, problem);
}

/* ADR-010: the client gets an error, and goes on. */
static void refuse(struct client *client, int code, const char *problem)
{
    struct message_id none = {ID_NONE, {NULL, 0}};

    log_warn(client->bus->log, context(client), "refused a frame: %s", problem);
    bus_send_error(client->bus, &client->endpoint, none, code, problem);
}

static enum connection_verdict client_refused(struct connection *connection, int code,
                                              const char *problem)
{
    struct client *client = client_of(connection);

    refuse(client, code, problem);
    if (connection->ended_told || !bus_hold_debtor(client->bus, &client->endpoint))
        return CONNECTION_NEXT;
    return CONNECTION_HELD;
}

static enum connection_verdict client_message(struct connection *connection,
                                              const struct message *message,
                                              enum message_problem problem)
{
    struct client *client = client_of(connection);
    struct route route;

    if (problem != MESSAGE_OK && connection->framed) {
        if (bus_hold_debtor(client->bus, &client->endpoint))
            return CONNECTION_HELD;
        refuse(client, JSONRPC_INVALID_REQUEST, message_problem_text(problem));
        return CONNECTION_NEXT;
    }
    if (problem != MESSAGE_OK) {
        reject(client, LOG_LEVEL_WARN, JSONRPC_INVALID_REQUEST, message_problem_text(problem));
        return CONNECTION_NEXT;
    }
    router_from_client(&client->bus->router, &client->endpoint.peer, message, &route);
    return bus_carry_out(client->bus, &client->endpoint, message, &route);
}

/* The same where some pool has keys of its own. */
static enum connection_verdict sharing_message(struct connection *connection,
                                               const struct message *message,
                                               enum message_problem problem)
{
    if (problem != MESSAGE_OK)
        return client_message(connection, message, problem);
    return bus_sharing_client_message(client_of(connection), message);
}

void bus_check_client_done(struct client *client)
{
    struct connection *connection = &client->endpoint.connection;

    if (connection->ended_told && list_empty(&client->endpoint.peer.asked))
        connection_linger(connection);
}

void bus_check_clients_done(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients, node, following)
        bus_check_client_done(list_entry(node, struct client, link));
}

/* It has shut down its sending side, and still gets the answers to what it asked. */
static void client_ended(struct connection *connection, size_t cut)
{
    struct client *client = client_of(connection);
    struct stdio_bus *bus = client->bus;

    if (cut > 0)
        log_warn(bus->log, context(client),
                 "its input ended in the middle of a message; %zu bytes were dropped", cut);
    router_client_input_ended(&bus->router, &client->endpoint.peer, tell_worker, bus);
    if (client->on_stdio && bus->phase == BUS_PHASE_SERVING) {
        log_info(bus->log, "", "end of input: finishing what is in flight");
        bus->phase = BUS_PHASE_ENDING;
        timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->drain,
                     stdio_bus_event_loop_now_ms(bus->loop) +
                         (int64_t)bus->options.config->limits.drain_timeout_sec * 1000);
    }
    bus_check_client_done(client);
}

static void client_full(struct connection *connection, bool full)
{
    struct client *client = client_of(connection);

    log_debug(client->bus->log, context(client), full ? "backpressure: its queue is full"
                                                      : "backpressure released");
    router_set_full(&client->bus->router, &client->endpoint.peer, full);
}

static void client_flushed(struct connection *connection)
{
    bus_check_client_done(client_of(connection));
}

/* What is said of a peer that is gone: a pipe, a socket, a terminal that hung up. */
static bool has_left(int error)
{
    return error == 0 || error == EPIPE || error == ECONNRESET || error == EIO;
}

static void client_failed(struct connection *connection, enum connection_failure failure,
                          int error)
{
    struct client *client = client_of(connection);

    switch (failure) {
    case CONNECTION_BROKEN:
        if (client->on_stdio && client->bus->reason == BUS_RUNNING && !has_left(error))
            client->bus->reason = BUS_SYSTEM_ERROR; /* a full disk, a directory */
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

static void client_starved(struct connection *connection)
{
    struct client *client = client_of(connection);

    bus_starve(client->bus, &client->endpoint);
}

static const struct connection_handler client_handler = {
    client_message, client_malformed, client_refused, client_ended,
    client_full,    client_flushed,   client_failed,  client_starved,
};

static const struct connection_handler sharing_handler = {
    sharing_message, client_malformed, client_refused, client_ended,
    client_full,     client_flushed,   client_failed,  client_starved,
};

/* It waited long enough for an id that somebody else's request has. */
static void hold_expired(void *user_data)
{
    struct client *client = user_data;

    router_hold_expired(&client->bus->router, &client->endpoint.peer);
}

static struct client *new_client(struct stdio_bus *bus, bool on_stdio)
{
    struct client *client = calloc(1, sizeof *client);
    struct connection *connection;

    if (client == NULL)
        return NULL;
    connection = &client->endpoint.connection;
    client->bus = bus;
    client->on_stdio = on_stdio;
    connection->framing = bus->options.framing;
    timer_init(&client->endpoint.hold, hold_expired, client);
    snprintf(connection->context, sizeof connection->context, "client=%u", ++bus->next_client);
    return client;
}

int bus_add_client(struct stdio_bus *bus, int fd_in, int fd_out, bool on_stdio, const char *peer)
{
    struct client *client = new_client(bus, on_stdio);

    if (client == NULL ||
        connection_open(&client->endpoint.connection, &bus->transport,
                        bus->sharing ? &sharing_handler : &client_handler, fd_in, fd_out,
                        on_stdio) != STDIO_BUS_OK) {
        log_error(bus->log, "", "cannot serve %s: %s", peer, strerror(errno));
        free(client);
        return STDIO_BUS_ERR;
    }
    list_append(&bus->clients, &client->link);
    router_add_client(&bus->router, &client->endpoint.peer);
    if (bus->client_count < bus->options.config->limits.max_connections) {
        bus->client_count++;
        log_debug(bus->log, context(client), "connected (%s)", peer);
        return STDIO_BUS_OK;
    }
    client->refused = true;
    bus->refused_count++;
    return STDIO_BUS_OK;
}

/* Over max_connections: the peer learns why. */
static void refuse_last(struct stdio_bus *bus)
{
    struct client *client = list_entry(bus->clients.head.prev, struct client, link);
    struct message_id none = {ID_NONE, {NULL, 0}};
    char text[80];

    if (!client->refused)
        return;
    snprintf(text, sizeof text, "too many connections (max_connections %zu)",
             bus->options.config->limits.max_connections);
    log_warn(bus->log, context(client), "refused: %s", text);
    bus_send_error(bus, &client->endpoint, none, JSONRPC_SERVER_ERROR, text);
    connection_linger(&client->endpoint.connection);
}

/* No answer waits for the acknowledgement of the one before, and a peer whose machine is gone is
 * noticed some day. Neither is worth refusing a connection for. */
static void tune_tcp(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void bus_accepted(void *user_data, int fd, const char *peer)
{
    struct stdio_bus *bus = user_data;

    if (bus->options.mode == BUS_LISTEN_TCP)
        tune_tcp(fd);
    if (bus->refused_count >= REFUSED_MAX || bus_add_client(bus, fd, fd, false, peer) != 0) {
        close(fd);
        return;
    }
    refuse_last(bus);
}

void bus_stop_client_input(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients, node, following)
        connection_stop_input(&list_entry(node, struct client, link)->endpoint.connection);
}

void bus_close_clients(struct stdio_bus *bus, bool now)
{
    struct list_node *node, *following;

    while (now && !list_empty(&bus->clients))
        remove_client(list_entry(bus->clients.head.next, struct client, link), "shutting down");
    list_each(&bus->clients, node, following)
        connection_linger(&list_entry(node, struct client, link)->endpoint.connection);
}
