#include "build_config.h"

#include "web/rpc.h"

#include <stdlib.h>

#include "base/error.h"
#include "bus/cancel.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "http/head.h"
#include "http/response.h"
#include "router/waiting.h"
#include "json/param_fields.h"

#define TIMEOUT_MAX 3600 /* seconds */

#define EXPIRED "request timed out"

struct http_rpc {
    struct http_exchange *http;
    size_t owed;   /* requests that were not answered yet */
    bool is_batch; /* the body is an array */
    bool read;     /* and was read to its end */
    bool again;    /* the current message was offered before */
    bool expired;  /* the time of ?timeout= is over */
    struct timer timeout;
};

static const struct message_id no_id;

/* --- answers --- */

/* The array is whole, or there is nothing to answer. */
static void finish(struct http_exchange *http)
{
    if (http->state == HTTP_STREAMING) {
        if (http_answer_text(http, slice_of_text("]")) != STDIO_BUS_OK)
            http->closes = true;
        http_answer_end(http);
    } else {
        http_answer_empty(http, 202, slice_of(NULL, 0));
    }
}

static int send_member(struct http_exchange *http, const struct delivery *delivery)
{
    bool first = http->state != HTTP_STREAMING;
    int result = STDIO_BUS_OK;

    if (first)
        result = http_answer_begin(http, "application/json", slice_of(NULL, 0));
    if (result == STDIO_BUS_OK)
        result = http_answer_piece(http, slice_of_text(first ? "[" : ","), delivery);
    return result;
}

static int rpc_deliver(struct http_exchange *http, const struct delivery *delivery)
{
    struct delivery_subject subject = delivery_subject(delivery);
    struct http_rpc *rpc = http->rpc;
    int result;

    if (!subject.answers || rpc->owed == 0)
        return STDIO_BUS_OK; /* nobody listens to notices */
    if (!rpc->is_batch)
        return http_answer_delivery(http, rpc->expired ? 504 : 200, delivery, slice_of(NULL, 0));
    result = send_member(http, delivery);
    if (result != STDIO_BUS_OK)
        return result;
    if (--rpc->owed == 0 && rpc->read)
        finish(http);
    return STDIO_BUS_OK;
}

/* --- messages --- */

static bool asks(const struct message *message)
{
    return message->id.type != ID_NONE &&
           (message->method.data != NULL || !message_is_response(message));
}

static void offer(struct http_exchange *http, const struct message *message)
{
    struct endpoint *endpoint = &http->client->stream.endpoint;

    if (http->rpc->expired)
        deliver_error(endpoint, message->id, JSONRPC_TIMED_OUT, EXPIRED);
    else
        client_limits_offer(endpoint, message);
}

static void read_message(struct http_exchange *http, const struct message *message)
{
    struct http_rpc *rpc = http->rpc;
    struct peer *peer = &http->client->stream.endpoint.peer;
    bool is_request = asks(message);

    rpc->is_batch = http->reader.in_batch;
    if (!rpc->again && is_request)
        rpc->owed++;
    if (!rpc->again && is_request && !rpc->is_batch)
        http_exchange_owe(http);
    offer(http, message);
    if (http->rpc != rpc) /* it was answered */
        return;
    rpc->again = peer_held(peer);
    if (!rpc->again && !is_request && !rpc->is_batch)
        http_answer_empty(http, 202, slice_of(NULL, 0));
}

static void batch_over(struct http_exchange *http)
{
    http->rpc->read = true;
    if (http->rpc->owed == 0)
        finish(http);
    else if (http->state == HTTP_READING)
        http_exchange_owe(http);
}

/* --- its time --- */

static void time_over(void *user_data)
{
    struct http_rpc *rpc = user_data;
    struct http_exchange *http = rpc->http;
    struct stdio_bus *bus = http->hub->bus;
    struct peer *peer = &http->client->stream.endpoint.peer;

    rpc->expired = true;
    cancel_time_over(bus, peer);
    if (peer_held(peer)) { /* what it waits for is refused when it is offered again */
        waiting_leave(&bus->router, peer);
        deliver_resume(peer);
    }
}

static void over(struct http_exchange *http)
{
    stdio_bus_event_loop_stop_timer(http->hub->bus->loop, &http->rpc->timeout);
    router_set_brief(&http->client->stream.endpoint.peer, false);
}

const struct http_kind http_rpc_kind = {
    .message = read_message,
    .batch_over = batch_over,
    .deliver = rpc_deliver,
    .over = over,
};

/* --- the head --- */

/* ?timeout=SECONDS. False: it is none. */
static bool read_timeout(const struct http_exchange *http, struct slice head, unsigned *seconds)
{
    struct slice query = http_span_of(http->reader.head.query, head);
    struct slice text = query.data != NULL ? http_query_value(query, "timeout") : query;

    *seconds = 0;
    if (text.data == NULL)
        return true;
    if (text.len == 0 || text.len > 4)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *seconds = *seconds * 10 + (unsigned)(text.data[i] - '0');
    }
    return *seconds >= 1 && *seconds <= TIMEOUT_MAX;
}

static void refuse_rpc(struct http_exchange *http, int status, const char *problem)
{
    http_reader_skip_body(&http->reader);
    http_answer_error(http, status, no_id, JSONRPC_INVALID_REQUEST, problem);
}

/* False: out of memory. */
static bool keep_rpc(struct http_exchange *http)
{
    struct http_rpc *rpc = calloc(1, sizeof *rpc);

    if (rpc == NULL)
        return false;
    rpc->http = http;
    timer_init(&rpc->timeout, time_over, rpc);
    http->rpc = rpc;
    return true;
}

void http_rpc_begin(struct http_exchange *http, struct slice head)
{
    const struct http_head *parts = &http->reader.head;
    unsigned seconds;

    if (parts->method != HTTP_POST) {
        http_reader_skip_body(&http->reader);
        http_answer(http, 405, "text/plain", slice_of_text("JSON-RPC is sent by POST\n"),
                    slice_of_text("Allow: POST, OPTIONS\r\n"));
        return;
    }
    if (parts->body == HTTP_BODY_NONE || !read_timeout(http, head, &seconds)) {
        refuse_rpc(http, 400,
                   parts->body == HTTP_BODY_NONE ? "a POST without a body"
                                                 : "timeout: 1 to 3600 seconds");
        return;
    }
    if (!keep_rpc(http)) {
        refuse_rpc(http, 503, "out of memory");
        return;
    }
    if (seconds > 0)
        stdio_bus_event_loop_start_timer(http->hub->bus->loop, &http->rpc->timeout,
                                         (int64_t)seconds * 1000);
    http->kind = &http_rpc_kind;
    http->state = HTTP_READING;
    http_reader_take_batch(&http->reader);
    router_set_brief(&http->client->stream.endpoint.peer, true);
    http_open_pool(http);
    if (parts->expects_continue)
        (void)connection_send_bytes(http_connection(http), slice_of_text(HTTP_CONTINUE));
}

void http_rpc_archive(struct archive *archive, struct http_exchange *http)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct http_rpc, owed),
        ARCHIVE_FLAGS(struct http_rpc, is_batch, read, again, expired),
    };

    if (!archive_made(archive, archive->saves || keep_rpc(http)))
        return;
    ARCHIVE_FIELDS(archive, http->rpc, fields);
    timer_archive(archive, http->hub->bus->loop, &http->rpc->timeout);
}
