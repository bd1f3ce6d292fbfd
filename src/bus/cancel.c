#include "build_config.h"

#include "bus/cancel.h"

#include "base/error.h"
#include "bus/deliver.h"
#include "router/deadlines.h"
#include "router/waiting.h"

/* How a request is cancelled: what stands before and after its id. */
static const struct cancel {
    const char *before, *after;
} cancels[] = {
    [PROTOCOL_MCP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                      "\"params\":{\"requestId\":",
                      "}}\n"},
    [PROTOCOL_ACP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\","
                      "\"params\":{\"requestId\":",
                      "}}\n"},
    [PROTOCOL_LSP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":",
                      "}}\n"},
};

/* Whether the request is a turn in a session that is its client's. */
static bool is_turn(const struct stdio_bus *bus, const struct request *request)
{
    const struct peer *worker = request->answerer;
    char buffer[SESSIONS_KEY_MAX];
    const struct session *session;
    struct slice key;

    if (request->extras == NULL || request->extras->kind != EXTRAS_PROMPTS)
        return false;
    key = request->extras->names;
    if (worker->pool->mode.clients != CLIENTS_SHARED)
        key = sessions_scoped_key(buffer, worker, key);
    else
        key = sessions_client_key(buffer, request->asker, key);
    session = sessions_find(&bus->router.sessions, key);
    return session != NULL && session->worker == worker && session->owner == request->asker;
}

/* ACP: every agent knows how to cancel a turn, not every one how to cancel a request. */
static const struct cancel cancel_of_turn = {
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":", "}}\n"};

static void send_cancel(struct stdio_bus *bus, struct peer *worker, const struct cancel *cancel,
                        struct message_id id)
{
    struct endpoint *to = endpoint_of_peer(worker);
    char line[MESSAGE_ERROR_MAX];
    size_t len;

    if (worker->pool->mode.protocol == PROTOCOL_UNKNOWN || bus->options.config->strict)
        return;
    len = message_write_around(line, sizeof line, cancel->before, id, cancel->after);
    if (deliver_line(to, slice_of(line, len)) != STDIO_BUS_OK)
        log_error(bus->log, to->context, "out of memory: a cancellation was lost");
}

static void cancel_turn(struct stdio_bus *bus, struct peer *worker, struct slice session)
{
    send_cancel(bus, worker, &cancel_of_turn, (struct message_id){ID_STRING, session});
}

static void cancel(struct stdio_bus *bus, const struct request *request)
{
    enum pool_protocol protocol = request->answerer->pool->mode.protocol;

    if (protocol == PROTOCOL_ACP && is_turn(bus, request))
        cancel_turn(bus, request->answerer, request->extras->names);
    else
        send_cancel(bus, request->answerer, &cancels[protocol], request->answerer_id);
}

/* Those whose prompts were answered, but that may continue. */
static void cancel_turns_of(struct stdio_bus *bus, struct peer *client)
{
    struct list_node *node, *following;

    list_each(&client->sessions, node, following) {
        const struct session *session = list_entry(node, struct session, in_owner);

        if (session->goes_on && session->worker->pool->mode.protocol == PROTOCOL_ACP)
            cancel_turn(bus, session->worker, session_id(session));
    }
}

void cancel_requests_of(struct stdio_bus *bus, struct peer *client)
{
    struct list_node *node, *following;

    list_each(&client->asked, node, following) {
        const struct request *request = list_entry(node, struct request, in_asker);

        if (request->answerer->pool->mode.clients != CLIENTS_EXCLUSIVE)
            cancel(bus, request);
    }
    cancel_turns_of(bus, client);
}

void cancel_subscriptions_of(struct stdio_bus *bus, struct peer *client)
{
    struct list_node *node, *following;

    bus_read_clock(bus);
    list_each(&client->asked, node, following) {
        struct request *request = list_entry(node, struct request, in_asker);

        if (request->extras == NULL || request->extras->kind != EXTRAS_SUBSCRIBES)
            continue;
        cancel(bus, request);
        waiting_abandon(&bus->router, request, OUTCOME_CANCELLED);
    }
}

void cancel_plan(struct stdio_bus *bus)
{
    int64_t next_ms = deadlines_next(&bus->router);

    bus->router.abandoned = false;
    if (next_ms < 0)
        stdio_bus_event_loop_stop_timer(bus->loop, &bus->requests);
    if (next_ms < 0 || (timer_started(&bus->requests) && next_ms >= bus->requests_due_ms))
        return;
    bus->requests_due_ms = next_ms;
    timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->requests, next_ms);
}

/* Its client gets an error in place of the answer. */
static void request_expired(void *user_data, struct request *request)
{
    struct stdio_bus *bus = user_data;
    struct endpoint *to = endpoint_of_peer(request->asker);

    log_warn(bus->log, to->context, "its request timed out at %s",
             endpoint_of_peer(request->answerer)->context);
    deliver_error(to, request->asker_id, JSONRPC_TIMED_OUT, "request timed out");
    cancel(bus, request);
}

void cancel_expired(void *user_data)
{
    struct stdio_bus *bus = user_data;
    size_t freed;

    bus_read_clock(bus);
    deadlines_expire(&bus->router, request_expired, bus);
    freed = deadlines_free_abandoned(&bus->router);
    if (freed > 0)
        log_warn(bus->log, "",
                 "%zu request(s) that were given up are forgotten: no answer in abandoned_id_sec",
                 freed);
    bus->router.abandoned = true; /* the next deadline is to be planned */
}

void cancel_time_over(struct stdio_bus *bus, struct peer *client)
{
    struct list_node *node, *following;

    bus_read_clock(bus);
    list_each(&client->asked, node, following) {
        struct request *request = list_entry(node, struct request, in_asker);

        request_expired(bus, request);
        waiting_abandon(&bus->router, request, OUTCOME_TIMED_OUT);
    }
}
