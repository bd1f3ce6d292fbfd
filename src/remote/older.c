#include "build_config.h"

#include "remote/older.h"

#include <stdio.h>

#include "base/error.h"

#define TRY_MS 2000

static void fail(struct call *call)
{
    call_fail(call, call->refusal);
}

static void too_late(void *user_data)
{
    fail(user_data);
}

static void older_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)response;
    if (exchange->kind != EXCHANGE_BODY_EVENTS)
        fail(call_of(exchange));
}

static void older_event(struct exchange *exchange, char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    fail(call_of(exchange));
}

static void older_endpoint(struct exchange *exchange)
{
    char text[CALL_REASON_MAX];

    snprintf(text, sizeof text,
             "http://%s%.128s: the server has only the older transport HTTP+SSE of 2024-11-05; "
             "--connect speaks Streamable HTTP: has the server a URL for that?",
             exchange->remote->options->url.authority, exchange->remote->path);
    call_fail(call_of(exchange), text);
}

static void older_ended(struct exchange *exchange, enum exchange_end end)
{
    (void)end;
    fail(call_of(exchange));
}

static const struct exchange_handler handler = {
    .head = older_head, .event = older_event, .endpoint = older_endpoint, .ended = older_ended};

bool older_try(struct call *call)
{
    struct stdio_bus_event_loop *loop = call->exchange.remote->loop;
    unsigned status = call->exchange.status;
    char reason[CALL_REASON_MAX];

    if (!call->begins || (status != 400 && status != 404 && status != 405))
        return false;
    call->refusal = call_copy(slice_of_text(call_reason(call, reason)));
    if (call->refusal == NULL)
        return false;
    call->exchange.handler = &handler;
    timer_init(&call->again, too_late, call);
    stdio_bus_event_loop_start_timer(loop, &call->again, TRY_MS);
    if (call_continue(call) != STDIO_BUS_OK)
        fail(call);
    return true;
}
