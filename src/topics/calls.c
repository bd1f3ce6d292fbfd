#include "build_config.h"

#include "topics/calls.h"

#include <stdlib.h>

#include "base/error.h"

static bool has_number(const void *item, const void *key)
{
    return ((const struct rmp_call *)item)->number == *(const uint64_t *)key;
}

/* Numbers count up: their high bits are the same, so they are spread. */
static uint64_t hash_of(uint64_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

int rmp_port_keep(struct rmp_port *port, const struct rmp_header *header, uint32_t user,
                  struct slice body, bool is_control)
{
    struct rmp_asking *frame = malloc(sizeof *frame + body.len);

    if (frame == NULL)
        return STDIO_BUS_ERR;
    *frame = (struct rmp_asking){
        .is_control = is_control, .user = user, .header = *header, .body_len = body.len};
    if (body.len > 0)
        memcpy(frame->body, body.data, body.len);
    list_append(&port->frames, &frame->link);
    port->waiting++;
    return STDIO_BUS_OK;
}

struct rmp_call *rmp_call_create(struct rmp_port *port, enum rmp_call_kind kind,
                                 struct slice reply_topic)
{
    return rmp_call_numbered(port, kind, ++port->bridge->last_call, reply_topic);
}

struct rmp_call *rmp_call_numbered(struct rmp_port *port, enum rmp_call_kind kind, uint64_t number,
                                   struct slice reply_topic)
{
    struct rmp_call *call = calloc(1, sizeof *call + reply_topic.len);

    if (call == NULL)
        return NULL;
    call->port = port;
    call->kind = kind;
    call->number = number;
    if (reply_topic.len > 0)
        memcpy(call->text, reply_topic.data, reply_topic.len);
    call->reply_topic = slice_of(call->text, reply_topic.len);
    if (hash_table_insert(&port->calls, hash_of(call->number), call) != STDIO_BUS_OK) {
        free(call);
        return NULL;
    }
    list_append(&port->lines, &call->link);
    port->waiting++;
    return call;
}

struct rmp_call *rmp_call_find(const struct rmp_port *port, uint64_t number)
{
    return hash_table_find(&port->calls, hash_of(number), has_number, &number);
}

void rmp_port_wake(struct rmp_port *port)
{
    if (!timer_started(&port->work))
        stdio_bus_event_loop_start_timer(port->bridge->bus->loop, &port->work, 0);
}

void rmp_call_end(struct rmp_call *call)
{
    struct rmp_port *port = call->port;

    if (list_linked(&call->link)) {
        list_remove(&call->link);
        port->waiting--;
    }
    stdio_bus_event_loop_stop_timer(port->bridge->bus->loop, &call->deadline);
    hash_table_remove(&port->calls, hash_of(call->number), call);
    json_text_free(&call->line);
    free(call);
    if (port->peer.busy) /* there was no room for another one */
        rmp_port_wake(port);
}

/* --- what follows --- */

static void log_lost(const struct rmp_call *call, const char *what)
{
    log_warn(call->port->bridge->bus->log, call->port->endpoint.context, "out of memory: %s", what);
}

static void publish(struct rmp_call *call, enum rmp_schema_id schema, struct slice payload)
{
    static const struct slice control = {RMP_TOPIC_CONTROL, sizeof RMP_TOPIC_CONTROL - 1};

    rmp_answer_publish(call->port->bridge,
                       &(struct rmp_notice){
                           .publisher = &call->port->peer,
                           .schema = schema,
                           .topic = schema == RMP_SCHEMA_CTRL_RESP ? control : call->reply_topic,
                           .trace_id = call->trace_id,
                           .payload = payload,
                       });
}

static enum rmp_control_kind control_kind(const struct rmp_call *call)
{
    return call->kind == RMP_CALL_CANCEL ? RMP_CONTROL_CANCEL : RMP_CONTROL_SUBMIT;
}

void rmp_call_failed(struct rmp_call *call, bool retryable, struct slice reason)
{
    struct rmp_bridge *bridge = call->port->bridge;
    char *payload;
    size_t len;

    if (call->kind == RMP_CALL_EXECUTE) {
        payload = bridge_failed(retryable, reason, &len);
        if (payload != NULL)
            publish(call, RMP_SCHEMA_AGENT_RESPONSE, slice_of(payload, len));
        else
            log_lost(call, "the answer to a request was lost");
        free(payload);
    } else if (call->kind != RMP_CALL_REFUSAL) {
        rmp_control_forget(&bridge->control, control_kind(call), call->trace_id);
        rmp_answer_rejected(bridge, &call->port->peer, call->trace_id, reason);
    }
    rmp_call_end(call);
}

/* What a worker has answered is lost. */
static void fail_call(struct rmp_call *call, const char *reason)
{
    log_warn(call->port->bridge->bus->log, call->port->endpoint.context,
             "the answer of a worker was dropped: %s", reason);
    rmp_call_failed(call, false, slice_of_text(reason));
}

static char *cancelled(const struct rmp_call *call, size_t *len)
{
    char *payload = malloc(256);
    struct msgpack_writer writer = {.to = payload, .size = payload != NULL ? 256 : 0};

    rmp_control_put_cancelled(&writer, call->trace_id, call->run_id);
    *len = writer.len;
    return payload;
}

/* The payload that a result becomes. */
static char *payload_of(const struct rmp_call *call, struct slice result, size_t *len,
                        const char **problem)
{
    switch (call->kind) {
    case RMP_CALL_EXECUTE:
        return bridge_completed(result, len, problem);
    case RMP_CALL_SUBMIT:
        return bridge_accepted(call->trace_id, result, len, problem);
    case RMP_CALL_CANCEL:
        return cancelled(call, len);
    case RMP_CALL_REFUSAL:
        break;
    }
    return NULL;
}

static void publish_events(struct rmp_call *call, struct list *events)
{
    struct list_node *node;

    while ((node = list_take_first(events)) != NULL) {
        struct rmp_early_event *event = list_entry(node, struct rmp_early_event, link);

        rmp_answer_event(call->port->bridge, &call->port->peer, call->run_id,
                         slice_of(event->payload, event->len));
        free(event);
    }
}

/* The answer to a control request. The events that the runner wrote before it come after it. */
static void publish_control(struct rmp_call *call, struct slice payload)
{
    struct rmp_control *control = &call->port->bridge->control;
    struct list events;

    list_init(&events);
    if (call->kind == RMP_CALL_SUBMIT)
        rmp_control_take_events(control, call->trace_id, &events);
    if (!rmp_control_settle(control, control_kind(call), call->trace_id, payload))
        log_lost(call, "a request is forgotten: it is carried out once more if repeated");
    publish(call, RMP_SCHEMA_CTRL_RESP, payload);
    if (call->kind == RMP_CALL_SUBMIT)
        rmp_runs_accepted(call->port->bridge->runs, call->trace_id);
    publish_events(call, &events);
}

static void completed(struct rmp_call *call, struct slice result)
{
    const char *problem = "the daemon is out of memory";
    size_t len = 0;
    char *payload = payload_of(call, result, &len, &problem);

    if (payload == NULL) {
        fail_call(call, problem);
    } else if (!rmp_answer_fits(call->port->bridge, len)) {
        fail_call(call, "the result is longer than a body may be (max_body)");
    } else {
        if (call->kind == RMP_CALL_EXECUTE)
            publish(call, RMP_SCHEMA_AGENT_RESPONSE, slice_of(payload, len));
        else
            publish_control(call, slice_of(payload, len));
        rmp_call_end(call);
    }
    free(payload);
}

void rmp_call_answered(struct rmp_call *call, const struct bridge_message *message)
{
    char *text;
    size_t len;

    if (message->kind == BRIDGE_RESULT) {
        completed(call, message->value);
        return;
    }
    text = message->reason.len > 0 ? bridge_text(message->reason, &len) : NULL;
    if (text == NULL && message->reason.len > 0)
        log_lost(call, "the reason of an error was lost");
    if (text != NULL)
        rmp_call_failed(call, message->retryable, slice_of(text, len));
    else
        rmp_call_failed(call, message->retryable, slice_of_text("error"));
    free(text);
}
