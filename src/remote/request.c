#include "build_config.h"

#include "remote/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "remote/call.h"
#include "remote/login.h"
#include "remote/messages.h"
#include "remote/older.h"
#include "remote/program.h"
#include "remote/session.h"
#include "json/param_fields.h"

#define ATTEMPTS_MAX 6       /* to continue a stream, without an event in between */
#define SLOW_NOTICE_MS 10000 /* the program's next message waits no longer for the server */

static bool is_method(const struct message *message, const char *method)
{
    return message->method.data != NULL && slice_is(message->method, method);
}

/* --- requests --- */

static void request_head(struct exchange *exchange, const struct http_response_reader *response)
{
    struct call *call = call_of(exchange);
    struct slice location = http_response_field(response, "location");

    if (call->begins && exchange->status < 300)
        session_note(exchange->remote, response);
    if (exchange->status >= 300 && exchange->status < 400 && location.len > 0) {
        free(call->location);
        call->location = slice_copy(location);
    }
}

/* An answer to this request, or to another one whose own stream was cut. */
static void request_answer(struct call *call, const struct message *answer)
{
    struct remote *remote = call->exchange.remote;
    struct call *asker = message_id_equal(call->id, answer->id) ? call
                                                                : call_find(remote, answer->id);

    if (asker == NULL || asker->answered)
        return;
    if (asker->cancelled) {
        call->answered = true;
        return;
    }
    if (asker->begins)
        session_begin(remote, answer);
    program_send(remote, answer->bytes);
    asker->answered = true;
    if (asker != call)
        call_end(asker);
}

static void request_event(struct exchange *exchange, char *bytes, size_t len)
{
    struct call *call = call_of(exchange);
    const char *problem = session_take(call, slice_of(bytes, len), request_answer);

    call->attempts = 0;
    if (problem != NULL)
        log_warn(exchange->remote->log, "", "the server sent no message: %s", problem);
    if (call->answered)
        call_end(call);
}

/* --- streams that were cut --- */

static void continue_stream(void *user_data)
{
    struct call *call = user_data;

    if (call_continue(call) != STDIO_BUS_OK)
        call_fail(call, "out of memory");
}

/* Whether the rest of the stream may still come. */
static bool can_continue(const struct call *call, enum exchange_end end)
{
    const struct exchange *exchange = &call->exchange;
    bool has_stream = exchange->events.id[0] != '\0' && !call->is_stateless;

    if (!has_stream || call->cancelled || call->attempts >= ATTEMPTS_MAX ||
        (call->session != 0 && call->session != exchange->remote->session.number))
        return false;
    switch (end) {
    case EXCHANGE_COMPLETE:
    case EXCHANGE_CUT:
        return exchange->kind == EXCHANGE_BODY_EVENTS;
    case EXCHANGE_FAILED:
        return true;
    case EXCHANGE_REFUSED:
        return exchange->status >= 500 || exchange->status == 429;
    default:
        return false;
    }
}

/* --- refusals --- */

/* Takes the error of the server: with the request's id, or with none. */
static void refused_answer(struct call *call, const struct message *answer)
{
    if (call->answered || !messages_is_error(answer))
        return;
    if (message_id_equal(answer->id, call->id))
        program_send(call->exchange.remote, answer->bytes);
    else if (answer->id.type == ID_NONE)
        program_send_refusal(call->exchange.remote, answer, call->id);
    else
        return;
    call->answered = true;
}

/* A redirect within the server, as of /mcp to /mcp/, is followed from then on. */
static bool follow(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    const struct remote_url *url = &remote->options->url;
    unsigned status = call->exchange.status;
    struct remote_url to = *url;
    const char *location = call->location;

    if ((status != 307 && status != 308) || location == NULL || call->was_moved ||
        call->bytes == NULL || !fields_is_plain(slice_of_text(location)))
        return false;
    if (location[0] == '/' && location[1] != '/') {
        if (strlen(location) > URL_PATH_MAX)
            return false;
        snprintf(to.path, sizeof to.path, "%s", location);
    } else if (url_read(&to, location) != NULL || !url_is_same(&to, url)) {
        return false;
    }
    memcpy(remote->path, to.path, sizeof remote->path);
    call->was_moved = true;
    return call_post(call) == STDIO_BUS_OK;
}

static void note_no_id(struct call *call, const struct message *answer)
{
    call->lost_session = answer->id.type == ID_NONE && messages_is_error(answer);
}

/* A server that has forgotten a session says 404; many programs say 400 with an error without an
 * id. */
static bool session_is_gone(struct call *call)
{
    const struct exchange *exchange = &call->exchange;

    call->lost_session = exchange->status == 404;
    if (call->session != 0 && exchange->status == 400 && exchange->is_json)
        session_take_refusal(call, note_no_id);
    return call->lost_session;
}

static void request_refused(struct call *call)
{
    struct exchange *exchange = &call->exchange;
    char reason[CALL_REASON_MAX];
    bool was_continued = strcmp(exchange->method, "GET") == 0;

    if (call->cancelled) {
        call_end(call);
        return;
    }
    if (follow(call))
        return;
    if (!was_continued && session_is_gone(call) && session_renew(call))
        return;
    if (exchange->is_json)
        session_take_refusal(call, refused_answer);
    if (call->answered)
        call_end(call);
    else if (!older_try(call) && !login_try(call))
        call_fail(call, call_reason(call, reason));
}

static void request_ended(struct exchange *exchange, enum exchange_end end)
{
    struct call *call = call_of(exchange);
    const char *problem = NULL;
    char reason[CALL_REASON_MAX];

    if (can_continue(call, end)) {
        if (end != EXCHANGE_COMPLETE)
            log_warn(exchange->remote->log, "",
                     "the stream of a request broke, and will be "
                     "continued: %s",
                     call_reason(call, reason));
        stdio_bus_event_loop_start_timer(exchange->remote->loop, &call->again,
                                         session_retry_ms(call));
        call->attempts++;
        return;
    }
    if (end == EXCHANGE_REFUSED) {
        request_refused(call);
        return;
    }
    if (end == EXCHANGE_COMPLETE && exchange->remote->older != NULL && !call->answered &&
        !call->cancelled)
        return; /* the answer comes on the stream */
    if (end == EXCHANGE_COMPLETE && exchange->is_json)
        problem = session_take(call, slice_of(exchange->text, exchange->text_len), request_answer);
    if (call->answered || call->cancelled) {
        call_end(call);
        return;
    }
    if (end == EXCHANGE_COMPLETE)
        snprintf(exchange->reason, sizeof exchange->reason,
                 "the server's response has no answer to the request%s%s",
                 problem != NULL ? ": " : "", problem != NULL ? problem : "");
    call_fail(call, call_reason(call, reason));
}

static const struct exchange_handler request_handler = {
    .head = request_head, .event = request_event, .ended = request_ended};

/* --- notifications and answers --- */

static void notice_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)response;
    if (exchange->kind == EXCHANGE_BODY_EVENTS)
        exchange->kind = EXCHANGE_BODY_NONE;
}

static void notice_event(struct exchange *exchange, char *bytes, size_t len)
{
    (void)exchange;
    (void)bytes;
    (void)len;
}

static void notice_ended(struct exchange *exchange, enum exchange_end end)
{
    struct call *call = call_of(exchange);
    struct remote *remote = exchange->remote;
    char reason[CALL_REASON_MAX];

    if (end == EXCHANGE_REFUSED && follow(call))
        return;
    if (end != EXCHANGE_COMPLETE)
        log_warn(remote->log, "", "a message was not taken: %s", call_reason(call, reason));
    else if (call->is_initialized)
        session_listen(remote);
    call_end(call);
}

static const struct exchange_handler notice_handler = {
    .head = notice_head, .event = notice_event, .ended = notice_ended};

/* The server is slow: what follows need not wait. */
static void notice_is_slow(void *user_data)
{
    struct call *call = user_data;

    call->holds = false;
    remote_release(call->exchange.remote);
}

/* --- the messages of the program --- */

static void set_id(struct call *call, struct message_id id)
{
    memcpy(call->id_text, id.text.data, id.text.len);
    call->id = (struct message_id){id.type, slice_of(call->id_text, id.text.len)};
}

static bool set_stateless(struct call *call, const struct message *message,
                          const struct param_fields *found)
{
    char text[EXCHANGE_FIELDS_MAX] = "";
    struct json_output out = {.to = text, .size = sizeof text};

    call->is_stateless = true;
    if (fields_write(&out, message, found))
        call->own_fields = slice_copy(slice_of(text, out.len));
    return call->own_fields != NULL;
}

static void take_request(struct remote *remote, const struct message *message,
                         const struct param_fields *found)
{
    struct call *call;

    if (call_find(remote, message->id) != NULL) {
        program_send_error(remote, message->id, JSONRPC_INVALID_REQUEST,
                           "a request with this id is in flight");
        return;
    }
    if (remote->request_count >= REQUESTS_MAX) {
        program_send_error(remote, message->id, JSONRPC_SERVER_ERROR,
                           "100 requests are in flight, which is the limit");
        return;
    }
    call = call_create(remote, CALL_REQUEST, &request_handler, message->bytes);
    if (call == NULL) {
        log_error(remote->log, "", "out of memory: a request is refused");
        program_send_error(remote, message->id, JSONRPC_SERVER_ERROR, "out of memory");
        return;
    }
    timer_init(&call->again, continue_stream, call);
    set_id(call, message->id);
    call->stays_open = is_method(message, "subscriptions/listen");
    call->begins = is_method(message, "initialize");
    if (call->begins) {
        session_keep(remote, message->bytes);
        call->holds = true;
        remote_hold(remote);
    } else if (param_fields_has(found, PARAM_VERSION) && !set_stateless(call, message, found)) {
        call_fail(call, "out of memory");
        return;
    }
    if (call_post(call) != STDIO_BUS_OK)
        call_fail(call, "out of memory");
}

/* Gives up the request that the notification cancels. True: the server need not be told. Where the
 * request is of the stateless era, or has not reached the server, its end is the cancellation. */
static bool cancels_here(struct remote *remote, const struct message *message,
                         const struct param_fields *found)
{
    struct message_id id = {.type = ID_NONE};
    struct message_scratch scratch;
    struct call *call;

    if (!is_method(message, "notifications/cancelled") ||
        !param_fields_has(found, PARAM_REQUEST_ID) ||
        message_read_id(&id, message->bytes, &found->at[PARAM_REQUEST_ID], &scratch) != MESSAGE_OK)
        return false;
    call = call_find(remote, id);
    if (call == NULL)
        return !remote->session.begun;
    if (!call->is_stateless && !list_linked(&call->waiting)) {
        call_cancel(call);
        return false;
    }
    call_end(call);
    return true;
}

static void take_notice(struct remote *remote, const struct message *message,
                        const struct param_fields *found)
{
    struct call *call;

    if (cancels_here(remote, message, found))
        return;
    call = call_create(remote, CALL_NOTICE, &notice_handler, message->bytes);
    if (call == NULL) {
        log_error(remote->log, "", "out of memory: a message of the program was lost");
        return;
    }
    timer_init(&call->again, notice_is_slow, call);
    call->is_initialized = is_method(message, "notifications/initialized");
    call->holds = true;
    remote_hold(remote);
    if (param_fields_has(found, PARAM_VERSION) && !set_stateless(call, message, found))
        log_error(remote->log, "", "out of memory: a message has no fields of its own");
    stdio_bus_event_loop_start_timer(remote->loop, &call->again, SLOW_NOTICE_MS);
    if (call_post(call) != STDIO_BUS_OK)
        call_fail(call, "out of memory: a message of the program was lost");
}

void request_take(struct remote *remote, const struct message *message)
{
    struct param_fields found;

    param_fields_find(&found, message->bytes, 0);
    if (message->id.type != ID_NONE && !message_is_response(message))
        take_request(remote, message, &found);
    else
        take_notice(remote, message, &found);
}

void requests_stop_open(struct remote *remote)
{
    struct list_node *node, *following;

    list_each(&remote->calls, node, following) {
        struct call *call = list_entry(node, struct call, node);

        if (call->stays_open)
            call_end(call);
    }
}
