#include "build_config.h"

#include "rmp/envelope.h"

enum { SEEN_TYPE = 1, SEEN_PAYLOAD = 2, SEEN_META = 4 };

/* The member of the envelope that a key names; 0: none. */
static unsigned member_of(const struct msgpack_value *key)
{
    if (msgpack_is(key, "type"))
        return SEEN_TYPE;
    if (msgpack_is(key, "payload"))
        return SEEN_PAYLOAD;
    return msgpack_is(key, "meta") ? SEEN_META : 0;
}

/* Notes the value of a member. False: it has another type than the member may have. */
static bool note_member(struct rmp_envelope *envelope, unsigned member,
                        const struct msgpack_value *value, struct slice raw)
{
    switch (member) {
    case SEEN_TYPE:
        envelope->type = value->bytes;
        return value->type == MSGPACK_STR;
    case SEEN_PAYLOAD:
        envelope->payload = raw;
        return value->type == MSGPACK_MAP || value->type == MSGPACK_BIN;
    case SEEN_META:
        envelope->meta = value->type == MSGPACK_MAP ? raw : slice_of(NULL, 0);
        return value->type == MSGPACK_MAP || value->type == MSGPACK_NIL;
    default:
        return true;
    }
}

/* Reads a key and its value. */
static bool read_member(struct rmp_envelope *envelope, struct slice *rest, unsigned *seen)
{
    struct msgpack_value key UNINITIALIZED, value UNINITIALIZED;
    struct slice at;
    unsigned member;

    if (!msgpack_read_whole(rest, MSGPACK_MAX_DEPTH - 1, &key))
        return false;
    member = member_of(&key);
    if (*seen & member)
        return false;
    *seen |= member;
    at = *rest;
    return msgpack_read_whole(rest, MSGPACK_MAX_DEPTH - 1, &value) &&
           note_member(envelope, member, &value, slice_of(at.data, at.len - rest->len));
}

enum rmp_error rmp_envelope_read(struct rmp_envelope *envelope, struct slice body)
{
    struct msgpack_value head UNINITIALIZED;
    unsigned seen = 0;

    *envelope = (struct rmp_envelope){.meta = {NULL, 0}};
    if (!msgpack_read(&body, &head) || head.type != MSGPACK_MAP)
        return RMP_BODY_DECODE_ERROR;
    for (uint32_t i = 0; i < head.count; i++) {
        if (!read_member(envelope, &body, &seen))
            return RMP_BODY_DECODE_ERROR;
    }
    if (body.len > 0 || (seen & (SEEN_TYPE | SEEN_PAYLOAD)) != (SEEN_TYPE | SEEN_PAYLOAD))
        return RMP_BODY_DECODE_ERROR;
    return RMP_OK;
}

void rmp_envelope_write(struct msgpack_writer *writer, const struct rmp_envelope *envelope)
{
    msgpack_put_map(writer, envelope->meta.len > 0 ? 3 : 2);
    msgpack_put_text(writer, "type");
    msgpack_put_str(writer, envelope->type);
    msgpack_put_text(writer, "payload");
    msgpack_put_raw(writer, envelope->payload);
    if (envelope->meta.len > 0) {
        msgpack_put_text(writer, "meta");
        msgpack_put_raw(writer, envelope->meta);
    }
}

struct slice rmp_envelope_topic(const struct rmp_envelope *envelope)
{
    struct msgpack_value topic UNINITIALIZED;

    if (!msgpack_find(envelope->meta, "topic", &topic, NULL) || topic.type != MSGPACK_STR)
        return slice_of(NULL, 0);
    return topic.bytes;
}

bool rmp_envelope_wants_ack(const struct rmp_envelope *envelope)
{
    struct msgpack_value ack UNINITIALIZED;

    return msgpack_find(envelope->meta, "ack", &ack, NULL) && ack.type == MSGPACK_BOOL &&
           ack.as.boolean;
}

bool rmp_id_of_value(const struct msgpack_value *value, struct rmp_id *id)
{
    if (value->type == MSGPACK_UINT)
        *id = (struct rmp_id){.high = 0, .low = value->as.uint};
    else if (value->type == MSGPACK_BIN && value->bytes.len == RMP_ID_LEN)
        *id = rmp_id_read(value->bytes.data);
    else
        return false;
    return true;
}
