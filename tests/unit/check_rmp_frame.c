/* Frames of RMP: the golden one, one fixture per error of the taxonomy, and pairs of errors, of
 * which the one that is judged first is reported. */
#include "build_config.h"

#include "base/error.h"
#include "rmp/frame.h"
#include "rmp/msgpack.h"
#include "rmp_fixture.h"
#include "suite.h"

static const struct rmp_schemas schemas;

static struct rmp_rules default_rules(void)
{
    return (struct rmp_rules){.schemas = &schemas, .max_body = RMP_MAX_BODY};
}

static void assert_text(struct slice text, const char *expected)
{
    ck_assert_uint_eq(text.len, strlen(expected));
    ck_assert_mem_eq(text.data, expected, text.len);
}

/* The string of that key. */
static void assert_member(struct slice map, const char *key, const char *expected)
{
    struct msgpack_value value;

    ck_assert(msgpack_find(map, key, &value, NULL));
    ck_assert_int_eq(value.type, MSGPACK_STR);
    assert_text(value.bytes, expected);
}

static void assert_golden_header(const struct rmp_header *header)
{
    ck_assert_uint_eq(header->schema_id, 10);
    ck_assert_uint_eq(header->body_len, 96);
    ck_assert_uint_eq(header->created_at_ms, UINT64_C(1731465600123));
    ck_assert_uint_eq(header->ttl_ms, 60000);
    ck_assert_uint_eq(header->trace_id.high, UINT64_C(0x1122334455667788));
    ck_assert_uint_eq(header->trace_id.low, UINT64_C(0x99aabbccddeeff00));
    ck_assert_uint_eq(header->msg_id, 42);
}

TEST(golden_frame_is_decoded)
{
    struct rmp_rules rules = default_rules();
    struct msgpack_value opening;
    struct rmp_frame frame;
    struct rmp_id id;

    ck_assert_int_eq(rmp_frame_read(&frame, golden_slice(), &rules, GOLDEN_NOW_MS), RMP_OK);
    assert_golden_header(&frame.header);
    ck_assert(frame.has_envelope);
    assert_text(frame.envelope.type, "error.report.v1");
    assert_member(frame.envelope.payload, "code", "tool.unavailable");
    assert_member(frame.envelope.payload, "message", "mailer offline");
    ck_assert(msgpack_find(frame.envelope.meta, "opening_id", &opening, NULL));
    ck_assert(rmp_id_of_value(&opening, &id));
    ck_assert(rmp_id_equal(id, (struct rmp_id){0, 1234}));
    ck_assert_ptr_eq(frame.wire.data, golden_frame);
    ck_assert_ptr_eq(frame.body.data, golden_frame + 68);
    ck_assert_uint_eq(frame.body.len, 96);
    ck_assert_uint_eq(rmp_envelope_topic(&frame.envelope).len, 0);
    ck_assert(!rmp_envelope_wants_ack(&frame.envelope));
}

/* Written from values, not from the slices of the frame that was read. */
TEST(golden_frame_is_encoded)
{
    char payload_bytes[64], meta_bytes[32], wire[GOLDEN_LEN + 1];
    struct msgpack_writer payload = {.to = payload_bytes, .size = sizeof payload_bytes};
    struct msgpack_writer meta = {.to = meta_bytes, .size = sizeof meta_bytes};
    struct rmp_header header = {
        .schema_id = RMP_SCHEMA_ERROR_REPORT,
        .created_at_ms = GOLDEN_CREATED_MS,
        .ttl_ms = 60000,
        .trace_id = {UINT64_C(0x1122334455667788), UINT64_C(0x99aabbccddeeff00)},
        .msg_id = 42};
    struct rmp_envelope envelope;

    msgpack_put_map(&payload, 2);
    msgpack_put_text(&payload, "code");
    msgpack_put_text(&payload, "tool.unavailable");
    msgpack_put_text(&payload, "message");
    msgpack_put_text(&payload, "mailer offline");
    msgpack_put_map(&meta, 1);
    msgpack_put_text(&meta, "opening_id");
    msgpack_put_uint(&meta, 1234);
    envelope = (struct rmp_envelope){.type = {"error.report.v1", 15},
                                     .payload = {payload_bytes, payload.len},
                                     .meta = {meta_bytes, meta.len}};
    for (size_t size = 0; size <= sizeof wire; size++)
        ck_assert_uint_eq(rmp_frame_write(wire, size, &header, &envelope), GOLDEN_LEN);
    ck_assert_mem_eq(wire, golden_frame, GOLDEN_LEN);
}

TEST(decoded_frame_is_encoded_to_the_same_bytes)
{
    struct rmp_rules rules = default_rules();
    struct rmp_frame frame;
    char wire[GOLDEN_LEN];

    ck_assert_int_eq(rmp_frame_read(&frame, golden_slice(), &rules, GOLDEN_NOW_MS), RMP_OK);
    ck_assert_uint_eq(rmp_frame_write(wire, sizeof wire, &frame.header, &frame.envelope),
                      GOLDEN_LEN);
    ck_assert_mem_eq(wire, golden_frame, GOLDEN_LEN);
}

/* --- the taxonomy --- */

/* What is wrong with a golden frame: bytes at an offset, a limit, the time, or what is missing of
 * its end. */
struct fault {
    enum rmp_error error;
    const char *name;
    unsigned at, len; /* len bytes of `bytes` */
    const char *bytes;
    unsigned cut; /* bytes of the end that are missing, frame_len as it is */
    uint32_t max_body;
    uint64_t now_ms;
};

static const struct fault faults[] = {
    {RMP_TRUNCATED_HEADER, "frame_len 63", .at = 0, .len = 4, .bytes = "\0\0\0\x3f"},
    {RMP_TRUNCATED_HEADER, "frame_len 0", .at = 0, .len = 4, .bytes = "\0\0\0\0"},
    {RMP_TRUNCATED_HEADER, "63 bytes of header", .cut = 97},
    {RMP_TRUNCATED_HEADER, "no bytes at all", .cut = GOLDEN_LEN},
    {RMP_INVALID_MAGIC, "RMP1", .at = 7, .len = 1, .bytes = "1"},
    {RMP_INVALID_MAGIC, "host-endian", .at = 4, .len = 4, .bytes = "0PMR"},
    {RMP_UNSUPPORTED_VERSION, "header_version 1", .at = 8, .len = 2, .bytes = "\0\1"},
    {RMP_UNSUPPORTED_VERSION, "header_len 72", .at = 10, .len = 2, .bytes = "\0\x48"},
    {RMP_UNSUPPORTED_VERSION, "host-endian", .at = 10, .len = 2, .bytes = "\x40\0"},
    {RMP_INVALID_HEADER_FLAGS, "flags", .at = 12, .len = 4, .bytes = "\0\0\0\1"},
    {RMP_INVALID_HEADER_FLAGS, "flags", .at = 12, .len = 4, .bytes = "\x80\0\0\0"},
    {RMP_INVALID_HEADER_FLAGS, "reserved2", .at = 18, .len = 2, .bytes = "\0\1"},
    {RMP_INVALID_HEADER_FLAGS, "reserved4", .at = 64, .len = 4, .bytes = "\0\0\0\1"},
    {RMP_LENGTH_MISMATCH, "body_len 97", .at = 20, .len = 4, .bytes = "\0\0\0\x61"},
    {RMP_LENGTH_MISMATCH, "body_len 95", .at = 20, .len = 4, .bytes = "\0\0\0\x5f"},
    {RMP_LENGTH_MISMATCH, "host-endian", .at = 20, .len = 4, .bytes = "\x60\0\0\0"},
    {RMP_LENGTH_MISMATCH, "its end is missing", .cut = 1},
    {RMP_BODY_TOO_LARGE, "limit 95", .max_body = 95},
    {RMP_UNKNOWN_SCHEMA, "schema 0", .at = 16, .len = 2, .bytes = "\0\0"},
    {RMP_UNKNOWN_SCHEMA, "schema 4660", .at = 16, .len = 2, .bytes = "\x12\x34"},
    {RMP_UNKNOWN_SCHEMA, "host-endian", .at = 16, .len = 2, .bytes = "\x0a\0"},
    {RMP_INVALID_TTL, "ttl 0", .at = 32, .len = 8, .bytes = "\0\0\0\0\0\0\0\0"},
    {RMP_INVALID_EXPIRY, "beyond 64 bits", .at = 24, .len = 8,
     .bytes = "\xff\xff\xff\xff\xff\xff\xff\xff"},
    {RMP_EXPIRED, "in this millisecond", .now_ms = GOLDEN_CREATED_MS + 60000},
    {RMP_EXPIRED, "long ago", .now_ms = UINT64_MAX},
    {RMP_BODY_DECODE_ERROR, "not MsgPack", .at = 68, .len = 1, .bytes = "\xc1"},
    {RMP_BODY_DECODE_ERROR, "a member more", .at = 68, .len = 1, .bytes = "\x84"},
    {RMP_BODY_DECODE_ERROR, "a member less", .at = 68, .len = 1, .bytes = "\x82"},
    {RMP_BODY_TYPE_MISMATCH, "another family", .at = 75, .len = 6, .bytes = "intent"},
    {RMP_BODY_TYPE_MISMATCH, "no version", .at = 88, .len = 1, .bytes = "w"},
};

static void apply(const struct fault *fault, char *wire, size_t *len, struct rmp_rules *rules,
                  uint64_t *now_ms)
{
    if (fault->len > 0)
        memcpy(wire + fault->at, fault->bytes, fault->len);
    if (*len > GOLDEN_LEN - fault->cut)
        *len = GOLDEN_LEN - fault->cut;
    if (fault->max_body > 0)
        rules->max_body = fault->max_body;
    if (fault->now_ms > 0)
        *now_ms = fault->now_ms;
}

/* Reads an exact copy of a golden frame with these faults. */
static enum rmp_error read_faulty(const struct fault *one, const struct fault *other,
                                  struct rmp_frame *frame)
{
    struct rmp_rules rules = default_rules();
    uint64_t now_ms = GOLDEN_NOW_MS;
    size_t len = GOLDEN_LEN;
    char wire[GOLDEN_LEN], *copy;
    enum rmp_error error;

    memcpy(wire, golden_frame, sizeof wire);
    apply(one, wire, &len, &rules, &now_ms);
    apply(other, wire, &len, &rules, &now_ms);
    copy = malloc(len > 0 ? len : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, wire, len);
    error = rmp_frame_read(frame, slice_of(copy, len), &rules, now_ms);
    free(copy);
    return error;
}

TEST_ROWS(each_error_has_a_fixture, COUNT(faults))
{
    struct rmp_frame frame;

    ck_assert_str_eq(rmp_error_name(read_faulty(&faults[row], &faults[row], &frame)),
                     rmp_error_name(faults[row].error));
    ck_assert(frame.has_envelope ==
              (faults[row].error >= RMP_INVALID_TTL && faults[row].error != RMP_BODY_DECODE_ERROR));
}

static bool overlap(const struct fault *a, const struct fault *b)
{
    return a->at < b->at + b->len && b->at < a->at + a->len;
}

TEST_ROWS(first_error_of_two_wins, COUNT(faults))
{
    const struct fault *one = &faults[row], *first;
    struct rmp_frame frame;

    for (size_t i = 0; i < COUNT(faults); i++) {
        const struct fault *other = &faults[i];

        if (overlap(one, other))
            continue;
        first = other->error < one->error ? other : one;
        ck_assert_msg(read_faulty(one, other, &frame) == first->error, "%s %s, %s %s",
                      rmp_error_name(one->error), one->name, rmp_error_name(other->error),
                      other->name);
    }
}

TEST(each_error_has_a_name_and_a_fixture)
{
    static const char *const names[] = {
        "Ok",
        "TruncatedHeader",
        "InvalidMagic",
        "UnsupportedVersion",
        "InvalidHeaderFlags",
        "LengthMismatch",
        "BodyTooLarge",
        "UnknownSchema",
        "InvalidTtl",
        "InvalidExpiry",
        "Expired",
        "BodyDecodeError",
        "BodyTypeMismatch",
        "Duplicate",
    };

    ck_assert_uint_eq(COUNT(names), RMP_ERROR_COUNT);
    for (unsigned error = 0; error < RMP_ERROR_COUNT; error++) {
        size_t i = 0;

        ck_assert_str_eq(rmp_error_name((enum rmp_error)error), names[error]);
        ck_assert_uint_gt(strlen(rmp_error_text((enum rmp_error)error)), 0);
        while (i < COUNT(faults) && faults[i].error != error)
            i++;
        /* Duplicate is the broker's. */
        ck_assert(i < COUNT(faults) || error == RMP_OK || error == RMP_DUPLICATE);
    }
}

TEST(body_at_the_limit_passes)
{
    struct rmp_rules rules = {.schemas = &schemas, .max_body = 96};
    struct rmp_frame frame;

    ck_assert_int_eq(rmp_frame_read(&frame, golden_slice(), &rules, GOLDEN_NOW_MS), RMP_OK);
}

/* A decoder that took the host's order for the wire's would read something else here. */
TEST(bytes_are_most_significant_first)
{
    char bytes[8];

    wire_put_u64(bytes, UINT64_C(0x0102030405060708));
    ck_assert_mem_eq(bytes, "\1\2\3\4\5\6\7\x08", 8);
    ck_assert_uint_eq(wire_get_u64(bytes), UINT64_C(0x0102030405060708));
    ck_assert_uint_eq(wire_get_u32(bytes + 3), UINT32_C(0x04050607));
    ck_assert_uint_eq(wire_get_u16(bytes + 1), 0x0203);
    wire_put_u32(bytes, UINT32_C(0xFFFEFDFC));
    ck_assert_uint_eq(wire_get_u32(bytes), UINT32_C(0xFFFEFDFC));
}

/* --- expiry --- */

static const struct {
    uint64_t created_at_ms, ttl_ms, now_ms;
    enum rmp_error error;
} expiries[] = {
    {1000, 1, 1000, RMP_OK},
    {1000, 1, 1001, RMP_EXPIRED},
    {1000, 1, 0, RMP_OK}, /* created in the future */
    {0, 1, 1, RMP_EXPIRED},
    {0, 0, 0, RMP_INVALID_TTL},
    {UINT64_MAX, 0, 0, RMP_INVALID_TTL},
    {UINT64_MAX, 1, 0, RMP_INVALID_EXPIRY},
    {1, UINT64_MAX, 0, RMP_INVALID_EXPIRY},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, RMP_INVALID_EXPIRY},
    {0, UINT64_MAX, UINT64_MAX - 1, RMP_OK},
    {0, UINT64_MAX, UINT64_MAX, RMP_EXPIRED},
    {UINT64_MAX - 1, 1, UINT64_MAX - 1, RMP_OK},
};

TEST_ROWS(expiry_is_exact, COUNT(expiries))
{
    struct rmp_header header = {.created_at_ms = expiries[row].created_at_ms,
                                .ttl_ms = expiries[row].ttl_ms};
    uint64_t expires_at_ms;

    ck_assert_int_eq(rmp_header_check_expiry(&header, expiries[row].now_ms), expiries[row].error);
    if (rmp_header_expiry(&header, &expires_at_ms) != RMP_INVALID_EXPIRY)
        ck_assert_uint_eq(expires_at_ms, header.created_at_ms + header.ttl_ms);
    else
        ck_assert_uint_eq(expires_at_ms, UINT64_MAX);
}
