#include "build_config.h"

#include "web/exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "http/event_log.h"
#include "http/response.h"

#define LENGTH_UNKNOWN SIZE_MAX

#define EVENT_FIELDS "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"
#define SESSION_FIELD_MAX 64 /* with an id of HTTP_SESSION_ID_LEN */

static struct stdio_bus *bus_of(const struct http_exchange *http)
{
    return http->hub->bus;
}

static void start_timer(struct http_exchange *http, int64_t delay_ms)
{
    stdio_bus_event_loop_start_timer(bus_of(http)->loop, &http->timer, delay_ms);
}

/* The client cannot be told, or not the rest of it. */
static void no_memory(struct http_exchange *http)
{
    log_error(bus_of(http)->log, http->client->stream.endpoint.context,
              "out of memory: an answer was lost; closing the connection");
    http->closes = true;
    http_exchange_done(http);
}

int http_exchange_keep_fields(struct http_exchange *http, struct slice fields)
{
    if (fields.len == 0)
        return STDIO_BUS_OK;
    http->fields = malloc(fields.len);
    if (http->fields == NULL)
        return STDIO_BUS_ERR;
    memcpy(http->fields, fields.data, fields.len);
    http->fields_len = fields.len;
    return STDIO_BUS_OK;
}

void http_open_pool(struct http_exchange *http)
{
    struct peer *peer = &http->client->stream.endpoint.peer;

    if (http->pool != NULL)
        router_confine(peer, http->pool);
    else
        router_open_pool(peer, NULL);
}

void http_exchange_owe(struct http_exchange *http)
{
    http->state = HTTP_OWING;
    http->spoke = false;
    start_timer(http, HTTP_SILENCE_MS);
}

static void clear_request(struct http_exchange *http)
{
    const struct http_kind *kind = http->kind;

    http->state = HTTP_IDLE;
    http->kind = NULL;
    if (kind != NULL && kind->over != NULL)
        kind->over(http);
    free(http->fields);
    free(http->mcp);
    free(http->rpc);
    http->fields = NULL;
    http->fields_len = 0;
    http->mcp = NULL;
    http->rpc = NULL;
}

void http_exchange_end(struct http_exchange *http)
{
    clear_request(http);
    stdio_bus_event_loop_stop_timer(bus_of(http)->loop, &http->timer);
    list_remove(&http->due.node);
}

void http_exchange_done(struct http_exchange *http)
{
    struct connection *connection = http_connection(http);

    clear_request(http);
    start_timer(http, HTTP_IDLE_MS);
    if (http->closes || connection->input_state == INPUT_ENDED)
        connection_linger(connection);
    else if (http->waits)
        http_hub_note(http->hub, &http->due);
}

/* --- heads --- */

static void add_bytes(struct http_output *out, struct slice bytes)
{
    if (bytes.len > out->size - out->len) {
        out->full = true;
        return;
    }
    if (bytes.len > 0)
        memcpy(out->to + out->len, bytes.data, bytes.len);
    out->len += bytes.len;
}

/* Writes the head of an answer with a body of this number of bytes. */
static struct slice write_head(struct http_exchange *http, char head[HTTP_RESPONSE_MAX], int status,
                               const char *type, size_t length, struct slice more)
{
    struct http_output out = {.to = head, .size = HTTP_RESPONSE_MAX};

    /* A head that waits is the one that the reader has read last. */
    http->closes = http->closes || (http->reader.closes && !http->waits) ||
                   (length == LENGTH_UNKNOWN && http->form != HTTP_FORM_CHUNKED);
    http_write_status(&out, status);
    add_bytes(&out, http_hub_date(http->hub));
    if (type != NULL)
        http_write_text(&out, "Content-Type", type);
    if (length != LENGTH_UNKNOWN && status != 204)
        http_write_number(&out, "Content-Length", length);
    else if (length == LENGTH_UNKNOWN && http->form == HTTP_FORM_CHUNKED)
        http_write_text(&out, "Transfer-Encoding", "chunked");
    if (http->closes)
        http_write_text(&out, "Connection", "close");
    add_bytes(&out, more);
    add_bytes(&out, slice_of(http->fields, http->fields_len));
    http_write_end(&out);
    if (out.full) {
        log_error(bus_of(http)->log, http->client->stream.endpoint.context,
                  "an answer had too many fields");
        return slice_of(NULL, 0);
    }
    return slice_of(head, out.len);
}

/* --- whole answers --- */

void http_answer(struct http_exchange *http, int status, const char *type, struct slice body,
                 struct slice more)
{
    char head[HTTP_RESPONSE_MAX];
    const struct connection_parts parts = {
        .before = write_head(http, head, status, type, body.len, more)};

    if (http->form == HTTP_FORM_NONE || body.data == NULL)
        body = slice_of("", 0);
    if (connection_send_parts(http_connection(http), NULL, &parts, body, NULL, 0) != STDIO_BUS_OK)
        no_memory(http);
    else
        http_exchange_done(http);
}

void http_answer_empty(struct http_exchange *http, int status, struct slice more)
{
    http_answer(http, status, NULL, slice_of(NULL, 0), more);
}

void http_answer_error(struct http_exchange *http, int status, struct message_id id, int code,
                       const char *text)
{
    char line[MESSAGE_ERROR_MAX];
    size_t len = message_write_error(line, sizeof line, id, code, text);
    const char *more = status == 429 || status == 503 ? HTTP_RETRY_AFTER : "";

    if (status == 503) /* out of memory, or a limit was reached */
        log_repeated(http->hub->bus->log, LOG_LEVEL_ERROR, http->client->stream.endpoint.context,
                     origin_name(&http->client->visitor.origin), "refused a request (503): %s",
                     text);
    http_answer(http, status, "application/json", slice_of(line, len), slice_of_text(more));
}

int http_answer_delivery(struct http_exchange *http, int status, const struct delivery *delivery,
                         struct slice more)
{
    struct slice body = slice_without_newline(delivery->bytes);
    size_t len = splice_len(body.len, delivery->edits, delivery->edit_count);
    char head[HTTP_RESPONSE_MAX];
    const struct connection_parts parts = {
        .before = write_head(http, head, status, "application/json", len, more)};

    if (connection_send_parts(http_connection(http), stream_source(delivery), &parts, body,
                              delivery->edits, delivery->edit_count) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    http_exchange_done(http);
    return STDIO_BUS_OK;
}

/* --- answers in pieces --- */

int http_answer_begin(struct http_exchange *http, const char *type, struct slice more)
{
    char head[HTTP_RESPONSE_MAX];
    struct slice bytes = write_head(http, head, 200, type, LENGTH_UNKNOWN, more);

    if (connection_send_bytes(http_connection(http), bytes) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    http->state = HTTP_STREAMING;
    http->spoke = true;
    return STDIO_BUS_OK;
}

int http_answer_begin_events(struct http_exchange *http, const char *session_id)
{
    char fields[sizeof EVENT_FIELDS + SESSION_FIELD_MAX];
    size_t len = (size_t)snprintf(fields, sizeof fields, EVENT_FIELDS "%s%s%s",
                                  session_id != NULL ? "Mcp-Session-Id: " : "",
                                  session_id != NULL ? session_id : "",
                                  session_id != NULL ? "\r\n" : "");

    return http_answer_begin(http, "text/event-stream", slice_of(fields, len));
}

static int send_message(struct http_exchange *http, struct slice before, struct slice after,
                        const struct delivery *delivery)
{
    const struct connection_parts parts = {.before = before, .after = after, .one_line = true};

    http->spoke = true;
    return connection_send_parts(http_connection(http), stream_source(delivery), &parts,
                                 slice_without_newline(delivery->bytes), delivery->edits,
                                 delivery->edit_count);
}

int http_answer_piece(struct http_exchange *http, struct slice before,
                      const struct delivery *delivery)
{
    char head[CHUNK_HEAD_MAX + 8];
    size_t len = 0;

    ASSERT(before.len <= 8);
    if (http->form == HTTP_FORM_CHUNKED)
        len = chunk_write_head(head,
                               before.len + splice_len(slice_without_newline(delivery->bytes).len,
                                                       delivery->edits, delivery->edit_count));
    if (before.len > 0)
        memcpy(head + len, before.data, before.len);
    return send_message(http, slice_of(head, len + before.len),
                        http->form == HTTP_FORM_CHUNKED ? slice_of(CHUNK_TAIL, 2)
                                                        : slice_of(NULL, 0),
                        delivery);
}

int http_answer_text(struct http_exchange *http, struct slice text)
{
    const struct delivery delivery = {.bytes = text};

    return http_answer_piece(http, slice_of(NULL, 0), &delivery);
}

int http_answer_event(struct http_exchange *http, struct slice id, const struct delivery *delivery)
{
    struct event_frame frame;

    event_frame_write(&frame, id, 0,
                      splice_len(slice_without_newline(delivery->bytes).len, delivery->edits,
                                 delivery->edit_count),
                      http->form == HTTP_FORM_CHUNKED);
    return send_message(http, slice_of(frame.before, frame.before_len), frame.after, delivery);
}

int http_answer_empty_event(struct http_exchange *http, struct slice id)
{
    struct event_frame frame;

    event_frame_write_empty(&frame, id, 0, http->form == HTTP_FORM_CHUNKED);
    http->spoke = true;
    return connection_send_bytes(http_connection(http), slice_of(frame.before, frame.before_len));
}

void http_answer_comment(struct http_exchange *http)
{
    if (connection_send_bytes(http_connection(http),
                              event_comment(http->form == HTTP_FORM_CHUNKED)) != STDIO_BUS_OK)
        no_memory(http);
}

void http_answer_end(struct http_exchange *http)
{
    const struct slice end = {CHUNKED_LAST, sizeof CHUNKED_LAST - 1};

    if (http->form == HTTP_FORM_CHUNKED &&
        connection_send_bytes(http_connection(http), end) != STDIO_BUS_OK)
        http->closes = true; /* in the middle of the body: the client sees that it is cut */
    http_exchange_done(http);
}
