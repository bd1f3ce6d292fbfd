#include "build_config.h"

#include "web/websocket.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/siphash.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "http/response.h"
#include "http/websocket.h"
#include "router/group.h"
#include "transport/connection_output.h"

#define ID_BYTES 16
#define ID_LEN (2 * ID_BYTES)
struct http_websocket {
    struct client *client;
    struct websocket_reader reader;
    struct timer timer;
    uint64_t seen;   /* bytes_in of the connection, when the timer was started */
    bool pinged;     /* and nothing came since */
    bool has_closed; /* a CLOSE is queued: the last frame */
    struct stdio_bus_event_deferred deferred;
};

static struct http_websocket *websocket_of(struct connection *connection)
{
    return list_entry(connection, struct client, stream.connection)->websocket;
}

static struct connection *connection_of(struct http_websocket *websocket)
{
    return &websocket->client->stream.connection;
}

static struct stdio_bus *bus_of(const struct http_websocket *websocket)
{
    return websocket->client->stream.endpoint.bus;
}

/* --- control frames --- */

/* Without memory the connection ends without the frame. */
static int send_control(struct http_websocket *websocket, enum websocket_opcode opcode,
                        struct slice data)
{
    char frame[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX];
    size_t len = websocket_write_control(frame, opcode, data);

    return connection_send_bytes(connection_of(websocket), slice_of(frame, len));
}

/* The CLOSE is the last frame. The peer has a moment to send its own, which is not read. */
static void close_with(struct http_websocket *websocket, unsigned code, const char *reason)
{
    char frame[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX];
    size_t len;

    if (!websocket->has_closed) {
        websocket->has_closed = true;
        len = websocket_write_close(frame, code, reason);
        if (connection_send_bytes(connection_of(websocket), slice_of(frame, len)) != STDIO_BUS_OK)
            log_error(bus_of(websocket)->log, websocket->client->stream.endpoint.context,
                      "out of memory: a CLOSE was lost");
    }
    stdio_bus_event_loop_stop_timer(bus_of(websocket)->loop, &websocket->timer);
    connection_linger(connection_of(websocket));
}

/* A peer that does not read gets no answers to its pings: one later pong is enough (5.5.3). */
static void answer_ping(struct http_websocket *websocket)
{
    const struct websocket_reader *reader = &websocket->reader;
    struct connection *connection = connection_of(websocket);

    if (connection->full)
        return;
    if (send_control(websocket, WEBSOCKET_PONG, slice_of(reader->control, reader->control_len)) !=
        STDIO_BUS_OK)
        log_error(bus_of(websocket)->log, connection->context, "out of memory: a PONG was lost");
}

static void noted(struct connection *connection)
{
    struct http_websocket *websocket = websocket_of(connection);

    if (websocket->reader.opcode == WEBSOCKET_PING)
        answer_ping(websocket);
    else if (websocket->reader.opcode == WEBSOCKET_CLOSE)
        close_with(websocket, websocket->reader.code, "");
}

/* --- silence --- */

static void start_timer(struct http_websocket *websocket)
{
    unsigned ping_sec = bus_of(websocket)->options.config->limits.ping_sec;

    websocket->seen = connection_of(websocket)->bytes_in;
    if (ping_sec > 0)
        stdio_bus_event_loop_start_timer(bus_of(websocket)->loop, &websocket->timer,
                                         (int64_t)ping_sec * 1000);
}

/* Nothing is expected of a peer from which nothing is read. */
static void look_for_life(void *user_data)
{
    struct http_websocket *websocket = user_data;
    const struct connection *connection = connection_of(websocket);
    bool is_silent = connection->bytes_in == websocket->seen &&
                     connection->input_state == INPUT_OPEN;

    if (is_silent && websocket->pinged) {
        clients_remove(websocket->client, "no answer to a ping");
        return;
    }
    websocket->pinged = is_silent &&
                        send_control(websocket, WEBSOCKET_PING, slice_of("", 0)) == STDIO_BUS_OK;
    start_timer(websocket);
}

/* --- reports of the connection --- */

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct http_websocket *websocket = websocket_of(connection);
    const struct client *client = websocket->client;

    (void)fault;
    log_repeated(bus_of(websocket)->log, LOG_LEVEL_WARN, connection->context,
                 origin_name(&client->origin), "unacceptable input: %s; closing it (%s)", problem,
                 client->origin.text);
    close_with(websocket, websocket->reader.fault_code, problem);
}

/* Without a CLOSE the peer is gone (7.1.5): no answer can reach it. */
static void ended(struct connection *connection, size_t cut)
{
    (void)cut;
    clients_remove(websocket_of(connection)->client, "it left without a CLOSE");
}

static void refused(struct connection *connection, enum frame_fault fault, const char *problem)
{
    clients_handler.connection.refused(connection, fault, problem);
}

static void unacceptable(struct stream *stream, const struct message *message,
                         enum message_problem problem)
{
    clients_handler.unacceptable(stream, message, problem);
}

static const struct stream_handler handler = {
    .message = client_limits_offer,
    .long_message = client_limits_offer,
    .unacceptable = unacceptable,
    .connection =
        {
            .frame = stream_read,
            .malformed = malformed,
            .skipped = stream_skipped,
            .refused = refused,
            .noted = noted,
            .ended = ended,
            .full = deliver_full,
            .failed = clients_failed,
            .starved = deliver_starved,
        },
};

/* --- operations of the endpoint --- */

/* The daemon ends the connection: it shuts down, or does not serve this client any more. */
static void close_endpoint(struct endpoint *endpoint)
{
    struct http_websocket *websocket = client_of_endpoint(endpoint)->websocket;
    bool shuts_down = bus_of(websocket)->phase >= BUS_PHASE_DRAINING;

    close_with(websocket, shuts_down ? WEBSOCKET_GOING_AWAY : WEBSOCKET_POLICY,
               shuts_down ? "the server is closing" : "");
}

static const struct endpoint_ops endpoint_ops = {
    .deliver = stream_deliver,
    .pause = stream_pause,
    .resume = stream_resume,
    .close = close_endpoint,
    .watch_hangup = stream_watch_hangup,
    .too_long = stream_too_long,
};

/* --- from the upgrade to the end --- */

static void leaving(struct client *client)
{
    struct http_websocket *websocket = client->websocket;

    stdio_bus_event_loop_stop_timer(bus_of(websocket)->loop, &websocket->timer);
    stdio_bus_event_loop_defer(bus_of(websocket)->loop, &websocket->deferred, free, websocket);
}

static void take(struct client *client, struct http_websocket *websocket)
{
    client->websocket = websocket;
    client->leaving = leaving;
    client->stream.endpoint.ops = &endpoint_ops;
    websocket->client = client;
    timer_init(&websocket->timer, look_for_life, websocket);
}

/* The answer 101 is queued: the client speaks WebSocket from now on, and no HTTP. The exchange is
 * over, and freed at the round's end. */
static void open_websocket(struct http_exchange *http, struct http_websocket *websocket)
{
    struct client *client = http->client;
    struct endpoint *endpoint = &client->stream.endpoint;

    http_open_pool(http);
    client->leaving(client); /* what it had for HTTP */
    client->http = NULL;
    endpoint->owes_answers = false;
    client_limits_set_idle(endpoint, true);
    take(client, websocket);
    connection_set_reader(&client->stream.connection, &websocket->reader);
    stream_hand_over(&client->stream, &handler, &framing_websocket, false);
    start_timer(websocket);
}

/* --- the upgrade of a connection --- */

/* What the messages of the daemon are called; the first one that is offered is agreed on. */
static const char *const subprotocols[] = {"mcp", "acp", "lsp", "jsonrpc", "json-rpc"};

bool http_upgrade_wanted(const struct http_head *head, struct slice bytes)
{
    return head->method == HTTP_GET && head->minor > 0 &&
           http_head_lists(head, bytes, HTTP_UPGRADE, "websocket");
}

static const struct message_id no_id;

static void refuse(struct http_exchange *http, int status, const char *text, const char *more)
{
    char line[MESSAGE_ERROR_MAX];
    size_t len = message_write_error(line, sizeof line, no_id, JSONRPC_INVALID_REQUEST, text);

    http_reader_skip_body(&http->reader);
    http_answer(http, status, "application/json", slice_of(line, len),
                slice_of(more, strlen(more)));
}

/* RFC 6455, 4.2.1. True: refused. */
static bool refuse_request(struct http_exchange *http, const struct http_head *head,
                           struct slice bytes)
{
    struct slice version = http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_VERSION);
    struct slice key = http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_KEY);

    if (head->body != HTTP_BODY_NONE)
        refuse(http, 400, "a request for an upgrade has no body", "");
    else if (!http_head_lists(head, bytes, HTTP_CONNECTION, "upgrade"))
        refuse(http, 400, "Upgrade without Connection: Upgrade", "");
    else if (version.data == NULL || !slice_equal(version, slice_of("13", 2)))
        refuse(http, 426, "the version of WebSocket is 13",
               "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    else if (key.data == NULL || !websocket_key_valid(key))
        refuse(http, 400, "Sec-WebSocket-Key is not the base64 of 16 bytes", "");
    else
        return false;
    return true;
}

/* --- 101 --- */

static void add_subprotocol(struct http_output *out, const struct http_head *head,
                            struct slice bytes)
{
    struct slice offered;
    size_t at = 0;

    while (http_head_next_member(head, bytes, HTTP_SEC_WEBSOCKET_PROTOCOL, &at, &offered)) {
        for (size_t i = 0; i < sizeof subprotocols / sizeof subprotocols[0]; i++) {
            if (slice_is(offered, subprotocols[i])) {
                http_write_field(out, "Sec-WebSocket-Protocol", offered);
                return;
            }
        }
    }
}

/* The pool, or one that a message may name, is of ACP. */
static bool may_be_acp(const struct http_exchange *http)
{
    const struct config *config = http->hub->bus->options.config;

    if (http->pool != NULL)
        return http->pool->mode.protocol == PROTOCOL_ACP;
    for (size_t i = 0; i < config->pool_count; i++) {
        if (config->pools[i].mode.protocol == PROTOCOL_ACP)
            return true;
    }
    return false;
}

/* ACP names the connection. */
static bool add_connection_id(struct http_output *out, const struct http_exchange *http)
{
    unsigned char random[ID_BYTES];
    char text[ID_LEN + 1];

    if (!may_be_acp(http))
        return true;
    if (!random_bytes(random, sizeof random))
        return false;
    for (size_t i = 0; i < ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    http_write_text(out, "Acp-Connection-Id", text);
    return true;
}

/* Extensions are declined: none is named. False: memory or random bytes are out. */
static bool accept_request(struct http_exchange *http, const struct http_head *head,
                           struct slice bytes)
{
    char text[HTTP_RESPONSE_MAX], accept[WEBSOCKET_ACCEPT_LEN];
    struct http_output out = {.to = text, .size = sizeof text};

    websocket_accept(accept, http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_KEY));
    http_write_status(&out, 101);
    http_write_text(&out, "Upgrade", "websocket");
    http_write_text(&out, "Connection", "Upgrade");
    http_write_field(&out, "Sec-WebSocket-Accept", slice_of(accept, sizeof accept));
    add_subprotocol(&out, head, bytes);
    if (!add_connection_id(&out, http))
        return false;
    http_write_end(&out);
    return !out.full &&
           connection_send_bytes(http_connection(http), slice_of(text, out.len)) == STDIO_BUS_OK;
}

void http_upgrade_begin(struct http_exchange *http, struct slice bytes)
{
    const struct http_head *head = &http->reader.head;
    struct http_websocket *websocket;

    if (refuse_request(http, head, bytes))
        return;
    websocket = calloc(1, sizeof *websocket);
    if (websocket != NULL && accept_request(http, head, bytes)) {
        open_websocket(http, websocket);
        return;
    }
    free(websocket);
    http_reader_skip_body(&http->reader);
    http_answer_error(http, 503, no_id, JSONRPC_SERVER_ERROR, "out of memory");
}

/* --- the archive --- */

void http_websocket_archive(struct archive *archive, struct client *client)
{
    struct stdio_bus *bus = client->stream.endpoint.bus;
    struct http_websocket *websocket = client->websocket;
    struct stream_options options = {.handler = &handler, .framing = &framing_websocket};

    if (websocket == NULL && (websocket = calloc(1, sizeof *websocket)) == NULL) {
        archive_lacks_memory(archive);
        return;
    }
    options.reader = &websocket->reader;
    stream_archive(archive, &client->stream, &bus->transport, &options);
    if (!archive->saves)
        take(client, websocket);
    websocket_reader_archive(archive, &websocket->reader);
    ARCHIVE_INTEGER(archive, websocket->seen);
    archive_flag(archive, &websocket->pinged);
    archive_flag(archive, &websocket->has_closed);
    timer_archive(archive, bus->loop, &websocket->timer);
}
