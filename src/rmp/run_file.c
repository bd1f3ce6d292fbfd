#include "build_config.h"

#include "rmp/run_file.h"

#include <stdlib.h>
#include <string.h>

#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/frame.h"
#include "rmp/msgpack.h"
#include "rmp/peer.h"

static const struct rmp_schemas registry; /* without additions */

/* --- writing --- */

static struct rmp_draft draft_of(const struct rmp_header *header, struct slice topic,
                                 struct slice payload)
{
    return (struct rmp_draft){.header = *header,
                              .type = rmp_schemas_find(&registry, header->schema_id)->type,
                              .topic = topic,
                              .payload = payload};
}

static struct rmp_header header_of(struct rmp_id run, const struct rmp_kept_event *event)
{
    return (struct rmp_header){.schema_id = RMP_SCHEMA_RUN_EVENT,
                               .created_at_ms = event->at_ms,
                               .ttl_ms = RMP_BRIDGE_TTL_MS,
                               .trace_id = run,
                               .msg_id = event->msg_id};
}

static char *compose(const struct rmp_header *header, const struct rmp_kept_event *event,
                     size_t *len)
{
    char topic[BRIDGE_EVENTS_MAX];
    struct rmp_draft draft;

    bridge_events_topic(topic, header->trace_id);
    draft = draft_of(header, slice_of_text(topic), slice_of(event->payload, event->len));
    return rmp_compose(&draft, len);
}

char *run_file_event(struct rmp_id run, const struct rmp_kept_event *event, size_t *len)
{
    const struct rmp_header header = header_of(run, event);

    return compose(&header, event, len);
}

char *run_file_replay(struct rmp_id run, const struct rmp_kept_event *event, uint64_t epoch_ms,
                      struct rmp_header *header, size_t *len)
{
    *header = header_of(run, event);
    header->ttl_ms = RUN_FILE_REPLAY_MS;
    if (epoch_ms > event->at_ms)
        header->ttl_ms += epoch_ms - event->at_ms;
    return compose(header, event, len);
}

char *run_file_accepted(struct rmp_id run, uint32_t user, struct slice payload, uint64_t at_ms,
                        size_t *len)
{
    const struct rmp_header header = {.schema_id = RMP_SCHEMA_CTRL_RESP,
                                      .created_at_ms = at_ms,
                                      .ttl_ms = RMP_CONTROL_TTL_MS,
                                      .trace_id = run,
                                      .msg_id = user};
    const struct rmp_draft draft = draft_of(&header, slice_of_text(RMP_TOPIC_CONTROL), payload);

    return rmp_compose(&draft, len);
}

/* --- reading --- */

static enum run_file_found kind_of(const struct rmp_frame *frame)
{
    struct msgpack_value value;

    if (frame->header.schema_id == RMP_SCHEMA_RUN_EVENT &&
        msgpack_find(frame->envelope.payload, "kind", &value, NULL))
        return RUN_FILE_EVENT;
    if (frame->header.schema_id == RMP_SCHEMA_CTRL_RESP &&
        msgpack_find(frame->envelope.payload, "RunAccepted", &value, NULL))
        return RUN_FILE_ACCEPTED;
    return RUN_FILE_DAMAGED;
}

static uint32_t user_of(const struct rmp_header *header)
{
    if (header->schema_id != RMP_SCHEMA_CTRL_RESP)
        return RMP_USER_BUS;
    return header->msg_id <= UINT32_MAX ? (uint32_t)header->msg_id : RMP_USER_UNKNOWN;
}

enum run_file_found run_file_read(struct run_file_record *record, struct rmp_id run,
                                  struct slice bytes, uint32_t max_body)
{
    const struct rmp_rules rules = {&registry, max_body};
    struct rmp_frame frame = {.has_envelope = false};
    enum rmp_error error;
    size_t len;

    if (bytes.len < RMP_BODY_OFFSET)
        return RUN_FILE_CUT;
    error = rmp_frame_judge_head(&frame.header, slice_of(bytes.data, RMP_BODY_OFFSET), &rules);
    if (error != RMP_OK || !rmp_id_equal(frame.header.trace_id, run))
        return RUN_FILE_DAMAGED;
    len = RMP_BODY_OFFSET + frame.header.body_len;
    if (bytes.len < len)
        return RUN_FILE_CUT;
    /* At the beginning of time, since the frames of a file expired long ago. */
    if (rmp_frame_read_body(&frame, slice_of(bytes.data, len), &rules, 0) != RMP_OK)
        return RUN_FILE_DAMAGED;
    *record = (struct run_file_record){.msg_id = frame.header.msg_id,
                                       .at_ms = frame.header.created_at_ms,
                                       .user = user_of(&frame.header),
                                       .payload = frame.envelope.payload,
                                       .len = len};
    return kind_of(&frame);
}
