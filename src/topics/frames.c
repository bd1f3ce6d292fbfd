#include "build_config.h"

#include "topics/frames.h"

#include "base/error.h"
#include "rmp/subscription.h"

#define ANSWER_TTL_MS 30000
#define ANSWER_MAX 4096 /* bytes of an answer, with the longest topic */

/* --- answers --- */

/* What an error report says. */
struct report {
    const char *code;
    struct slice message;
    struct slice topic;              /* empty: none */
    const struct rmp_header *header; /* of the frame at fault; NULL: unknown */
};

static void send_answer(struct rmp_client *client, enum rmp_schema_id schema,
                        const struct rmp_header *about, struct slice payload)
{
    struct rmp_hub *hub = client->hub;
    const char *type = rmp_schemas_find(hub->rules.schemas, (uint16_t)schema)->type;
    const struct rmp_envelope envelope = {.type = slice_of_text(type), .payload = payload};
    const struct rmp_header header = {
        .schema_id = (uint16_t)schema,
        .created_at_ms = rmp_hub_time(hub).epoch_ms,
        .ttl_ms = ANSWER_TTL_MS,
        .trace_id = about != NULL ? about->trace_id : (struct rmp_id){0, 0},
        .msg_id = ++hub->last_msg_id,
    };
    char wire[ANSWER_MAX] UNINITIALIZED;

    rmp_client_send(client, slice_of(wire, rmp_frame_write(wire, sizeof wire, &header, &envelope)));
}

/* A topic that is none because of its length is left out. */
static void send_report(struct rmp_client *client, const struct report *report)
{
    char payload[ANSWER_MAX / 2] UNINITIALIZED;
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};
    bool has_topic = report->topic.len > 0 && report->topic.len <= RMP_TOPIC_MAX;

    msgpack_put_map(&writer, 2U + has_topic + (report->header != NULL));
    msgpack_put_text(&writer, "code");
    msgpack_put_text(&writer, report->code);
    msgpack_put_text(&writer, "message");
    msgpack_put_str(&writer, report->message);
    if (has_topic) {
        msgpack_put_text(&writer, "topic");
        msgpack_put_str(&writer, report->topic);
    }
    if (report->header != NULL) {
        msgpack_put_text(&writer, "msg_id");
        msgpack_put_uint(&writer, report->header->msg_id);
    }
    send_answer(client, RMP_SCHEMA_ERROR_REPORT, report->header, slice_of(payload, writer.len));
}

static void report_error(struct rmp_client *client, enum rmp_error error,
                         const struct rmp_header *header, struct slice topic)
{
    const char *text = rmp_error_text(error);
    const struct report report = {.code = rmp_error_name(error),
                                  .message = slice_of_text(text),
                                  .topic = topic,
                                  .header = header};

    send_report(client, &report);
}

/* {"op":OP,"ok":true}, and what the client has asked for, as it was granted. */
static void confirm(struct rmp_client *client, const struct rmp_header *about, const char *op,
                    const char *key, struct slice value)
{
    char payload[ANSWER_MAX / 2] UNINITIALIZED;
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};

    msgpack_put_map(&writer, key != NULL ? 3 : 2);
    msgpack_put_text(&writer, "op");
    msgpack_put_text(&writer, op);
    msgpack_put_text(&writer, "ok");
    msgpack_put_bool(&writer, true);
    if (key != NULL) {
        msgpack_put_text(&writer, key);
        msgpack_put_str(&writer, value);
    }
    send_answer(client, RMP_SCHEMA_TOOL_RESULT, about, slice_of(payload, writer.len));
}

void rmp_frames_refuse(struct rmp_client *client)
{
    const struct rmp_reader *reader = &client->reader;

    report_error(client, reader->error, reader->has_header ? &reader->header : NULL,
                 slice_of("", 0));
}

/* --- results of the broker --- */

static const struct {
    const char *code, *message; /* NULL: it is that of the taxonomy of frames, or result->text */
    enum rmp_error error;       /* or RMP_OK */
} outcomes[RMP_RESULT_COUNT] = {
    [RMP_RESULT_CLOSED] = {"Closed", "the bus is shutting down", RMP_OK},
    [RMP_RESULT_MESSAGE_EXPIRED] = {"Expired", NULL, RMP_EXPIRED},
    [RMP_RESULT_INVALID_TTL] = {"InvalidTtl", "ttl_ms exceeds max_ttl_ms", RMP_OK},
    [RMP_RESULT_BACKPRESSURE_TIMEOUT] = {"BackpressureTimeout",
                                         "the queue of a subscription stayed full for 50 ms",
                                         RMP_OK},
    [RMP_RESULT_FORBIDDEN] = {"Forbidden", NULL, RMP_OK},
    [RMP_RESULT_INVALID_EXPIRY] = {"InvalidExpiry", NULL, RMP_INVALID_EXPIRY},
};

static struct slice message_of(const struct rmp_result *result)
{
    const char *text = outcomes[result->outcome].message;

    if (result->outcome == RMP_RESULT_INVALID_TTL && result->ttl_ms == 0)
        text = rmp_error_text(RMP_INVALID_TTL);
    else if (outcomes[result->outcome].error != RMP_OK)
        text = rmp_error_text(outcomes[result->outcome].error);
    return text != NULL ? slice_of_text(text) : result->text;
}

static void report_result(struct rmp_client *client, const struct rmp_header *header,
                          const struct rmp_result *result, struct slice topic)
{
    struct report report = {.code = outcomes[result->outcome].code,
                            .message = message_of(result),
                            .topic = topic,
                            .header = header};

    if (result->outcome == RMP_RESULT_BACKPRESSURE_TIMEOUT)
        report.topic = result->text;
    send_report(client, &report);
}

void rmp_frames_answer(struct rmp_client *client, const struct rmp_asked *asked,
                       const struct rmp_result *result)
{
    if (result->outcome != RMP_RESULT_OK)
        report_result(client, &asked->header, result, slice_of("", 0));
    else if (asked->wants_ack)
        confirm(client, &asked->header, "publish", NULL, slice_of("", 0));
}

/* --- frames that talk to the broker --- */

typedef void control_fn(struct rmp_client *client, const struct rmp_frame *frame,
                        struct slice topic);

static void say_hello(struct rmp_client *client, const struct rmp_frame *frame, struct slice kind)
{
    static const char *const kinds[] = {
        [RMP_KIND_AGENT] = "agent", [RMP_KIND_UI] = "ui", [RMP_KIND_TUI] = "tui"};
    enum rmp_kind asked;
    const char *name;

    if (!rmp_kind_read(kind, &asked)) {
        report_error(client, RMP_BODY_DECODE_ERROR, &frame->header, slice_of("", 0));
        return;
    }
    name = kinds[rmp_client_set_kind(client, asked)];
    confirm(client, &frame->header, "hello", "kind", slice_of_text(name));
}

/* Whether the events that are kept are to come first. False: it is neither true nor false. */
static bool read_replay(const struct rmp_frame *frame, bool *replay)
{
    struct msgpack_value value;

    *replay = false;
    if (!msgpack_find(frame->envelope.payload, "replay", &value, NULL))
        return true;
    *replay = value.type == MSGPACK_BOOL && value.as.boolean;
    return value.type == MSGPACK_BOOL;
}

static void subscribe(struct rmp_client *client, const struct rmp_frame *frame, struct slice topic)
{
    struct rmp_hub *hub = client->hub;
    struct rmp_sub_name name = {.dialect = RMP_DIALECT_FRAMES};
    struct rmp_result result;
    bool replay;

    if (!read_replay(frame, &replay)) {
        report_error(client, RMP_BODY_DECODE_ERROR, &frame->header, slice_of("", 0));
        return;
    }
    result = rmp_broker_subscribe(hub->broker, &client->peer, name, topic, rmp_hub_time(hub));
    if (result.outcome == RMP_RESULT_OK)
        confirm(client, &frame->header, "subscribe", "topic", topic);
    else
        report_result(client, &frame->header, &result, slice_of("", 0));
    if (replay && result.is_new)
        rmp_runs_replay(hub->runs, &(struct rmp_replay){hub->broker, &client->peer, name, topic,
                                                        rmp_hub_time(hub)});
}

static void unsubscribe(struct rmp_client *client, const struct rmp_frame *frame,
                        struct slice topic)
{
    struct rmp_sub_name name = {.dialect = RMP_DIALECT_FRAMES};

    if (rmp_broker_unsubscribe(client->hub->broker, &client->peer, name, topic))
        confirm(client, &frame->header, "unsubscribe", "topic", topic);
    else
        confirm(client, &frame->header, "unsubscribe", NULL, topic);
}

static const struct {
    const char *op, *key; /* of its string */
    control_fn *carry_out;
} controls[] = {
    {"hello", "kind", say_hello},
    {"subscribe", "topic", subscribe},
    {"unsubscribe", "topic", unsubscribe},
};

/* Carries the frame out if it is for the broker. Returns whether it is. */
static bool take_control(struct rmp_client *client, const struct rmp_frame *frame)
{
    struct msgpack_value op, text;

    if (frame->header.schema_id != RMP_SCHEMA_CONTROL ||
        !msgpack_find(frame->envelope.payload, "op", &op, NULL))
        return false;
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        if (!msgpack_is(&op, controls[i].op))
            continue;
        if (msgpack_find(frame->envelope.payload, controls[i].key, &text, NULL) &&
            text.type == MSGPACK_STR)
            controls[i].carry_out(client, frame, text.bytes);
        else
            report_error(client, RMP_BODY_DECODE_ERROR, &frame->header, slice_of("", 0));
        return true;
    }
    return false;
}

/* --- frames that are published --- */

static enum rmp_next publish(struct rmp_client *client, const struct rmp_frame *frame,
                             struct slice topic)
{
    const struct rmp_publication publication = {
        .header = frame->header, .topic = topic, .frame = frame->wire};
    const struct rmp_asked asked = {.wants_ack = rmp_envelope_wants_ack(&frame->envelope),
                                    .header = frame->header};
    struct rmp_result result;

    if (!rmp_client_publish(client, &publication, &asked, &result))
        return RMP_NEXT_WAIT;
    if (result.outcome != RMP_RESULT_OK)
        report_result(client, &frame->header, &result, topic);
    else
        rmp_frames_answer(client, &asked, &result);
    return RMP_NEXT_FRAME;
}

/* The broker judges the time of a publication, since it reports one that has expired. */
static bool is_for_broker(enum rmp_error error)
{
    return error == RMP_OK || error == RMP_INVALID_TTL || error == RMP_INVALID_EXPIRY ||
           error == RMP_EXPIRED;
}

enum rmp_next rmp_frames_take(struct rmp_client *client, struct slice wire)
{
    struct rmp_hub *hub = client->hub;
    struct rmp_frame frame = {.header = client->reader.header};
    enum rmp_error error = rmp_frame_read_body(&frame, wire, &hub->rules,
                                               rmp_hub_time(hub).epoch_ms);
    struct slice topic = slice_of("", 0);

    if (frame.has_envelope)
        topic = rmp_envelope_topic(&frame.envelope);
    if (error == RMP_OK && take_control(client, &frame))
        return RMP_NEXT_FRAME;
    if (is_for_broker(error) && frame.has_envelope && (error == RMP_OK || topic.len > 0))
        return publish(client, &frame, topic);
    report_error(client, error, &frame.header, topic);
    return RMP_NEXT_FRAME;
}

/* --- messages --- */

enum rmp_taken rmp_frames_deliver(struct rmp_client *client,
                                  const struct rmp_publication *publication)
{
    struct slice payload = {publication->frame.data + RMP_PREFIX_LEN,
                            publication->frame.len - RMP_PREFIX_LEN};

    return connection_send_body(&client->connection, NULL, payload, NULL, 0) == STDIO_BUS_OK
               ? RMP_TAKEN
               : RMP_REFUSED;
}
