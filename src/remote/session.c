#include "build_config.h"

#include "remote/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "remote/messages.h"
#include "remote/program.h"
#include "json/param_fields.h"

#define RETRY_MIN_MS 100 /* though the server asks for less */
#define RETRY_MS 500     /* doubled with each failure, */
#define RETRY_MAX_MS 30000

static const char initialized[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";

/* --- what the server sends --- */

struct taking {
    struct call *call;
    session_answer_fn *fn;
    bool answers_only;
};

static void take_message(void *user, const struct message *message)
{
    struct taking *taking = user;

    if (message_is_response(message))
        taking->fn(taking->call, message);
    else if (message->method.data != NULL && !taking->answers_only)
        program_send(taking->call->exchange.remote, message->bytes);
}

const char *session_take(struct call *call, struct slice text, session_answer_fn *fn)
{
    struct taking taking = {call, fn, false};

    return messages_read(text, take_message, &taking);
}

void session_take_refusal(struct call *call, session_answer_fn *fn)
{
    struct taking taking = {call, fn, true};

    messages_read(slice_of(call->exchange.text, call->exchange.text_len), take_message, &taking);
}

int64_t session_retry_ms(const struct call *call)
{
    int64_t wanted = call->exchange.events.retry_ms, delay = RETRY_MS;

    if (wanted > 0 && wanted < RETRY_MIN_MS)
        wanted = RETRY_MIN_MS;
    for (unsigned i = 0; i < call->attempts && delay < RETRY_MAX_MS; i++)
        delay *= 2;
    if (delay > RETRY_MAX_MS)
        delay = RETRY_MAX_MS;
    return call->attempts == 0 && wanted > 0 ? wanted : wanted > delay ? wanted : delay;
}

/* --- the beginning --- */

void session_keep(struct remote *remote, struct slice initialize)
{
    struct remote_session *session = &remote->session;

    free(session->initialize);
    session->initialize_len = 0;
    session->initialize = malloc(initialize.len);
    if (session->initialize == NULL) {
        log_error(remote->log, "", "out of memory: there will be no new session");
        return;
    }
    memcpy(session->initialize, initialize.data, initialize.len);
    session->initialize_len = initialize.len;
}

void session_note(struct remote *remote, const struct http_response_reader *response)
{
    struct slice id = http_response_field(response, "mcp-session-id");
    char *to = remote->session.offered;

    if (!fields_is_plain(id) || id.len > REMOTE_SESSION_MAX) {
        if (id.len > 0)
            log_warn(remote->log, "",
                     "the server's Mcp-Session-Id is not used: it is too long, or "
                     "not of visible ASCII");
        id.len = 0;
    }
    if (id.len > 0)
        memcpy(to, id.data, id.len);
    to[id.len] = '\0';
}

static bool version_of(const struct message *answer, char version[REMOTE_VERSION_MAX + 1])
{
    struct param_fields found;
    struct slice text;
    char decoded[REMOTE_VERSION_MAX];

    param_fields_find(&found, answer->bytes, 0);
    if (!param_fields_string(&found, RESULT_VERSION, answer->bytes, decoded, sizeof decoded,
                             &text) ||
        !fields_is_plain(text))
        return false;
    memcpy(version, text.data, text.len);
    version[text.len] = '\0';
    return true;
}

void session_begin(struct remote *remote, const struct message *answer)
{
    struct remote_session *session = &remote->session;

    if (!answer->has_result || !version_of(answer, session->version))
        return;
    memcpy(session->id, session->offered, sizeof session->id);
    session->begun = true;
    session->no_stream = session->has_listened = false;
    session->number++;
    if (session->listener != NULL)
        call_end(session->listener);
}

/* --- the stream of what belongs to no request --- */

static void listen_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)response;
    if (exchange->status == 200 && exchange->kind == EXCHANGE_BODY_EVENTS)
        exchange->remote->session.has_listened = true;
}

/* An answer on this stream: of a request whose own stream was cut. */
static void late_answer(struct call *call, const struct message *answer)
{
    struct call *asker = call_find(call->exchange.remote, answer->id);

    if (asker == NULL)
        return;
    program_send(call->exchange.remote, answer->bytes);
    asker->answered = true;
    call_end(asker);
}

static void listen_event(struct exchange *exchange, char *bytes, size_t len)
{
    struct call *call = call_of(exchange);
    const char *problem = session_take(call, slice_of(bytes, len), late_answer);

    call->attempts = 0;
    if (problem != NULL)
        log_warn(exchange->remote->log, "", "the server sent no message: %s", problem);
}

static void listen_again(void *user_data)
{
    struct call *call = user_data;

    if (call_continue(call) != STDIO_BUS_OK)
        stdio_bus_event_loop_start_timer(call->exchange.remote->loop, &call->again, RETRY_MAX_MS);
}

static void listen_ended(struct exchange *exchange, enum exchange_end end)
{
    struct call *call = call_of(exchange);
    struct remote *remote = exchange->remote;
    char reason[CALL_REASON_MAX];
    bool refused = end == EXCHANGE_REFUSED && exchange->status < 500 && exchange->status != 429;

    if (end == EXCHANGE_COMPLETE && exchange->kind != EXCHANGE_BODY_EVENTS)
        refused = true;
    if (refused && exchange->status == 404 && remote->session.has_listened && session_renew(call))
        return;
    if (refused) {
        remote->session.no_stream = true;
        if (exchange->status != 405)
            log_warn(remote->log, "", "no stream of the server: %s", call_reason(call, reason));
        call_end(call);
        return;
    }
    if (end != EXCHANGE_COMPLETE)
        log_warn(remote->log, "", "the stream of the server broke, and will be opened again: %s",
                 call_reason(call, reason));
    stdio_bus_event_loop_start_timer(remote->loop, &call->again, session_retry_ms(call));
    call->attempts++;
}

static const struct exchange_handler listen_handler = {
    .head = listen_head, .event = listen_event, .ended = listen_ended};

void session_listen(struct remote *remote)
{
    struct remote_session *session = &remote->session;
    struct call *call;

    if (remote->older != NULL || session->listener != NULL || session->no_stream ||
        remote->phase != REMOTE_PHASE_SERVING)
        return;
    call = call_create(remote, CALL_OWN, &listen_handler, slice_of(NULL, 0));
    if (call == NULL) {
        log_error(remote->log, "", "out of memory: no stream of the server");
        return;
    }
    timer_init(&call->again, listen_again, call);
    session->listener = call;
    if (call_continue(call) != STDIO_BUS_OK)
        call_fail(call, "out of memory: no stream of the server");
}

/* --- a new session --- */

/* The session is renewed, or not: then with the reason. */
static void end_renewal(struct remote *remote, const char *reason)
{
    struct remote_session *session = &remote->session;
    struct list_node *node;

    session->renewing = false;
    while ((node = list_take_first(&session->waiting)) != NULL) {
        struct call *call = list_entry(node, struct call, waiting);

        if (reason != NULL)
            call_fail(call, reason);
        else if (call->bytes == NULL)
            call_fail(call, "the server's session ended, and there is a new one: try again");
        else if (call_post(call) != STDIO_BUS_OK)
            call_fail(call, "out of memory");
    }
    if (reason == NULL)
        session_listen(remote);
}

static void no_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)exchange;
    (void)response;
}

static void no_event(struct exchange *exchange, char *bytes, size_t len)
{
    (void)exchange;
    (void)bytes;
    (void)len;
}

/* notifications/initialized was taken, or refused. */
static void renewed(struct exchange *exchange, enum exchange_end end)
{
    struct remote *remote = exchange->remote;
    char reason[CALL_REASON_MAX];
    struct call *call = call_of(exchange);
    bool good = end == EXCHANGE_COMPLETE || end == EXCHANGE_CUT;

    call_reason(call, reason);
    end_renewal(remote, good ? NULL : reason);
    call_end(call);
}

static const struct exchange_handler renewed_handler = {
    .head = no_head, .event = no_event, .ended = renewed};

static void confirm(struct remote *remote)
{
    struct call *call = call_create(remote, CALL_OWN, &renewed_handler,
                                    slice_of(initialized, sizeof initialized - 1));

    if (call == NULL) {
        end_renewal(remote, "out of memory");
        return;
    }
    call->holds = true;
    remote_hold(remote);
    if (call_post(call) == STDIO_BUS_OK)
        return;
    end_renewal(remote, "out of memory");
    call_end(call);
}

static void renewal_head(struct exchange *exchange, const struct http_response_reader *response)
{
    session_note(exchange->remote, response);
}

/* The program knows the server by the first answer: another version would be another server. */
static void renewal_answer(struct call *call, const struct message *answer)
{
    struct remote *remote = call->exchange.remote;
    char version[REMOTE_VERSION_MAX + 1];

    if (call->answered)
        return;
    call->answered = true;
    if (!answer->has_result || !version_of(answer, version)) {
        end_renewal(remote, "the server's session ended, and it refuses a new one");
    } else if (strcmp(version, remote->session.version) != 0) {
        end_renewal(remote, "the server's session ended, and a new one has another protocol "
                            "version: start again");
    } else {
        session_begin(remote, answer);
        log_warn(remote->log, "", "the server's session ended: there is a new one");
        confirm(remote);
    }
}

static void renewal_event(struct exchange *exchange, char *bytes, size_t len)
{
    struct call *call = call_of(exchange);

    session_take(call, slice_of(bytes, len), renewal_answer);
    if (call->answered)
        call_end(call);
}

static void renewal_ended(struct exchange *exchange, enum exchange_end end)
{
    struct call *call = call_of(exchange);
    struct remote *remote = exchange->remote;
    char reason[CALL_REASON_MAX];

    if (end == EXCHANGE_COMPLETE && exchange->kind == EXCHANGE_BODY_TEXT)
        session_take(call, slice_of(exchange->text, exchange->text_len), renewal_answer);
    if (!call->answered)
        end_renewal(remote, call_reason(call, reason));
    call_end(call);
}

static const struct exchange_handler renewal_handler = {
    .head = renewal_head, .event = renewal_event, .ended = renewal_ended};

static bool start_renewal(struct remote *remote)
{
    struct remote_session *session = &remote->session;
    struct call *call = call_create(remote, CALL_OWN, &renewal_handler,
                                    slice_of(session->initialize, session->initialize_len));

    if (call == NULL)
        return false;
    call->begins = call->holds = true;
    remote_hold(remote);
    if (call_post(call) != STDIO_BUS_OK) {
        call_end(call);
        return false;
    }
    session->renewing = true;
    return true;
}

bool session_renew(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    struct remote_session *session = &remote->session;
    bool is_old = call->session != session->number;

    if (call->session == 0 || session->id[0] == '\0' || session->initialize_len == 0 ||
        call->was_renewed)
        return false;
    if (call->bytes == NULL && call->kind == CALL_NOTICE)
        return false;
    call->was_renewed = true;
    if (is_old && !session->renewing && call->bytes != NULL)
        return call_post(call) == STDIO_BUS_OK;
    if (!session->renewing && !start_renewal(remote))
        return false;
    if (session->listener == call)
        call_end(call); /* the new session gets a new one */
    else
        list_append(&session->waiting, &call->waiting);
    return true;
}

/* --- the end --- */

static void parted(struct exchange *exchange, enum exchange_end end)
{
    struct call *call = call_of(exchange);
    char reason[CALL_REASON_MAX];

    if (end == EXCHANGE_FAILED)
        log_warn(exchange->remote->log, "", "the server is not told of the session's end: %s",
                 call_reason(call, reason));
    exchange->remote->phase = REMOTE_PHASE_FLUSHING;
    call_end(call);
}

static const struct exchange_handler part_handler = {
    .head = no_head, .event = no_event, .ended = parted};

void session_part(struct remote *remote)
{
    struct remote_session *session = &remote->session;
    struct call *call;

    remote->phase = REMOTE_PHASE_FLUSHING;
    if (session->listener != NULL)
        call_end(session->listener);
    if (!session->begun || session->id[0] == '\0')
        return;
    call = call_create(remote, CALL_OWN, &part_handler, slice_of(NULL, 0));
    if (call != NULL && call_delete(call) == STDIO_BUS_OK) {
        remote->phase = REMOTE_PHASE_PARTING;
        return;
    }
    log_error(remote->log, "", "out of memory: the server is not told of the session's end");
    if (call != NULL)
        call_end(call);
}
