#include "build_config.h"

#include "rmp/frame.h"

#include <stdlib.h>

#include "base/archive.h"
#include "base/assert.h"

static const struct {
    const char *name, *text;
} errors[RMP_ERROR_COUNT] = {
    [RMP_OK] = {"Ok", "no error"},
    [RMP_TRUNCATED_HEADER] = {"TruncatedHeader", "the frame is shorter than its header"},
    [RMP_INVALID_MAGIC] = {"InvalidMagic", "the header does not begin with RMP0"},
    [RMP_UNSUPPORTED_VERSION] = {"UnsupportedVersion",
                                 "header_version is not 0, or header_len is not 64"},
    [RMP_INVALID_HEADER_FLAGS] = {"InvalidHeaderFlags",
                                  "flags, reserved2 or reserved4 is not zero"},
    [RMP_LENGTH_MISMATCH] = {"LengthMismatch", "frame_len is not header_len plus body_len"},
    [RMP_BODY_TOO_LARGE] = {"BodyTooLarge", "body_len exceeds max_body"},
    [RMP_UNKNOWN_SCHEMA] = {"UnknownSchema", "schema_id is not in the registry"},
    [RMP_INVALID_TTL] = {"InvalidTtl", "ttl_ms is 0"},
    [RMP_INVALID_EXPIRY] = {"InvalidExpiry", "created_at_ms plus ttl_ms exceeds 64 bits"},
    [RMP_EXPIRED] = {"Expired", "the message has expired"},
    [RMP_BODY_DECODE_ERROR] = {"BodyDecodeError", "the body is not a valid MsgPack envelope"},
    [RMP_BODY_TYPE_MISMATCH] = {"BodyTypeMismatch",
                                "the body's type is not of the family of schema_id"},
    [RMP_DUPLICATE] = {"Duplicate", "trace_id and msg_id were seen before"},
};

const char *rmp_error_name(enum rmp_error error)
{
    ASSERT(error < RMP_ERROR_COUNT);
    return errors[error].name;
}

const char *rmp_error_text(enum rmp_error error)
{
    ASSERT(error < RMP_ERROR_COUNT);
    return errors[error].text;
}

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

#define MAGIC UINT32_C(0x524D5030) /* RMP0 */

/* Where the fields are. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_LEN = 6,
    AT_FLAGS = 8,
    AT_SCHEMA = 12,
    AT_RESERVED2 = 14,
    AT_BODY_LEN = 16,
    AT_CREATED = 20,
    AT_TTL = 28,
    AT_TRACE = 36,
    AT_MSG = 52,
    AT_RESERVED4 = 60
};

struct rmp_id rmp_id_read(const char from[RMP_ID_LEN])
{
    return (struct rmp_id){.high = wire_get_u64(from), .low = wire_get_u64(from + 8)};
}

void rmp_id_write(char to[RMP_ID_LEN], struct rmp_id id)
{
    wire_put_u64(to, id.high);
    wire_put_u64(to + 8, id.low);
}

enum rmp_error rmp_header_read(struct rmp_header *header, struct slice bytes)
{
    const char *p = bytes.data;

    if (bytes.len < RMP_HEADER_LEN)
        return RMP_TRUNCATED_HEADER;
    *header = (struct rmp_header){
        .schema_id = wire_get_u16(p + AT_SCHEMA),
        .body_len = wire_get_u32(p + AT_BODY_LEN),
        .created_at_ms = wire_get_u64(p + AT_CREATED),
        .ttl_ms = wire_get_u64(p + AT_TTL),
        .trace_id = rmp_id_read(p + AT_TRACE),
        .msg_id = wire_get_u64(p + AT_MSG),
    };
    if (wire_get_u32(p + AT_MAGIC) != MAGIC)
        return RMP_INVALID_MAGIC;
    if (wire_get_u16(p + AT_VERSION) != 0 || wire_get_u16(p + AT_LEN) != RMP_HEADER_LEN)
        return RMP_UNSUPPORTED_VERSION;
    if (wire_get_u32(p + AT_FLAGS) != 0 || wire_get_u16(p + AT_RESERVED2) != 0 ||
        wire_get_u32(p + AT_RESERVED4) != 0)
        return RMP_INVALID_HEADER_FLAGS;
    return RMP_OK;
}

void rmp_header_write(char to[RMP_HEADER_LEN], const struct rmp_header *header)
{
    wire_put_u32(to + AT_MAGIC, MAGIC);
    wire_put_u16(to + AT_VERSION, 0);
    wire_put_u16(to + AT_LEN, RMP_HEADER_LEN);
    wire_put_u32(to + AT_FLAGS, 0);
    wire_put_u16(to + AT_SCHEMA, header->schema_id);
    wire_put_u16(to + AT_RESERVED2, 0);
    wire_put_u32(to + AT_BODY_LEN, header->body_len);
    wire_put_u64(to + AT_CREATED, header->created_at_ms);
    wire_put_u64(to + AT_TTL, header->ttl_ms);
    rmp_id_write(to + AT_TRACE, header->trace_id);
    wire_put_u64(to + AT_MSG, header->msg_id);
    wire_put_u32(to + AT_RESERVED4, 0);
}

void rmp_header_write_prefixed(char to[RMP_BODY_OFFSET], const struct rmp_header *header)
{
    wire_put_u32(to, RMP_HEADER_LEN + header->body_len);
    rmp_header_write(to + RMP_PREFIX_LEN, header);
}

/* The sum of two 64-bit numbers always fits in 128 bits: what is left of RMP 4 is that it may not
 * fit in 64. */
enum rmp_error rmp_header_expiry(const struct rmp_header *header, uint64_t *expires_at_ms)
{
    bool fits = header->ttl_ms <= UINT64_MAX - header->created_at_ms;

    *expires_at_ms = fits ? header->created_at_ms + header->ttl_ms : UINT64_MAX;
    if (header->ttl_ms == 0)
        return RMP_INVALID_TTL;
    return fits ? RMP_OK : RMP_INVALID_EXPIRY;
}

enum rmp_error rmp_header_check_expiry(const struct rmp_header *header, uint64_t now_ms)
{
    uint64_t expires_at_ms;
    enum rmp_error error = rmp_header_expiry(header, &expires_at_ms);

    return error == RMP_OK && now_ms >= expires_at_ms ? RMP_EXPIRED : error;
}

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
    struct msgpack_writer body = {.to = NULL};
    struct rmp_header written = *header;

    if (has_room)
        body = (struct msgpack_writer){.to = to + RMP_BODY_OFFSET, .size = size - RMP_BODY_OFFSET};
    rmp_envelope_write(&body, envelope);
    written.body_len = (uint32_t)body.len;
    if (has_room)
        rmp_header_write_prefixed(to, &written);
    return RMP_BODY_OFFSET + body.len;
}

#define META_ROOM 64 /* bytes of meta beside the topic */

static void put_meta(struct msgpack_writer *writer, const struct rmp_draft *draft)
{
    bool has_topic = draft->topic.len > 0, has_ended = draft->ended != NULL;

    if (!has_topic && !draft->ack && !has_ended)
        return;
    msgpack_put_map(writer, (uint32_t)has_topic + draft->ack + has_ended);
    if (has_topic) {
        msgpack_put_text(writer, "topic");
        msgpack_put_str(writer, draft->topic);
    }
    if (draft->ack) {
        msgpack_put_text(writer, "ack");
        msgpack_put_bool(writer, true);
    }
    if (has_ended) {
        msgpack_put_text(writer, "ended");
        msgpack_put_text(writer, draft->ended);
    }
}

char *rmp_compose(const struct rmp_draft *draft, size_t *len)
{
    size_t meta_room = draft->topic.len + META_ROOM, size;
    char *meta = malloc(meta_room), *frame = NULL;
    struct msgpack_writer writer = {.to = meta, .size = meta_room};
    struct rmp_envelope envelope = {.type = slice_of_text(draft->type), .payload = draft->payload};

    if (meta == NULL)
        return NULL;
    put_meta(&writer, draft);
    envelope.meta = slice_of(meta, writer.len);
    size = rmp_frame_write(NULL, 0, &draft->header, &envelope);
    frame = malloc(size);
    if (frame != NULL)
        *len = rmp_frame_write(frame, size, &draft->header, &envelope);
    free(meta);
    return frame;
}

static bool is_dash_at(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

const char *rmp_uuid_write(char to[RMP_UUID_LEN + 1], struct rmp_id id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned digit = 0;

    for (size_t at = 0; at < RMP_UUID_LEN; at++) {
        uint64_t half = digit < 16 ? id.high : id.low;

        if (is_dash_at(at)) {
            to[at] = '-';
            continue;
        }
        to[at] = digits[half >> (60 - 4 * (digit % 16)) & 15];
        digit++;
    }
    to[RMP_UUID_LEN] = '\0';
    return to;
}

/* The value of a hexadecimal digit; 16: it is none. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

bool rmp_uuid_read(struct slice text, struct rmp_id *id)
{
    unsigned count = 0;

    if (text.len != RMP_UUID_LEN)
        return false;
    *id = (struct rmp_id){0, 0};
    for (size_t at = 0; at < RMP_UUID_LEN; at++) {
        unsigned digit = digit_value(text.data[at]);
        uint64_t *half = count < 16 ? &id->high : &id->low;

        if (is_dash_at(at) && text.data[at] == '-')
            continue;
        if (is_dash_at(at) || digit > 15)
            return false;
        *half = *half << 4 | digit;
        count++;
    }
    return true;
}

void rmp_header_archive(struct archive *archive, struct rmp_header *header)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_header, schema_id, body_len, created_at_ms, ttl_ms, trace_id,
                         msg_id),
    };

    ARCHIVE_FIELDS(archive, header, fields);
}
