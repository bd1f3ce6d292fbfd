#include "build_config.h"

#include "remote/older.h"

#include <stdio.h>

#include "base/error.h"
#include "remote/call.h"
#include "remote/messages.h"
#include "remote/program.h"
#include "remote/session.h"

#define TRY_MS 2000 /* for the first event */

/* --- the server has no such transport --- */

/* The call of initialize, which waits for the endpoint; NULL: it was cancelled. */
static struct call *asker_of(const struct remote *remote)
{
    struct list_node *node;

    for (node = remote->calls.head.next; node != &remote->calls.head; node = node->next) {
        struct call *call = list_entry(node, struct call, node);

        if (call->begins && call->refusal != NULL)
            return call;
    }
    return NULL;
}

static void give_up(struct call *stream, const char *reason)
{
    struct call *asker = asker_of(stream->exchange.remote);

    call_end(stream);
    if (asker != NULL)
        call_fail(asker, reason != NULL ? reason : asker->refusal);
}

static void too_late(void *user_data)
{
    give_up(user_data, NULL);
}

/* --- the endpoint --- */

/* Resolves the data of the event: a path, or a URL of the same server, which alone may have what
 * the user adds to each request. False: it is neither. */
static bool read_endpoint(char path[URL_PATH_MAX + 1], const struct remote *remote,
                          struct slice data)
{
    char text[URL_PATH_MAX + 1];
    struct remote_url to;
    const char *slash;

    if (!fields_is_plain(data) || data.len > URL_PATH_MAX)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)data.len, data.data);
    if (url_is(text) && strchr("/?", text[0]) == NULL) {
        if (url_read(&to, text) != NULL || !url_is_same(&to, &remote->options->url))
            return false;
        memcpy(path, to.path, URL_PATH_MAX + 1);
        return true;
    }
    if (text[0] == '/') {
        memcpy(path, text, sizeof text);
        return text[1] != '/';
    }
    memcpy(path, remote->path, URL_PATH_MAX + 1);
    path[strcspn(path, "?")] = '\0';
    slash = strrchr(path, '/'); /* a path begins with one */
    return snprintf(path + (slash - path) + 1, URL_PATH_MAX - (size_t)(slash - path), "%s", text) <
           (int)(URL_PATH_MAX - (size_t)(slash - path));
}

static void stream_endpoint(struct exchange *exchange)
{
    struct call *stream = call_of(exchange), *asker;
    struct remote *remote = exchange->remote;
    char path[URL_PATH_MAX + 1];

    if (remote->older != NULL)
        return;
    if (!read_endpoint(path, remote, slice_of(exchange->events.data, exchange->events.len))) {
        give_up(stream, "the server's endpoint of HTTP+SSE is not at the same host and port");
        return;
    }
    stdio_bus_event_loop_stop_timer(remote->loop, &stream->again);
    memcpy(remote->path, path, sizeof remote->path);
    remote->older = stream;
    asker = asker_of(remote);
    if (asker != NULL && asker->bytes == NULL)
        call_fail(asker, "initialize is too long to be sent again");
    else if (asker != NULL && call_post(asker) != STDIO_BUS_OK)
        call_fail(asker, "out of memory");
}

/* --- the stream --- */

static void stream_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)response;
    if (exchange->kind != EXCHANGE_BODY_EVENTS)
        give_up(call_of(exchange), NULL);
}

static void take_answer(struct call *stream, const struct message *answer)
{
    struct remote *remote = stream->exchange.remote;
    struct call *asker = call_find(remote, answer->id);

    if (asker == NULL)
        return;
    if (asker->begins)
        session_begin(remote, answer);
    program_send(remote, answer->bytes);
    asker->answered = true;
    call_end(asker);
}

/* The end of the stream is that of the session, and of this process: whoever supervises it begins
 * a new one, as after the end of any server. */
static void lose(struct call *stream, const char *reason)
{
    struct remote *remote = stream->exchange.remote;
    struct list_node *node, *following;

    log_error(remote->log, "", "%s", reason);
    list_each(&remote->calls, node, following) {
        struct call *call = list_entry(node, struct call, node);

        if (call->kind == CALL_REQUEST)
            call_fail(call, reason);
    }
    remote->is_lost = true;
    call_end(stream);
}

static void stream_event(struct exchange *exchange, char *bytes, size_t len)
{
    struct remote *remote = exchange->remote;
    const char *problem;

    if (remote->older == NULL) {
        give_up(call_of(exchange), NULL);
        return;
    }
    problem = session_take(call_of(exchange), slice_of(bytes, len), take_answer);
    if (problem != NULL && strcmp(problem, MESSAGES_NO_MEMORY) == 0)
        lose(call_of(exchange), "out of memory: a message of the server was lost");
    else if (problem != NULL)
        log_warn(remote->log, "", "the server sent no message: %s", problem);
}

static void stream_ended(struct exchange *exchange, enum exchange_end end)
{
    struct call *stream = call_of(exchange);
    char reason[CALL_REASON_MAX];

    if (exchange->remote->older == NULL) {
        if (end != EXCHANGE_COMPLETE && end != EXCHANGE_REFUSED)
            log_warn(exchange->remote->log, "", "no stream of HTTP+SSE: %s",
                     call_reason(stream, reason));
        give_up(stream, NULL);
        return;
    }
    if (end == EXCHANGE_COMPLETE)
        snprintf(exchange->reason, sizeof exchange->reason, "the server ended its stream");
    lose(stream, call_reason(stream, reason));
}

static const struct exchange_handler stream_handler = {
    .head = stream_head, .event = stream_event, .endpoint = stream_endpoint, .ended = stream_ended};

bool older_try(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    unsigned status = call->exchange.status;
    char reason[CALL_REASON_MAX];
    struct call *stream;

    if (!call->begins || remote->older != NULL || call->refusal != NULL ||
        (status != 400 && status != 404 && status != 405))
        return false;
    call->refusal = slice_copy(slice_of_text(call_reason(call, reason)));
    stream = call_create(remote, CALL_OWN, &stream_handler, slice_of(NULL, 0));
    if (call->refusal == NULL || stream == NULL) {
        log_error(remote->log, "", "out of memory: HTTP+SSE is not tried");
        if (stream != NULL)
            call_end(stream);
        return false;
    }
    timer_init(&stream->again, too_late, stream);
    stdio_bus_event_loop_start_timer(remote->loop, &stream->again, TRY_MS);
    if (call_continue(stream) != STDIO_BUS_OK)
        give_up(stream, "out of memory");
    return true;
}
