#include "build_config.h"

#include "topics/port.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "router/departure.h"
#include "router/waiting.h"

static struct rmp_port *port_of(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct rmp_port, endpoint);
}

/* --- messages of workers --- */

/* Publishes an event, or keeps it until the run was accepted (RMP 10). Returns why it is dropped,
 * or NULL. */
static const char *publish_payload(struct rmp_port *port, struct rmp_id run, struct slice payload)
{
    struct rmp_bridge *bridge = port->bridge;

    if (!rmp_answer_fits(bridge, payload.len))
        return "it is longer than a body may be (max_body)";
    switch (rmp_control_keep_event(&bridge->control, run, payload)) {
    case RMP_EVENT_NOW:
        rmp_answer_event(bridge, &port->peer, run, payload);
        break;
    case RMP_EVENT_KEPT:
        break;
    case RMP_EVENT_NO_ROOM:
        return "too much precedes the answer to run/submit";
    case RMP_EVENT_NO_MEMORY:
        return "out of memory";
    }
    return NULL;
}

static void publish_event(struct rmp_port *port, struct slice params)
{
    uint64_t epoch_ms = rmp_answer_time(port->bridge).epoch_ms;
    const char *problem = "out of memory";
    struct rmp_id run;
    size_t len;
    char *payload = bridge_event(params, epoch_ms, &run, &len, &problem);

    if (payload != NULL)
        problem = publish_payload(port, run, slice_of(payload, len));
    if (problem != NULL)
        log_warn(port->bridge->bus->log, port->endpoint.context,
                 "an event of a run was dropped: %s", problem);
    free(payload);
}

static void refuse(struct rmp_port *port, struct slice id)
{
    struct rmp_call *call = rmp_call_create(port, RMP_CALL_REFUSAL, slice_of(NULL, 0));

    if (call != NULL)
        bridge_put_refusal(&call->line, id);
    if (call != NULL && !call->line.failed) {
        rmp_port_wake(port);
        return;
    }
    log_warn(port->bridge->bus->log, port->endpoint.context,
             "out of memory: a question of a worker gets no answer");
    if (call != NULL)
        rmp_call_end(call);
}

/* Only the daemon's own errors come from no endpoint. What a request met there, it need not meet
 * again: a worker that has exited is restarted. */
static void note_own(struct bridge_message *message)
{
    message->retryable = message->code == JSONRPC_SERVER_ERROR;
}

static void take(struct rmp_port *port, struct slice json, bool own)
{
    struct bridge_message message;
    struct rmp_call *call;

    bridge_read(&message, json);
    switch (message.kind) {
    case BRIDGE_RESULT:
    case BRIDGE_ERROR:
        call = rmp_call_find(port, message.number);
        if (own)
            note_own(&message);
        if (call != NULL)
            rmp_call_answered(call, &message);
        break;
    case BRIDGE_EVENT:
        publish_event(port, message.value);
        break;
    case BRIDGE_QUESTION:
        refuse(port, message.id);
        break;
    case BRIDGE_OTHER:
        log_debug(port->bridge->bus->log, port->endpoint.context,
                  "a message of a worker means nothing to the topic bus");
        break;
    }
}

/* --- operations of the endpoint --- */

static int port_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct rmp_port *port = port_of(endpoint);
    size_t len = splice_len(delivery->bytes.len, delivery->edits, delivery->edit_count);
    char *edited;

    if (delivery->edit_count == 0) {
        take(port, delivery->bytes, delivery->from == NULL);
        return STDIO_BUS_OK;
    }
    edited = malloc(len);
    if (edited == NULL)
        return STDIO_BUS_ERR;
    splice_write(edited, delivery->bytes.data, 0, delivery->bytes.len, delivery->edits,
                 delivery->edit_count);
    take(port, slice_of(edited, len), delivery->from == NULL);
    free(edited);
    return STDIO_BUS_OK;
}

static void port_pause(struct endpoint *endpoint)
{
    port_of(endpoint)->paused = true;
}

static void port_resume(struct endpoint *endpoint)
{
    struct rmp_port *port = port_of(endpoint);

    port->paused = false;
    rmp_port_wake(port);
}

static void port_end(struct endpoint *endpoint)
{
    (void)endpoint;
}

/* No line of the bridge is so long. */
static void port_too_long(struct endpoint *endpoint, const struct message *message)
{
    (void)endpoint;
    (void)message;
}

static const struct endpoint_ops port_ops = {
    .deliver = port_deliver,
    .pause = port_pause,
    .resume = port_resume,
    .close = port_end,
    .watch_hangup = port_end,
    .too_long = port_too_long,
};

/* --- messages to workers --- */

/* The text is JSON of the daemon's own, and within all limits of the scanner but that of ids. */
static void offer_line(struct rmp_port *port, struct slice line)
{
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner;

    if (!message_scan(&scanner, line) ||
        message_from_scan(&message, line, &scanner.fields, &scratch) != MESSAGE_OK) {
        log_error(port->bridge->bus->log, port->endpoint.context, "the bridge made a bad message");
        return;
    }
    deliver_message(&port->endpoint, &message);
}

/* A trace is a session of each pool, so that its requests meet the same worker there. Nothing tells
 * when it ends: of those beyond half of max_sessions the oldest are forgotten. */
static void bound_sessions(struct rmp_port *port)
{
    struct router *router = &port->bridge->bus->router;
    struct peer *peer = &port->endpoint.peer;

    while (peer->held[PEER_SESSIONS] > 0 &&
           (peer->held[PEER_SESSIONS] >= router->limits->max_sessions / 2 ||
            sessions_full(&router->sessions)))
        session_remove(&router->sessions,
                       list_entry(peer->sessions.head.next, struct session, in_owner));
}

void rmp_port_offer(struct rmp_port *port)
{
    struct list_node *node;

    while (!port->paused && (node = list_take_first(&port->lines)) != NULL) {
        struct rmp_call *call = list_entry(node, struct rmp_call, link);
        bool is_refusal = call->kind == RMP_CALL_REFUSAL;
        struct json_text line = call->line;

        call->line = (struct json_text){.data = NULL};
        port->waiting--;
        bound_sessions(port);
        offer_line(port, json_text_slice(&line)); /* may end the call, unless it is held */
        if (port->paused) {
            call->line = line;
            list_prepend(&port->lines, &call->link);
            port->waiting++;
            return;
        }
        json_text_free(&line);
        if (is_refusal)
            rmp_call_end(call);
    }
}

/* --- deadlines --- */

/* The worker's answer will be late. */
static void abandon(struct rmp_call *call)
{
    struct stdio_bus *bus = call->port->bridge->bus;
    struct pending *pending = &bus->router.from_clients;
    char text[32];
    struct message_id id = {ID_STRING, {text, 0}};
    struct request *request;

    id.text.len = (size_t)snprintf(text, sizeof text, "rmp:%llu", (unsigned long long)call->number);
    request = pending_by_asker(pending, &call->port->endpoint.peer, id, pending_hash(pending, id));
    if (request == NULL)
        return;
    bus_read_clock(bus);
    waiting_abandon(&bus->router, request, OUTCOME_TIMED_OUT);
}

/* The router holds a line that is to go. */
static void leave_hold(struct rmp_port *port)
{
    struct stdio_bus *bus = port->bridge->bus;

    waiting_leave(&bus->router, &port->endpoint.peer);
    stdio_bus_event_loop_stop_timer(bus->loop, &port->endpoint.hold_timer);
    port_resume(&port->endpoint);
}

void rmp_port_refuse_held(struct rmp_port *port)
{
    if (port->paused)
        leave_hold(port);
}

static void expired(void *user_data)
{
    struct rmp_call *call = user_data;
    struct rmp_port *port = call->port;

    if (!list_linked(&call->link))
        abandon(call);
    else if (port->paused && port->lines.head.next == &call->link)
        leave_hold(port);
    rmp_call_failed(call, false, slice_of_text("timeout"));
}

void rmp_port_start_deadline(struct rmp_call *call, int64_t delay_ms)
{
    timer_init(&call->deadline, expired, call);
    stdio_bus_event_loop_start_timer(call->port->bridge->bus->loop, &call->deadline,
                                     delay_ms > 0 ? delay_ms : 0);
}

/* --- from its begin to its end --- */

void rmp_port_open(struct rmp_port *port)
{
    struct stdio_bus *bus = port->bridge->bus;
    struct endpoint *endpoint = &port->endpoint;
    size_t len;

    endpoint->ops = &port_ops;
    endpoint->bus = bus;
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    len = (size_t)snprintf(endpoint->context, sizeof endpoint->context, "rmp pool=");
    log_quote(endpoint->context + len, sizeof endpoint->context - len,
              port->pool != NULL ? port->pool->config->id : RMP_TOPIC_CONTROL);
    router_add_client(&bus->router, &endpoint->peer);
    /* The topic decides the pool, the trace its worker. */
    router_separate_sessions(&endpoint->peer);
    if (port->pool == NULL)
        return;
    router_open_pool(&endpoint->peer, &port->pool->group);
    port->pool->group.fallback = &endpoint->peer;
}

/* Workers that asked the port something need no reply any more. */
static void ignore_unanswered(void *user_data, const struct request *request)
{
    (void)user_data;
    (void)request;
}

void rmp_port_close(struct rmp_port *port)
{
    struct stdio_bus *bus = port->bridge->bus;

    while (port->calls.count > 0) {
        size_t at = 0;

        while (port->calls.slots[at].item == NULL)
            at++;
        rmp_call_end(port->calls.slots[at].item);
    }
    hash_table_free(&port->calls);
    if (port->pool != NULL)
        port->pool->group.fallback = NULL;
    bus_read_clock(bus);
    departure_client(&bus->router, &port->endpoint.peer, ignore_unanswered, bus);
    stdio_bus_event_loop_stop_timer(bus->loop, &port->endpoint.hold_timer);
    stdio_bus_event_loop_stop_timer(bus->loop, &port->work);
}
