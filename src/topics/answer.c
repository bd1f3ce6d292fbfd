#include "build_config.h"

#include "topics/answer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "rmp/bridge.h"
#include "rmp/frame.h"

#define META_MAX 1024 /* bytes of a body beside its payload */
#define REASON_MAX 4096

struct rmp_time rmp_answer_time(const struct rmp_bridge *bridge)
{
    return (struct rmp_time){
        .epoch_ms = clock_epoch_ms(),
        .now_ms = (uint64_t)stdio_bus_event_loop_now_ms(bridge->bus->loop),
    };
}

bool rmp_answer_fits(const struct rmp_bridge *bridge, size_t payload_len)
{
    return bridge->rules->max_body > META_MAX && payload_len <= bridge->rules->max_body - META_MAX;
}

static void publish_at(struct rmp_bridge *bridge, const struct rmp_notice *notice,
                       struct rmp_time time)
{
    const struct rmp_draft draft = {
        .header = {.schema_id = (uint16_t)notice->schema,
                   .created_at_ms = time.epoch_ms,
                   .ttl_ms = RMP_BRIDGE_TTL_MS,
                   .trace_id = notice->trace_id,
                   .msg_id = ++bridge->last_msg_id},
        .type = rmp_schemas_find(bridge->rules->schemas, (uint16_t)notice->schema)->type,
        .topic = notice->topic,
        .payload = notice->payload,
        .ended = notice->ended,
    };
    struct rmp_publication publication = {.header = draft.header, .topic = notice->topic};
    struct rmp_result result = {.outcome = RMP_RESULT_OK};
    char *frame = rmp_compose(&draft, &publication.frame.len), shown[64];

    if (frame == NULL) {
        log_error(bridge->bus->log, "rmp", "out of memory: a message of the bridge was lost");
        return;
    }
    publication.frame.data = frame;
    publication.header.body_len = (uint32_t)(publication.frame.len - RMP_BODY_OFFSET);
    if (rmp_broker_publish(bridge->broker, notice->publisher, &publication, time, 0, &result) &&
        result.outcome != RMP_RESULT_OK)
        log_warn(bridge->bus->log, "rmp", "cannot publish on \"%s\"%s%.*s",
                 log_escape(shown, sizeof shown, notice->topic),
                 result.outcome == RMP_RESULT_FORBIDDEN ? ": " : "",
                 result.outcome == RMP_RESULT_FORBIDDEN ? (int)result.text.len : 0,
                 result.text.data != NULL ? result.text.data : "");
    free(frame);
}

void rmp_answer_publish(struct rmp_bridge *bridge, const struct rmp_notice *notice)
{
    publish_at(bridge, notice, rmp_answer_time(bridge));
}

void rmp_answer_event(struct rmp_bridge *bridge, struct rmp_peer *publisher, struct rmp_id run,
                      struct slice payload)
{
    struct rmp_time time = rmp_answer_time(bridge);
    char topic[BRIDGE_EVENTS_MAX];

    bridge_events_topic(topic, run);
    publish_at(bridge,
               &(struct rmp_notice){.publisher = publisher,
                                    .schema = RMP_SCHEMA_RUN_EVENT,
                                    .topic = {topic, strlen(topic)},
                                    .trace_id = run,
                                    .payload = payload},
               time);
    rmp_runs_event(bridge->runs, run, bridge->last_msg_id, time.epoch_ms, payload);
}

void rmp_answer_rejected(struct rmp_bridge *bridge, struct rmp_peer *publisher,
                         struct rmp_id request_id, struct slice reason)
{
    char payload[REASON_MAX + 128];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};

    reason.len = reason.len < REASON_MAX ? reason.len : REASON_MAX;
    rmp_control_put_rejected(&writer, request_id, reason);
    rmp_answer_publish(bridge, &(struct rmp_notice){
                                   .publisher = publisher,
                                   .schema = RMP_SCHEMA_CTRL_RESP,
                                   .topic = {RMP_TOPIC_CONTROL, sizeof RMP_TOPIC_CONTROL - 1},
                                   .trace_id = request_id,
                                   .payload = {payload, writer.len},
                               });
}
