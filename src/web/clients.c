#include "build_config.h"

#include "web/clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "bus/gate.h"
#include "http/access.h"
#include "router/router_archive.h"
#include "router/waiting.h"
#include "transport/address.h"
#include "transport/connection_output.h"
#include "web/exchange.h"
#include "web/gate.h"
#include "web/mcp.h"
#include "web/rpc.h"
#include "web/sessions.h"
#include "web/stateless.h"
#include "web/websocket.h"

#define PATHS_MAX 256 /* bytes */

static struct http_exchange *http_of(struct connection *connection)
{
    return list_entry(connection, struct client, stream.connection)->http;
}

static struct http_exchange *http_of_endpoint(struct endpoint *endpoint)
{
    return client_of_endpoint(endpoint)->http;
}

/* --- heads --- */

/* Counts a request: the connection ends after that of max_requests_per_connection. */
static bool is_last(struct http_exchange *http)
{
    return ++http->requests == http->hub->bus->options.config->limits.max_requests_per_connection;
}

static void begin_request(struct http_exchange *http, struct slice head)
{
    const struct http_head *parts = &http->reader.head;
    struct http_verdict verdict UNINITIALIZED;

    stdio_bus_event_loop_start_timer(http->hub->bus->loop, &http->timer, HTTP_SILENCE_MS);
    http->form = parts->method == HTTP_HEAD ? HTTP_FORM_NONE
                 : parts->minor > 0         ? HTTP_FORM_CHUNKED
                                            : HTTP_FORM_BARE;
    http->closes = http->reader.closes || parts->minor == 0 || is_last(http);
    http_gate_judge(&verdict, http->client, parts, head);
    http->pool = verdict.pool;
    http->token = verdict.token;
    if (http_exchange_keep_fields(http, slice_of(verdict.fields, verdict.fields_len)) !=
        STDIO_BUS_OK) {
        log_error(http->hub->bus->log, http->client->stream.endpoint.context,
                  "out of memory: a request is refused");
        http->closes = true;
        verdict.status = 503;
        verdict.body = slice_of(NULL, 0);
    }
    if (verdict.status != 0) {
        http_reader_skip_body(&http->reader);
        http_answer(http, verdict.status, verdict.type, verdict.body, slice_of(NULL, 0));
    } else if (http_upgrade_wanted(parts, head)) {
        clients_announce(http->client);
        http_upgrade_begin(http, head);
    } else if (verdict.place == HTTP_PLACE_RPC) {
        clients_announce(http->client);
        http_rpc_begin(http, head);
    } else {
        http_mcp_begin(http, head);
    }
    http_verdict_free(&verdict);
}

/* --- frames --- */

static void read_frame(struct connection *connection, struct slice bytes)
{
    struct http_exchange *http = http_of(connection);

    if (http->reader.part == HTTP_PART_BODY) {
        stream_read(connection, bytes);
    } else if (http->state != HTTP_IDLE || connection->full) { /* one after the other */
        http->waits = true;
        connection_pause(connection);
        connection_watch_hangup(connection); /* its end gives up the current request */
    } else {
        begin_request(http, bytes);
    }
}

static void end_batch(struct connection *connection)
{
    struct http_exchange *http = http_of(connection);

    if (http->kind != NULL && http->kind->batch_over != NULL)
        http->kind->batch_over(http);
}

static void read_message(struct endpoint *from, const struct message *message)
{
    struct http_exchange *http = http_of_endpoint(from);

    if (http->kind != NULL && http->kind->message != NULL)
        http->kind->message(http, message);
}

/* The rest of an answer that has begun cannot be trusted: the client sees that it is cut. Other
 * members of a batch may be in flight: their answers must not become that of the next request. */
static void answer_problem(struct http_exchange *http, int status, struct message_id id, int code,
                           const char *problem)
{
    http->closes = http->closes || http->reader.in_batch;
    if (http->state == HTTP_STREAMING) {
        http->closes = true;
        http_exchange_done(http);
    } else {
        http_answer_error(http, status, id, code, problem);
    }
}

static void read_long_message(struct endpoint *from, const struct message *message)
{
    struct http_exchange *http = http_of_endpoint(from);
    char problem[80];

    if (!message_is_cut(message)) {
        read_message(from, message);
    } else if (http->kind != NULL) {
        snprintf(problem, sizeof problem, "the message is longer than max_message (%zu bytes)",
                 http->hub->bus->options.config->limits.max_message);
        answer_problem(http, 413, message->id, JSONRPC_INVALID_REQUEST, problem);
    }
}

static void unacceptable(struct stream *stream, const struct message *message,
                         enum message_problem problem)
{
    answer_problem(http_of(&stream->connection), problem == MESSAGE_TOO_LONG ? 413 : 400,
                   message->id, JSONRPC_INVALID_REQUEST, message_problem_text(problem));
}

static void request_refused(struct connection *connection, enum frame_fault fault,
                            const char *problem)
{
    static const struct message_id no_id;
    struct http_exchange *http = http_of(connection);
    int status = http->reader.status != 0 ? http->reader.status : 400;

    log_debug(http->hub->bus->log, connection->context, "refused a request: %s", problem);
    answer_problem(http, status, no_id, stream_error_code(fault), problem);
}

static void request_malformed(struct connection *connection, enum frame_fault fault,
                              const char *problem)
{
    struct http_exchange *http = http_of(connection);

    http->closes = true;
    log_repeated(http->hub->bus->log, LOG_LEVEL_WARN, connection->context,
                 origin_name(&http->client->visitor.origin),
                 "unacceptable request: %s; closing it (%s)", problem,
                 http->client->visitor.origin.text);
    if (fault == FRAME_FAULT_FOREIGN)
        connection_linger(connection);
    else if (http->state == HTTP_IDLE || http->state == HTTP_READING)
        request_refused(connection, fault, problem);
}

/* --- the end of its input --- */

static void left_early(struct client *client)
{
    log_debug(client->http->hub->bus->log, client->stream.endpoint.context,
              "it left before it was answered");
    clients_remove(client, "hung up");
}

static void end_input(struct connection *connection, size_t cut)
{
    struct http_exchange *http = http_of(connection);

    (void)cut;
    if (http->state == HTTP_IDLE)
        connection_linger(connection);
    else if (http->kind == NULL || http->kind->input_ended == NULL ||
             !http->kind->input_ended(http))
        left_early(http->client);
}

/* --- its queue --- */

static void queue_full(struct connection *connection, bool is_full)
{
    struct http_exchange *http = http_of(connection);
    bool has_own = http->kind == NULL || http->kind->full == NULL;

    if (!has_own)
        http->kind->full(http, is_full);
    if (has_own || !is_full)
        deliver_full(connection, is_full);
    if (http->waits && !is_full)
        http_hub_note(http->hub, &http->due);
}

static void resume_head(struct http_due *due)
{
    struct http_exchange *http = list_entry(due, struct http_exchange, due);

    http->waits = false;
    connection_resume(http_connection(http));
}

static void timer_expired(void *user_data)
{
    struct http_exchange *http = user_data;

    if (http->state == HTTP_IDLE) {
        connection_linger(http_connection(http));
        return;
    }
    /* Its end is not seen while it is paused: the router holds its message, or a head waits. */
    if (connection_input_is_over(http_connection(http))) {
        left_early(http->client);
        return;
    }
    if (!http->spoke && http->kind != NULL && http->kind->silent != NULL)
        http->kind->silent(http);
    http->spoke = false;
    if (http->state != HTTP_IDLE)
        stdio_bus_event_loop_start_timer(http->hub->bus->loop, &http->timer, HTTP_SILENCE_MS);
}

/* --- operations of the endpoint --- */

static int client_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct http_exchange *http = http_of_endpoint(endpoint);

    if (http->state == HTTP_IDLE || http->kind == NULL || http->kind->deliver == NULL)
        return STDIO_BUS_OK;
    return http->kind->deliver(http, delivery);
}

static void client_close(struct endpoint *endpoint)
{
    static const struct message_id no_id;
    struct http_exchange *http = http_of_endpoint(endpoint);

    http->closes = true;
    if (http->kind != NULL && http->kind->closes != NULL)
        http->kind->closes(http);
    if (http->state == HTTP_OWING || http->state == HTTP_READING)
        http_answer_error(http, 503, no_id, JSONRPC_SERVER_ERROR, "the server is closing");
    connection_linger(http_connection(http));
}

static void client_too_long(struct endpoint *endpoint, const struct message *message)
{
    answer_problem(http_of_endpoint(endpoint), 413, message->id, JSONRPC_INVALID_REQUEST,
                   message_problem_text(MESSAGE_TOO_LONG));
}

static const struct endpoint_ops client_ops = {
    .deliver = client_deliver,
    .pause = stream_pause,
    .resume = stream_resume,
    .close = client_close,
    .watch_hangup = stream_watch_hangup,
    .too_long = client_too_long,
};

/* --- from the connection to its end --- */

static const struct stream_handler handler = {
    .message = read_message,
    .long_message = read_long_message,
    .unacceptable = unacceptable,
    .connection =
        {
            .frame = read_frame,
            .malformed = request_malformed,
            .skipped = stream_skipped,
            .refused = request_refused,
            .noted = end_batch,
            .ended = end_input,
            .full = queue_full,
            .failed = clients_failed,
            .starved = deliver_starved,
        },
};

static void leaving(struct client *client)
{
    struct http_exchange *http = client->http;

    http->closes = true;
    http_exchange_end(http);
    stdio_bus_event_loop_defer(http->hub->bus->loop, &http->deferred, free, http);
}

static struct http_exchange *prepare_exchange(struct stream_options *options)
{
    struct http_exchange *http = calloc(1, sizeof *http);

    if (http == NULL)
        return NULL;
    options->handler = &handler;
    options->framing = &framing_http;
    options->reader = &http->reader;
    return http;
}

static void open_exchange(struct client *client, struct http_exchange *http, struct http_hub *hub)
{
    struct endpoint *endpoint = &client->stream.endpoint;
    struct stdio_bus *bus = endpoint->bus;

    http->client = client;
    http->hub = hub;
    http->due.act = resume_head;
    timer_init(&http->timer, timer_expired, http);
    client->http = http;
    client->leaving = leaving;
    endpoint->ops = &client_ops;
    endpoint->carrier = endpoint;
    endpoint->owes_answers = true;
    client_limits_set_idle(endpoint, false); /* HTTP_IDLE_MS, and session_idle_sec of a session */
    stdio_bus_event_loop_start_timer(bus->loop, &http->timer, HTTP_IDLE_MS);
}

/* --- the listener --- */

/* The connection does not become a client of HTTP, and gets the reason. */
static void refuse_connection(struct client *client, const struct arrival *arrival)
{
    char answer[VISITOR_REASON_MAX + 256];
    const char *head = arrival->admission == ADMISSION_FULL
                           ? "503 Service Unavailable\r\n" HTTP_RETRY_AFTER
                           : "403 Forbidden\r\n";
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 %s"
                       "Content-Type: text/plain; charset=utf-8\r\n"
                       "Content-Length: %zu\r\n"
                       "Connection: close\r\n\r\n"
                       "%s\n",
                       head, strlen(arrival->text) + 1, arrival->text);

    if (connection_send_bytes(&client->stream.connection, slice_of(answer, (size_t)len)) !=
        STDIO_BUS_OK)
        log_error(arrival->listener->bus->log, client->stream.endpoint.context,
                  "out of memory: an answer was lost");
    client->stream.endpoint.ops->close(&client->stream.endpoint);
}

static void accept_connection(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stream_options options = {.handler = &clients_handler};
    struct http_exchange *http = NULL;
    struct arrival arrival;
    struct client *client;

    gate_judge(&arrival, listener, fd, origin);
    if (arrival.admission == ADMISSION_GRANTED) {
        http = prepare_exchange(&options);
        if (http == NULL) {
            log_error(listener->bus->log, "", "cannot serve %s: out of memory", origin->text);
            close(fd);
            return;
        }
    }
    client = gate_take(&arrival, &options);
    if (client == NULL) {
        free(http);
        return;
    }
    if (http == NULL) {
        refuse_connection(client, &arrival);
        return;
    }
    if (listener->pool != NULL)
        router_confine(&client->stream.endpoint.peer, listener->pool);
    open_exchange(client, http, listener->service);
    log_debug(listener->bus->log, client->stream.endpoint.context, "connection of %s",
              origin->text);
    if (listener_asks_token(listener))
        gate_wait(client);
    else
        gate_admit(client);
}

/* What a client of HTTP needs to know. */
static void log_url(const struct bus_listener *listener)
{
    const struct listen_config *config = listener->config;
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char text[ADDRESS_TEXT_MAX], paths[PATHS_MAX];

    http_routes_describe(&config->http, paths, sizeof paths);
    if (config->address.is_unix) {
        log_info(listener->bus->log, "", "HTTP at unix:%s with %s", config->address.path, paths);
        return;
    }
    for (int i = 0; i < listener->listener.count; i++) {
        if (getsockname(listener->listener.sockets[i].fd, (struct sockaddr *)&bound, &len) == 0)
            log_info(listener->bus->log, "", "HTTP at http://%s with %s",
                     address_text(text, sizeof text, (const struct sockaddr *)&bound), paths);
    }
}

const struct listener_kind http_listener = {
    .name = "http",
    .of = LISTEN_HTTP,
    .accepted = accept_connection,
    .visits = &clients_kind,
    .opened = log_url,
};

/* --- the archive --- */

static void archive_header_fields(struct archive *archive, struct http_exchange *http)
{
    struct slice fields = archive_slice(archive, slice_of(http->fields, http->fields_len));

    if (archive_loads(archive))
        archive_done(archive, http_exchange_keep_fields(http, fields));
}

static void archive_kind(struct archive *archive, struct http_exchange *http)
{
    static const struct http_kind *const kinds[] = {NULL, &http_mcp_kind, &http_session_kind,
                                                    &http_stateless_kind, &http_rpc_kind};
    const unsigned last = sizeof kinds / sizeof kinds[0] - 1;
    unsigned kind = 0;

    if (archive->saves) {
        while (kinds[kind] != http->kind)
            kind++;
    }
    ARCHIVE_ENUM(archive, kind, last);
    http->kind = kinds[kind];
}

static void archive_kept(struct archive *archive, struct http_exchange *http)
{
    bool has_mcp = archive_present(archive, http->mcp != NULL);
    bool has_rpc = archive_present(archive, http->rpc != NULL);

    archive_expect(archive, has_rpc == (http->kind == &http_rpc_kind),
                   "a request has another kind");
    if (!archive_ok(archive))
        return;
    if (has_mcp)
        http_mcp_archive(archive, http);
    if (has_rpc)
        http_rpc_archive(archive, http);
}

static const struct archive_field exchange_fields[] = {
    ARCHIVE_CHOICE(struct http_exchange, state, HTTP_STREAMING),
    ARCHIVE_CHOICE(struct http_exchange, form, HTTP_FORM_NONE),
    ARCHIVE_CHOICE(struct http_exchange, reply, HTTP_REPLY_EVENTS),
    ARCHIVE_FLAGS(struct http_exchange, closes, waits, spoke),
    ARCHIVE_INTEGERS(struct http_exchange, requests, token),
};

/* Its session, and the stream that it serves. */
static void archive_place(struct archive *archive, struct http_exchange *http)
{
    struct http_session *session = http_sessions_archive_one(archive, http->hub, http->session);
    struct http_stream *stream = http->stream;
    bool is_attached = stream != NULL;

    archive_flag(archive, &is_attached);
    archive_expect(archive, (session != NULL) == (http->kind == &http_session_kind),
                   "a request has another kind");
    archive_expect(archive, session != NULL || !is_attached, "a stream has no session");
    if (!archive_ok(archive) || session == NULL)
        return;
    if (is_attached)
        stream = http_stream_archive_one(archive, session, stream);
    if (archive->saves || !archive_ok(archive))
        return;
    http->session = session;
    list_append(&session->exchanges, &http->in_session);
    archive_expect(archive, stream == NULL || stream->http == NULL, "a stream has two connections");
    if (stream != NULL && archive_ok(archive))
        http_stream_attach(stream, http);
}

static void archive_reader(struct archive *archive, struct client *client)
{
    const struct connection *connection = &client->stream.connection;
    struct http_reader *reader = &client->http->reader;
    const struct buffer *input = connection->input;
    struct slice head = slice_of(NULL, 0);

    /* A connection that reads nothing more has dropped its input, amid a batch perhaps. */
    if (archive->saves && (input == NULL || buffer_len(input) < reader->clean + reader->gap))
        reader->clean = reader->gap = 0;
    if (input != NULL && connection->at_hand > 0 && client->http->waits)
        head = slice_of(input->data + input->start, connection->at_hand);
    http_reader_archive(archive, reader, head);
    archive_expect(archive,
                   reader->clean <= SIZE_MAX - reader->gap &&
                       reader->clean + reader->gap <= (input != NULL ? buffer_len(input) : 0),
                   "a body is beyond its input");
}

void http_clients_archive(struct router_archive *state, struct http_hub *hub, struct client *client)
{
    struct archive *archive = state->archive;
    struct stream_options options = {.handler = NULL};
    struct http_exchange *http = client->http;

    if (http == NULL)
        http = prepare_exchange(&options);
    if (!archive_made(archive, http != NULL))
        return;
    stream_archive(archive, &client->stream, &hub->bus->transport, &options);
    if (!archive->saves)
        open_exchange(client, http, hub);
    archive_mark(archive, "http");
    ARCHIVE_FIELDS(archive, http, exchange_fields);
    archive_header_fields(archive, http);
    archive_kind(archive, http);
    archive_kept(archive, http);
    router_archive_group(state, &http->pool);
    archive_place(archive, http);
    if (archive_ok(archive))
        archive_reader(archive, client);
    timer_archive(archive, hub->bus->loop, &http->timer);
}
