#include "build_config.h"

#include "rmp/frame.h"

#include "base/assert.h"
#include "rmp/wire.h"

enum rmp_error rmp_frame_judge_head(struct rmp_header *header, struct slice head,
                                    const struct rmp_rules *rules)
{
    uint32_t frame_len;
    enum rmp_error error;

    if (head.len < RMP_BODY_OFFSET)
        return RMP_TRUNCATED_HEADER;
    frame_len = wire_get_u32(head.data);
    if (frame_len < RMP_HEADER_LEN)
        return RMP_TRUNCATED_HEADER;
    error = rmp_header_read(header, slice_of(head.data + RMP_PREFIX_LEN, RMP_HEADER_LEN));
    if (error != RMP_OK)
        return error;
    if (header->body_len != frame_len - RMP_HEADER_LEN)
        return RMP_LENGTH_MISMATCH;
    if (header->body_len > rules->max_body)
        return RMP_BODY_TOO_LARGE;
    return rmp_schemas_find(rules->schemas, header->schema_id) != NULL ? RMP_OK
                                                                       : RMP_UNKNOWN_SCHEMA;
}

bool rmp_frame_goes_on(enum rmp_error error, uint32_t frame_len, const struct rmp_header *header)
{
    switch (error) {
    case RMP_TRUNCATED_HEADER:
    case RMP_INVALID_MAGIC:
    case RMP_UNSUPPORTED_VERSION:
        return false;
    default:
        return frame_len - RMP_HEADER_LEN == header->body_len;
    }
}

/* The errors of the body alone. */
static enum rmp_error judge_body(struct rmp_frame *frame, const struct rmp_rules *rules)
{
    const struct rmp_schema *schema = rmp_schemas_find(rules->schemas, frame->header.schema_id);
    enum rmp_error error = rmp_envelope_read(&frame->envelope, frame->body);

    ASSERT(schema != NULL);
    frame->has_envelope = error == RMP_OK;
    if (error == RMP_OK && !rmp_schema_takes(schema, frame->envelope.type))
        return RMP_BODY_TYPE_MISMATCH;
    return error;
}

enum rmp_error rmp_frame_read_body(struct rmp_frame *frame, struct slice wire,
                                   const struct rmp_rules *rules, uint64_t now_ms)
{
    enum rmp_error expiry = rmp_header_check_expiry(&frame->header, now_ms), error;

    ASSERT(wire.len == RMP_BODY_OFFSET + (size_t)frame->header.body_len);
    frame->wire = wire;
    frame->body = slice_of(wire.data + RMP_BODY_OFFSET, wire.len - RMP_BODY_OFFSET);
    error = judge_body(frame, rules);
    return expiry != RMP_OK ? expiry : error;
}

enum rmp_error rmp_frame_read(struct rmp_frame *frame, struct slice wire,
                              const struct rmp_rules *rules, uint64_t now_ms)
{
    enum rmp_error error = rmp_frame_judge_head(&frame->header, wire, rules);

    frame->has_envelope = false;
    if ((error == RMP_OK || error > RMP_LENGTH_MISMATCH) &&
        wire.len != RMP_BODY_OFFSET + (size_t)frame->header.body_len)
        error = RMP_LENGTH_MISMATCH;
    if (error != RMP_OK)
        return error;
    return rmp_frame_read_body(frame, wire, rules, now_ms);
}

size_t rmp_frame_write(char *to, size_t size, const struct rmp_header *header,
                       const struct rmp_envelope *envelope)
{
    bool has_room = size > RMP_BODY_OFFSET;
    struct msgpack_writer body = {.to = has_room ? to + RMP_BODY_OFFSET : NULL,
                                  .size = has_room ? size - RMP_BODY_OFFSET : 0};
    struct rmp_header written = *header;

    rmp_envelope_write(&body, envelope);
    written.body_len = (uint32_t)body.len;
    if (has_room)
        rmp_header_write_prefixed(to, &written);
    return RMP_BODY_OFFSET + body.len;
}
