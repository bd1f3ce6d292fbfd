#include "build_config.h"

#include "web/session.h"

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "router/decision.h"
#include "router/waiting.h"
#include "web/lines.h"
#include "json/param_fields.h"

#define NO_STREAM "Last-Event-ID names no stream that is kept\n"
#define SESSION_ENDED "the session has ended"
#define NOT_TAKEN "the connection was cut before a worker took the request"

static const struct message_id no_id;

static struct http_session *session_of(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct http_session, endpoint);
}

static struct stdio_bus *bus_of(const struct http_session *session)
{
    return session->hub->bus;
}

static void note_session(struct http_session *session)
{
    http_hub_note(session->hub, &session->due);
}

/* --- operations of the endpoint --- */

/* Whether a line of the daemon's, or of a worker, is a result. */
static bool is_result(const struct delivery *delivery)
{
    struct scanner scanner;

    if (delivery->decision != NULL)
        return delivery->decision->message->has_result && !delivery->decision->message->has_error;
    return message_scan(&scanner, delivery->bytes) && scanner.fields.has_result &&
           !scanner.fields.has_error;
}

/* The answer to initialize: its client learns the id of the session, if there is to be one. */
static int answer_first(struct http_session *session, struct message_id id,
                        const struct delivery *delivery)
{
    bool is_good = is_result(delivery);
    int result;

    session->names_itself = is_good;
    result = http_stream_answer(session, id, delivery);
    session->names_itself = result != STDIO_BUS_OK;
    if (result != STDIO_BUS_OK)
        return result;
    session->answered = is_good;
    if (!is_good) {
        session->ending = "initialize was refused";
        note_session(session);
    }
    return STDIO_BUS_OK;
}

/* No connection serves it, or its last request is over and none did. */
static void rest(struct http_session *session)
{
    if (!list_linked(&session->link))
        return;
    session->used_ms = stdio_bus_event_loop_now_ms(bus_of(session)->loop);
    http_session_rest(session);
}

static int session_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct http_session *session = session_of(endpoint);
    struct delivery_subject subject = delivery_subject(delivery);
    int result;

    if (!subject.answers)
        result = http_stream_tell(session, &subject, delivery);
    else if (!session->answered)
        result = answer_first(session, *subject.about, delivery);
    else
        result = http_stream_answer(session, *subject.about, delivery);
    if (result != STDIO_BUS_OK)
        return result;
    if (subject.answers && list_empty(&session->exchanges))
        rest(session);
    session->traffic.frames_out++;
    session->traffic.bytes_out += delivery->bytes.len;
    return STDIO_BUS_OK;
}

static void session_pause(struct endpoint *endpoint)
{
    struct http_session *session = session_of(endpoint);

    session->paused = true;
    session->holder = session->offering;
    if (session->offering != NULL)
        connection_pause(http_connection(session->offering));
}

/* Offers what waits, until the router holds a message again. */
static void run_held(struct http_session *session)
{
    struct list_node *node;

    http_lines_offer(session);
    while (!session->paused && session->ending == NULL &&
           (node = list_take_first(&session->held)) != NULL)
        connection_resume(http_connection(list_entry(node, struct http_exchange, held)));
}

static void session_resume(struct endpoint *endpoint)
{
    struct http_session *session = session_of(endpoint);

    session->paused = false;
    session->holder = NULL;
    run_held(session);
}

static void session_close(struct endpoint *endpoint)
{
    struct http_session *session = session_of(endpoint);

    if (session->ending == NULL)
        session->ending = endpoint->peer.closing != NULL ? endpoint->peer.closing : "closed";
    note_session(session);
}

static void session_watch_hangup(struct endpoint *endpoint)
{
    struct http_session *session = session_of(endpoint);

    if (session->holder != NULL)
        connection_watch_hangup(http_connection(session->holder));
}

static void session_too_long(struct endpoint *endpoint, const struct message *message)
{
    deliver_error(endpoint, message->id, JSONRPC_INVALID_REQUEST,
                  message_problem_text(MESSAGE_TOO_LONG));
}

static const struct endpoint_ops session_ops = {
    .deliver = session_deliver,
    .pause = session_pause,
    .resume = session_resume,
    .close = session_close,
    .watch_hangup = session_watch_hangup,
    .too_long = session_too_long,
};

/* --- the exchanges of a session --- */

/* The router holds the session for a message that is gone. */
static void leave_hold(struct http_session *session)
{
    waiting_leave(&bus_of(session)->router, &session->endpoint.peer);
    stdio_bus_event_loop_stop_timer(bus_of(session)->loop, &session->endpoint.hold_timer);
    deliver_end_hold(&session->endpoint);
    session->paused = false;
    session->holder = NULL;
    note_session(session);
}

/* The message of the exchange waits to be taken by the router, and will not be. A request is not in
 * flight any more, whether the router holds the session for it or for a message before it. A client
 * that can come back to its stream finds an error there. */
static void forget_message(struct http_exchange *http, struct http_stream *stream)
{
    struct http_session *session = http->session;

    if (session->paused && session->holder == http)
        leave_hold(session);
    list_remove(&http->held);
    http_hub_note(http->hub, &http->due); /* its connection continues */
    if (stream != NULL && !stream->over)
        http_stream_give_up(stream, NOT_TAKEN);
}

static void over(struct http_exchange *http)
{
    struct http_session *session = http->session;
    struct http_stream *stream = http->stream;

    if (session == NULL)
        return;
    if (stream != NULL)
        http_stream_detach(stream);
    if (list_linked(&http->held) || (session->paused && session->holder == http))
        forget_message(http, stream);
    list_remove(&http->in_session);
    http->session = NULL;
    rest(session);
}

static void session_full(struct http_exchange *http, bool full)
{
    if (http->stream == NULL)
        return;
    http_stream_press(http->stream, full);
    if (!full)
        http_stream_flow(http->stream);
}

static void session_silent(struct http_exchange *http)
{
    if (http->state == HTTP_STREAMING)
        http_answer_comment(http);
    else if (http->stream != NULL && http->reply != HTTP_REPLY_JSON &&
             http_stream_open(http->stream) != STDIO_BUS_OK)
        log_error(http->hub->bus->log, http->session->endpoint.context,
                  "out of memory: a stream does not begin");
}

/* A client that has closed all of its connection looks like one that has closed its input, until it
 * is sent something. */
static bool input_ended(struct http_exchange *http)
{
    return http->state == HTTP_OWING && http->stream != NULL && http->reply != HTTP_REPLY_JSON &&
           http_stream_open(http->stream) == STDIO_BUS_OK;
}

static void closes(struct http_exchange *http)
{
    if (http->state == HTTP_STREAMING)
        http_answer_end(http);
}

const struct http_kind http_session_kind = {
    .message = http_session_post,
    .silent = session_silent,
    .full = session_full,
    .input_ended = input_ended,
    .closes = closes,
    .over = over,
};

void http_session_join(struct http_session *session, struct http_exchange *http)
{
    http->kind = &http_session_kind;
    http->session = session;
    list_append(&session->exchanges, &http->in_session);
    list_remove(&session->rest);
    session->used_ms = stdio_bus_event_loop_now_ms(bus_of(session)->loop);
}

/* --- POST --- */

/* The progress token of a request, in the message or in `scratch`. ID_NONE: there is none. */
static struct message_id token_of(const struct message *message, struct message_scratch *scratch)
{
    struct message_id token = no_id;
    struct param_fields fields;

    if (!param_fields_may_have_token(message->bytes))
        return no_id;
    param_fields_find(&fields, message->bytes, 0);
    if (param_fields_has(&fields, PARAM_META_TOKEN))
        (void)message_read_id(&token, message->bytes, &fields.at[PARAM_META_TOKEN], scratch);
    return token;
}

/* Prepares the stream of a request. False: the exchange was answered. */
static bool begin_request(struct http_exchange *http, const struct message *message)
{
    struct http_session *session = http->session;
    struct message_id id = message->id;
    struct message_scratch scratch;
    struct http_stream *stream;

    if (http->stream != NULL) /* it is offered again */
        return true;
    if (http_stream_find(session, id) != NULL) {
        http_answer_error(http, 400, id, JSONRPC_INVALID_REQUEST,
                          "the id is that of a request in flight");
        return false;
    }
    if (session->in_flight >= bus_of(session)->options.config->limits.max_session_requests) {
        http_answer_error(http, 429, id, JSONRPC_SERVER_ERROR,
                          "too many requests of the session are in flight");
        return false;
    }
    stream = http_stream_create(session, id, token_of(message, &scratch));
    if (stream == NULL) {
        http_answer_error(http, 503, id, JSONRPC_SERVER_ERROR, "out of memory");
        return false;
    }
    http_stream_attach(stream, http);
    http_exchange_owe(http);
    return true;
}

/* Requests that the client has cancelled will not be answered. */
static void end_cancelled(struct http_session *session)
{
    const struct pending *pending = &bus_of(session)->router.from_clients;
    struct list_node *node, *following;

    list_each(&session->streams, node, following) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (!stream->over && !http_stream_waits(stream) &&
            pending_by_asker(pending, &session->endpoint.peer, stream->id,
                             pending_hash(pending, stream->id)) == NULL)
            http_stream_give_up(stream, NULL);
    }
}

static bool asks(const struct message *message)
{
    return message->id.type != ID_NONE &&
           (message->method.data != NULL || !message_is_response(message));
}

static void deliver_post(struct http_session *session, struct http_exchange *http,
                         const struct message *message)
{
    session->offering = http;
    session->endpoint.carrier = &http->client->stream.endpoint;
    client_limits_offer(&session->endpoint, message);
    session->offering = NULL;
    session->endpoint.carrier = NULL;
}

void http_session_post(struct http_exchange *http, const struct message *message)
{
    struct http_session *session = http->session;
    bool is_request = asks(message);

    if (session == NULL || session->ending != NULL) {
        http_answer_error(http, 404, no_id, JSONRPC_SERVER_ERROR, SESSION_ENDED);
        return;
    }
    if (session->paused) { /* those before it come first */
        ASSERT(!list_linked(&http->held));
        list_append(&session->held, &http->held);
        connection_pause(http_connection(http));
        return;
    }
    if (is_request && !begin_request(http, message))
        return;
    deliver_post(session, http, message);
    if (session->paused && session->holder == http) {
        list_prepend(&session->held, &http->held);
        return;
    }
    session->traffic.frames_in++;
    session->traffic.bytes_in += message->bytes.len;
    if (!is_request) {
        if (session->in_flight > 0 && message->method.data != NULL)
            end_cancelled(session);
        http_answer_empty(http, 202, slice_of(NULL, 0));
    }
}

/* --- GET --- */

void http_session_get(struct http_exchange *http, struct slice last_event)
{
    struct http_session *session = http->session;
    struct http_stream *stream = session->general;
    uint32_t number = stream->written;

    if (last_event.data != NULL)
        stream = http_stream_named(session, last_event, &number);
    if (stream != NULL && http_stream_waits(stream)) { /* that connection was cut: it is paused */
        http_answer_end(stream->http);
        stream = http_stream_named(session, last_event, &number);
    }
    if (stream == NULL) {
        /* Official clients take this for the end of the stream, and any other status for an error:
         * a stream whose request was cancelled has no answer that would say so. */
        http_answer(http, 405, "text/plain", slice_of_text(NO_STREAM), slice_of(NULL, 0));
        return;
    }
    if (stream->over && number >= stream->events.last) {
        /* Official clients come back after an error, again and again: its answer was all of it. */
        http_answer_empty(http, 204, slice_of(NULL, 0));
        return;
    }
    http_exchange_owe(http);
    http_stream_resume(stream, http, number);
}

/* --- for their table --- */

void http_session_rest(struct http_session *session)
{
    struct http_hub *hub = session->hub;
    struct list_node *before;

    list_remove(&session->rest);
    if (!list_empty(&session->exchanges))
        return;
    before = hub->resting.head.prev;
    while (before != &hub->resting.head &&
           list_entry(before, struct http_session, rest)->used_ms > session->used_ms)
        before = before->prev;
    list_insert(before, &session->rest);
    if (hub->wanted)
        hub->bus->router.demand = true;
}

void http_session_run(struct http_session *session)
{
    if (!session->paused)
        run_held(session);
}

void http_session_init(struct http_session *session)
{
    session->endpoint.ops = &session_ops;
    list_init(&session->streams);
    list_init(&session->exchanges);
    list_init(&session->held);
    list_init(&session->lines);
}
