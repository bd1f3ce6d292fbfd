#include "build_config.h"

#include "topics/bridge.h"

#include <stdlib.h>

#include "base/error.h"
#include "rmp/broker_archive.h"
#include "rmp/subscription.h"
#include "router/router_archive.h"
#include "topics/port.h"

#define WAITING_MAX 64 /* frames and lines of a port; the broker keeps what comes after them */
#define CALLS_MAX 1024 /* of a port */

/* --- from the broker --- */

static bool is_control_topic(struct slice topic)
{
    return slice_is(topic, RMP_TOPIC_CONTROL);
}

static bool has_room(const struct rmp_port *port)
{
    return port->waiting < WAITING_MAX && port->calls.count < CALLS_MAX;
}

/* The broker must not be called from here: the frame is looked at in the next round. */
static enum rmp_taken take_frame(struct rmp_peer *peer, const struct rmp_sub_name *name,
                                 const struct rmp_publication *publication)
{
    struct rmp_port *port = list_entry(peer, struct rmp_port, peer);
    bool is_control = is_control_topic(publication->topic);

    (void)name;
    /* Answers are on rlp/ctrl too, those of the bridge among them. */
    if (publication->header.schema_id !=
        (is_control ? RMP_SCHEMA_CTRL_REQ : RMP_SCHEMA_AGENT_REQUEST))
        return RMP_TAKEN;
    if (!has_room(port))
        return RMP_BUSY;
    if (rmp_port_keep(port, &publication->header, publication->user,
                      rmp_publication_body(publication), is_control) != STDIO_BUS_OK)
        return RMP_REFUSED;
    rmp_port_wake(port);
    return RMP_TAKEN;
}

/* What becomes of the bridge's publications is the subscribers' concern. */
static void ignore_published(struct rmp_peer *publisher, uint64_t token,
                             const struct rmp_result *result)
{
    (void)publisher;
    (void)token;
    (void)result;
}

static const struct rmp_peer_ops peer_ops = {.deliver = take_frame, .published = ignore_published};

/* --- a request of the topic bus becomes a call --- */

struct asked {
    enum rmp_call_kind kind;
    const char *method;
    struct rmp_id run_id;
    struct slice params, reply_topic;
};

/* The time until the frame expires. */
static int64_t time_left(const struct rmp_bridge *bridge, const struct rmp_header *header)
{
    uint64_t now_ms = rmp_answer_time(bridge).epoch_ms, expires_at_ms;

    if (rmp_header_expiry(header, &expires_at_ms) != RMP_OK || expires_at_ms <= now_ms)
        return 0;
    return expires_at_ms - now_ms > INT32_MAX ? INT32_MAX : (int64_t)(expires_at_ms - now_ms);
}

static void log_lost(const struct rmp_port *port)
{
    log_warn(port->bridge->bus->log, port->endpoint.context,
             "out of memory: a request of the topic bus was lost");
}

static void begin_call(struct rmp_port *port, const struct rmp_header *header,
                       const struct asked *asked)
{
    struct rmp_call *call = rmp_call_create(port, asked->kind, asked->reply_topic);

    if (call == NULL) {
        log_lost(port);
        return;
    }
    call->trace_id = header->trace_id;
    call->run_id = asked->run_id;
    rmp_port_start_deadline(call, time_left(port->bridge, header));
    if (!bridge_put_request(&call->line, call->number, asked->method, asked->run_id,
                            asked->params)) {
        rmp_call_failed(call, false, slice_of_text("the request cannot be written as JSON"));
    } else if (call->line.failed) {
        log_lost(port);
        rmp_call_failed(call, true, slice_of_text("the daemon is out of memory"));
    }
}

static void ask_agent(struct rmp_port *port, const struct rmp_header *header,
                      const struct rmp_envelope *envelope)
{
    struct msgpack_value topic;

    if (!msgpack_find(envelope->payload, "reply_topic", &topic, NULL) ||
        topic.type != MSGPACK_STR || topic.bytes.len == 0 || topic.bytes.len > RMP_TOPIC_MAX) {
        log_warn(port->bridge->bus->log, port->endpoint.context,
                 "a request to an agent was dropped: it has no reply_topic");
        return;
    }
    begin_call(port, header,
               &(struct asked){.kind = RMP_CALL_EXECUTE,
                               .method = "agent/execute",
                               .run_id = header->trace_id,
                               .params = envelope->payload,
                               .reply_topic = topic.bytes});
}

static void ask_runner(struct rmp_port *port, const struct rmp_header *header,
                       const struct rmp_control_request *request)
{
    bool submits = request->kind == RMP_CONTROL_SUBMIT;

    begin_call(port, header,
               &(struct asked){.kind = submits ? RMP_CALL_SUBMIT : RMP_CALL_CANCEL,
                               .method = submits ? "run/submit" : "run/cancel",
                               .run_id = request->run_id,
                               .params = request->members});
}

static void reject(struct rmp_port *port, const struct rmp_control_request *request,
                   const char *reason)
{
    rmp_answer_rejected(port->bridge, &port->peer, request->request_id, slice_of_text(reason));
}

/* A follower of a run that has ended would wait in vain without knowing it. */
static void answer_again(struct rmp_port *port, const struct rmp_control_request *request,
                         struct slice answer)
{
    enum rmp_run_end end = RMP_RUN_OPEN;

    if (request->kind == RMP_CONTROL_SUBMIT)
        end = rmp_control_run(&port->bridge->control, request->run_id, &answer);
    rmp_answer_publish(port->bridge,
                       &(struct rmp_notice){
                           .publisher = &port->peer,
                           .schema = RMP_SCHEMA_CTRL_RESP,
                           .topic = slice_of_text(RMP_TOPIC_CONTROL),
                           .trace_id = request->request_id,
                           .payload = answer,
                           .ended = end != RMP_RUN_OPEN ? rmp_run_end_name(end) : NULL,
                       });
}

static void control(struct rmp_port *port, const struct rmp_asking *frame,
                    const struct rmp_envelope *envelope)
{
    struct rmp_control_request request = {.user = frame->user};
    struct slice answer;
    const char *problem;

    if (!rmp_control_read(&request, &frame->header, envelope, &problem)) {
        reject(port, &request, problem);
        return;
    }
    if (port->pool == NULL) {
        reject(port, &request, "no runner pool is configured");
        return;
    }
    switch (rmp_control_take(&port->bridge->control, &request, &answer)) {
    case RMP_CONTROL_NEW:
        ask_runner(port, &frame->header, &request);
        break;
    case RMP_CONTROL_PENDING:
        break;
    case RMP_CONTROL_ANSWERED:
        answer_again(port, &request, answer);
        break;
    case RMP_CONTROL_FULL:
        reject(port, &request, "too many requests wait for the runner");
        break;
    case RMP_CONTROL_NO_MEMORY:
        log_lost(port);
        reject(port, &request, "the daemon is out of memory");
        break;
    }
}

static void look_at(struct rmp_port *port, const struct rmp_asking *frame)
{
    struct rmp_envelope envelope;

    if (rmp_envelope_read(&envelope, slice_of(frame->body, frame->body_len)) != RMP_OK)
        log_warn(port->bridge->bus->log, port->endpoint.context,
                 "a request was dropped: its body is no envelope");
    else if (frame->is_control)
        control(port, frame, &envelope);
    else
        ask_agent(port, &frame->header, &envelope);
}

/* timer_fn of a port's work. */
static void work(void *user_data)
{
    struct rmp_port *port = user_data;
    struct list_node *node;

    while ((node = list_take_first(&port->frames)) != NULL) {
        port->waiting--;
        look_at(port, list_entry(node, struct rmp_asking, link));
        free(list_entry(node, struct rmp_asking, link));
    }
    rmp_port_offer(port);
    if (port->peer.busy && has_room(port))
        rmp_broker_resume(port->bridge->broker, &port->peer, rmp_answer_time(port->bridge));
}

/* --- from its begin to its end --- */

static int subscribe(struct rmp_port *port, const char *prefix, const char *name)
{
    static const struct rmp_sub_name by_topic = {.dialect = RMP_DIALECT_FRAMES};
    struct rmp_bridge *bridge = port->bridge;
    struct json_text topic = {.data = NULL};
    bool subscribed;

    json_text_literal(&topic, prefix);
    json_text_literal(&topic, name);
    subscribed = !topic.failed &&
                 rmp_broker_subscribe(bridge->broker, &port->peer, by_topic,
                                      json_text_slice(&topic), rmp_answer_time(bridge))
                         .outcome == RMP_RESULT_OK;
    json_text_free(&topic);
    return subscribed ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

/* `pool`: NULL: of rlp/ctrl alone. */
static int add_port(struct rmp_bridge *bridge, struct pool *pool)
{
    struct rmp_port *port = calloc(1, sizeof *port);
    const struct rmp_pool *rmp = pool != NULL ? &pool->config->rmp : NULL;
    int status = STDIO_BUS_OK;

    if (port == NULL)
        return STDIO_BUS_ERR;
    port->bridge = bridge;
    port->pool = pool;
    list_init(&port->frames);
    list_init(&port->lines);
    timer_init(&port->work, work, port);
    list_append(&bridge->ports, &port->link);
    rmp_port_open(port);
    rmp_broker_join(bridge->broker, &port->peer, &peer_ops, RMP_KIND_AGENT);
    if (rmp != NULL && rmp->agent != NULL)
        status = subscribe(port, RMP_AGENT_PREFIX, rmp->agent);
    if (status == STDIO_BUS_OK && (rmp == NULL || rmp->runner))
        status = subscribe(port, RMP_TOPIC_CONTROL, "");
    return status;
}

static int add_ports(struct rmp_bridge *bridge)
{
    struct list_node *node, *following;
    bool has_runner = false;

    list_each(&bridge->bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (!rmp_pool_serves(&pool->config->rmp))
            continue;
        has_runner |= pool->config->rmp.runner;
        if (add_port(bridge, pool) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return has_runner ? STDIO_BUS_OK : add_port(bridge, NULL);
}

struct rmp_bridge *rmp_bridge_create(struct stdio_bus *bus, struct rmp_broker *broker,
                                     const struct rmp_rules *rules)
{
    struct rmp_bridge *bridge = calloc(1, sizeof *bridge);
    struct siphash_key key;

    if (bridge == NULL)
        return NULL;
    key = siphash_random_key();
    bridge->bus = bus;
    bridge->broker = broker;
    bridge->rules = rules;
    list_init(&bridge->ports);
    rmp_control_init(&bridge->control, &key, RMP_CONTROL_REMEMBERED);
    /* Answers have the trace_id of their request: their msg_id must be another one. Below 2^53. */
    bridge->last_msg_id = rmp_answer_time(bridge).epoch_ms << 10;
    bridge->runs = rmp_runs_create(bus, &bridge->control);
    if (bridge->runs == NULL || add_ports(bridge) != STDIO_BUS_OK) {
        rmp_bridge_destroy(bridge);
        return NULL;
    }
    return bridge;
}

void rmp_bridge_start(struct rmp_bridge *bridge)
{
    rmp_runs_load(bridge->runs, &bridge->last_msg_id);
}

struct rmp_runs *rmp_bridge_runs(const struct rmp_bridge *bridge)
{
    return bridge->runs;
}

void rmp_bridge_stop(struct rmp_bridge *bridge)
{
    struct list_node *node, *following;

    list_each(&bridge->ports, node, following)
        rmp_port_refuse_held(list_entry(node, struct rmp_port, link));
}

void rmp_bridge_destroy(struct rmp_bridge *bridge)
{
    struct list_node *node, *item;

    if (bridge == NULL)
        return;
    while ((node = list_take_first(&bridge->ports)) != NULL) {
        struct rmp_port *port = list_entry(node, struct rmp_port, link);

        rmp_port_close(port);
        rmp_broker_leave(bridge->broker, &port->peer);
        while ((item = list_take_first(&port->frames)) != NULL)
            free(list_entry(item, struct rmp_asking, link));
        free(port);
    }
    rmp_runs_destroy(bridge->runs);
    rmp_control_free(&bridge->control);
    free(bridge);
}

/* --- the archive: frames that were not looked at yet --- */

static void archive_frame(struct archive *archive, void *owner, void *item)
{
    const struct rmp_asking *frame = item;
    struct rmp_header header = {.schema_id = 0};
    struct slice body = slice_of(NULL, 0);
    bool is_control = archive_present(archive, frame != NULL && frame->is_control);
    uint32_t user = frame != NULL ? frame->user : 0;

    if (frame != NULL) {
        header = frame->header;
        body = slice_of(frame->body, frame->body_len);
    }
    ARCHIVE_INTEGER(archive, user);
    rmp_header_archive(archive, &header);
    body = archive_slice(archive, body);
    if (archive_loads(archive))
        archive_done(archive, rmp_port_keep(owner, &header, user, body, is_control));
}

/* --- the archive of calls --- */

/* A call, read or to be written. One with a line waits for the router to take it. */
struct call_record {
    enum rmp_call_kind kind;
    uint64_t number;
    struct rmp_id trace_id, run_id;
    int64_t deadline_ms; /* 0: it has none */
    struct slice reply_topic, line;
};

static struct call_record record_of(const struct rmp_call *call)
{
    struct call_record record = {
        .kind = call->kind,
        .number = call->number,
        .trace_id = call->trace_id,
        .run_id = call->run_id,
        .reply_topic = call->reply_topic,
    };

    if (timer_started(&call->deadline))
        record.deadline_ms = timer_deadline_ms(&call->deadline);
    if (list_linked(&call->link))
        record.line = json_text_slice(&call->line);
    return record;
}

static void load_call(struct archive *archive, struct rmp_port *port,
                      const struct call_record *record)
{
    struct rmp_call *call = rmp_call_numbered(port, record->kind, record->number,
                                              record->reply_topic);

    if (!archive_made(archive, call != NULL))
        return;
    call->trace_id = record->trace_id;
    call->run_id = record->run_id;
    if (record->deadline_ms > 0)
        rmp_port_start_deadline(call, record->deadline_ms -
                                          stdio_bus_event_loop_now_ms(port->bridge->bus->loop));
    if (record->line.data != NULL) {
        json_text_add(&call->line, record->line);
        archive_made(archive, !call->line.failed);
    } else {
        list_remove(&call->link);
        port->waiting--;
    }
}

static const struct archive_field call_fields[] = {
    ARCHIVE_CHOICE(struct call_record, kind, RMP_CALL_REFUSAL),
    ARCHIVE_INTEGERS(struct call_record, number, trace_id, run_id),
    ARCHIVE_SLICES(struct call_record, reply_topic, line),
};

static void archive_call(struct archive *archive, void *owner, void *item)
{
    struct rmp_port *port = owner;
    struct call_record record = {.number = 0};

    if (item != NULL)
        record = record_of(item);
    ARCHIVE_FIELDS(archive, &record, call_fields);
    ARCHIVE_ENUM(archive, record.deadline_ms, INT64_MAX);
    archive_expect(archive,
                   record.number <= port->bridge->last_call &&
                       rmp_call_find(port, record.number) == NULL,
                   "a call has no number of its own");
    archive_expect(archive, (record.deadline_ms > 0) == (record.kind != RMP_CALL_REFUSAL),
                   "a call has no deadline");
    if (archive_loads(archive))
        load_call(archive, port, &record);
}

static void save_calls(struct archive *archive, struct rmp_port *port)
{
    struct list_node *node, *following;

    list_each(&port->lines, node, following)
        archive_call(archive, port, list_entry(node, struct rmp_call, link));
    for (size_t i = 0; i < port->calls.capacity; i++) {
        struct rmp_call *call = port->calls.slots[i].item;

        if (call != NULL && !list_linked(&call->link))
            archive_call(archive, port, call);
    }
}

/* The calls with a line that waits come first, in the order of the lines. */
static void archive_calls(struct archive *archive, struct rmp_port *port)
{
    size_t count = archive_count(archive, port->calls.count);

    archive_mark(archive, "calls");
    if (archive->saves)
        save_calls(archive, port);
    archive_load(archive, count, archive_call, port);
}

/* --- the archive of a port --- */

/* Its subscriptions are among those of the broker. */
static void archive_peer(struct rmp_archive *topics, struct rmp_port *port)
{
    struct rmp_broker *broker = port->bridge->broker;
    const struct rmp_peer_ops *ops = port->peer.ops;

    if (!topics->archive->saves) {
        rmp_broker_leave(broker, &port->peer);
        rmp_broker_join(broker, &port->peer, ops, RMP_KIND_AGENT);
    }
    rmp_archive_peer(topics, &port->peer);
}

/* A line that the router has held is offered again. */
static void archive_endpoint(struct router_archive *state, struct rmp_port *port)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_port, endpoint.since_ms, endpoint.held_since_ms),
        ARCHIVE_FLAGS(struct rmp_port, endpoint.blocks_itself, paused),
    };

    timer_archive(state->archive, port->bridge->bus->loop, &port->endpoint.hold_timer);
    ARCHIVE_FIELDS(state->archive, port, fields);
    router_archive_peer(state, &port->endpoint.peer);
    archive_expect(state->archive, !port->paused || peer_held(&port->endpoint.peer),
                   "a pool of the topic bus is paused, and the router does not hold it");
}

struct bridge_archive {
    struct router_archive *state;
    struct rmp_archive *topics;
};

static void archive_port(struct archive *archive, void *owner, void *item)
{
    struct bridge_archive *both = owner;
    struct rmp_port *port = item;
    struct slice id = port->pool != NULL ? port->pool->group.id : slice_of(NULL, 0), found;

    archive_mark(archive, "port");
    found = archive_slice(archive, id);
    archive_expect(archive,
                   id.data != NULL ? found.data != NULL && slice_equal(found, id)
                                   : found.data == NULL,
                   "the pools of the topic bus are others");
    if (!archive_ok(archive))
        return;
    archive_peer(both->topics, port);
    archive_endpoint(both->state, port);
    ARCHIVE_LIST(archive, &port->frames, struct rmp_asking, link, archive_frame, port);
    archive_calls(archive, port);
    timer_archive(archive, port->bridge->bus->loop, &port->work);
}

void rmp_bridge_archive(struct router_archive *state, struct rmp_archive *topics,
                        struct rmp_bridge *bridge)
{
    struct bridge_archive both = {.state = state, .topics = topics};
    struct archive *archive = state->archive;

    archive_mark(archive, "bridge");
    ARCHIVE_INTEGER(archive, bridge->last_msg_id);
    ARCHIVE_ENUM(archive, bridge->last_call, INT64_MAX);
    rmp_control_archive(archive, &bridge->control);
    rmp_runs_archive(archive, bridge->runs);
    ARCHIVE_ITEMS(archive, &bridge->ports, struct rmp_port, link, archive_port, &both,
                  "the topic bus has another number of pools");
}
