#include "build_config.h"

#include "topics/bridge_archive.h"

#include "base/error.h"
#include "event/timer_archive.h"
#include "rmp/header_archive.h"
#include "topics/port.h"

#define NO_MEMORY "out of memory"

/* --- frames that were not looked at yet --- */

/* `frame`: where it saves. */
static void archive_frame(struct archive *archive, struct rmp_port *port,
                          const struct rmp_asking *frame)
{
    struct rmp_header header = {.schema_id = 0};
    struct slice body = slice_of(NULL, 0);
    bool is_control = frame != NULL && frame->is_control;
    uint32_t user = frame != NULL ? frame->user : 0;

    if (frame != NULL) {
        header = frame->header;
        body = slice_of(frame->body, frame->body_len);
    }
    archive_flag(archive, &is_control);
    ARCHIVE_INTEGER(archive, user);
    rmp_header_archive(archive, &header);
    body = archive_slice(archive, body);
    if (!archive->saves && archive_ok(archive) &&
        rmp_port_keep(port, &header, user, body, is_control) != STDIO_BUS_OK)
        archive_fail(archive, NO_MEMORY);
}

static void archive_frames(struct archive *archive, struct rmp_port *port)
{
    size_t count = archive_count(archive, list_count(&port->frames));
    struct list_node *node = port->frames.head.next;

    for (; count > 0 && archive_ok(archive); count--)
        archive_frame(archive, port, ARCHIVE_NEXT(archive, node, struct rmp_asking, link));
}

/* --- calls --- */

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

    if (call == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    call->trace_id = record->trace_id;
    call->run_id = record->run_id;
    if (record->deadline_ms > 0)
        rmp_port_start_deadline(call, record->deadline_ms -
                                          stdio_bus_event_loop_now_ms(port->bridge->bus->loop));
    if (record->line.data != NULL) {
        json_text_add(&call->line, record->line);
        if (call->line.failed)
            archive_fail(archive, NO_MEMORY);
    } else {
        list_remove(&call->link);
        port->waiting--;
    }
}

/* `call`: where it saves. */
static void archive_call(struct archive *archive, struct rmp_port *port,
                         const struct rmp_call *call)
{
    struct call_record record = {.number = 0};

    if (call != NULL)
        record = record_of(call);
    ARCHIVE_ENUM(archive, record.kind, RMP_CALL_REFUSAL);
    ARCHIVE_INTEGER(archive, record.number);
    rmp_id_archive(archive, &record.trace_id);
    rmp_id_archive(archive, &record.run_id);
    ARCHIVE_ENUM(archive, record.deadline_ms, INT64_MAX);
    record.reply_topic = archive_slice(archive, record.reply_topic);
    record.line = archive_slice(archive, record.line);
    archive_expect(archive,
                   record.number <= port->bridge->last_call &&
                       rmp_call_find(port, record.number) == NULL,
                   "a call has no number of its own");
    archive_expect(archive, (record.deadline_ms > 0) == (record.kind != RMP_CALL_REFUSAL),
                   "a call has no deadline");
    if (!archive->saves && archive_ok(archive))
        load_call(archive, port, &record);
}

static void save_calls(struct archive *archive, struct rmp_port *port)
{
    struct list_node *node, *following;

    list_each(&port->lines, node, following)
        archive_call(archive, port, list_entry(node, struct rmp_call, link));
    for (size_t i = 0; i < port->calls.capacity; i++) {
        const struct rmp_call *call = port->calls.slots[i].item;

        if (call != NULL && !list_linked(&call->link))
            archive_call(archive, port, call);
    }
}

/* The calls with a line that waits come first, in the order of the lines. */
static void archive_calls(struct archive *archive, struct rmp_port *port)
{
    size_t count = archive_count(archive, port->calls.count);

    archive_mark(archive, "calls");
    if (archive->saves) {
        save_calls(archive, port);
        return;
    }
    for (; count > 0 && archive_ok(archive); count--)
        archive_call(archive, port, NULL);
}

/* --- a port --- */

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
    struct archive *archive = state->archive;
    struct endpoint *endpoint = &port->endpoint;

    timer_archive(archive, port->bridge->bus->loop, &endpoint->hold_timer);
    ARCHIVE_INTEGER(archive, endpoint->since_ms);
    ARCHIVE_INTEGER(archive, endpoint->held_since_ms);
    archive_flag(archive, &endpoint->blocks_itself);
    router_archive_peer(state, &endpoint->peer);
    archive_flag(archive, &port->paused);
    archive_expect(archive, !port->paused || peer_held(&endpoint->peer),
                   "a pool of the topic bus is paused, and the router does not hold it");
}

static void archive_port(struct router_archive *state, struct rmp_archive *topics,
                         struct rmp_port *port)
{
    struct archive *archive = state->archive;
    struct slice id = slice_of(NULL, 0), found;

    archive_mark(archive, "port");
    if (port->pool != NULL)
        id = port->pool->group.id;
    found = archive_slice(archive, id);
    archive_expect(archive,
                   id.data != NULL ? found.data != NULL && slice_equal(found, id)
                                   : found.data == NULL,
                   "the pools of the topic bus are others");
    if (!archive_ok(archive))
        return;
    archive_peer(topics, port);
    archive_endpoint(state, port);
    archive_frames(archive, port);
    archive_calls(archive, port);
    timer_archive(archive, port->bridge->bus->loop, &port->work);
}

/* --- all of it --- */

void rmp_bridge_archive(struct router_archive *state, struct rmp_archive *topics,
                        struct rmp_bridge *bridge)
{
    struct archive *archive = state->archive;
    size_t count = list_count(&bridge->ports);
    struct list_node *node, *following;

    archive_mark(archive, "bridge");
    ARCHIVE_INTEGER(archive, bridge->last_msg_id);
    ARCHIVE_ENUM(archive, bridge->last_call, INT64_MAX);
    rmp_control_archive(archive, &bridge->control);
    rmp_runs_archive(archive, bridge->runs);
    archive_expect(archive, archive_count(archive, count) == count,
                   "the topic bus has another number of pools");
    list_each(&bridge->ports, node, following) {
        if (archive_ok(archive))
            archive_port(state, topics, list_entry(node, struct rmp_port, link));
    }
}
