/* Bodies of frames: the envelope, its types, and the registry of schemas. */
#include "build_config.h"

#include "base/error.h"
#include "rmp/frame.h"
#include "rmp/peer.h"
#include "rmp/schemas.h"
#include "suite.h"

#define BODY(text) text, sizeof(text) - 1
#define TYPE                                                                                       \
    "\xa4"                                                                                         \
    "type\xa1"                                                                                     \
    "t"
#define PAYLOAD                                                                                    \
    "\xa7"                                                                                         \
    "payload\x80"
#define META                                                                                       \
    "\xa4"                                                                                         \
    "meta"

static const struct {
    const char *body;
    size_t len;
    bool good;
} bodies[] = {
    {BODY("\x82" TYPE PAYLOAD), true},
    {BODY("\x82" PAYLOAD TYPE), true},
    {BODY("\xde\x00\x02" TYPE PAYLOAD), true},
    {BODY("\xdf\x00\x00\x00\x02" TYPE PAYLOAD), true},
    {BODY("\x83" TYPE PAYLOAD META "\x80"), true},
    {BODY("\x83" TYPE PAYLOAD META "\xc0"), true},
    {BODY("\x83" META "\x81\xc0\xc0" PAYLOAD TYPE), true},
    {BODY("\x82" TYPE "\xa7"
          "payload\xc4\x00"),
     true},
    {BODY("\x82" TYPE "\xa7"
          "payload\xc4\x02xy"),
     true},
    {BODY("\x82\xd9\x04type\xd9\x01t" PAYLOAD), true},
    {BODY("\x82\xda\x00\x04type\xdb\x00\x00\x00\x01t" PAYLOAD), true},
    /* unknown keys, of any type */
    {BODY("\x84\xa1x\x93\x01\x02\x03" TYPE "\x05\xc3" PAYLOAD), true},
    {BODY("\x84" TYPE PAYLOAD "\xa1x\xc0\xa1x\xc0"), true},
    {BODY("\x83" TYPE PAYLOAD "\xc4\x04meta\x01"), true},
    /* no map, or not only one */
    {BODY(""), false},
    {BODY("\x80"), false},
    {BODY("\xc0"), false},
    {BODY("\x01"), false},
    {BODY("\x90"), false},
    {BODY("\xa2{}"), false},
    {BODY("\xc1"), false},
    {BODY("\x82" TYPE PAYLOAD "\xc0"), false},
    {BODY("\x82" TYPE PAYLOAD "\x00"), false},
    /* missing, twice, or of another type */
    {BODY("\x81" TYPE), false},
    {BODY("\x81" PAYLOAD), false},
    {BODY("\x83" TYPE TYPE PAYLOAD), false},
    {BODY("\x83" TYPE PAYLOAD PAYLOAD), false},
    {BODY("\x84" TYPE PAYLOAD META "\xc0" META "\xc0"), false},
    {BODY("\x82\xa4type\x01" PAYLOAD), false},
    {BODY("\x82\xa4type\xc4\x01t" PAYLOAD), false},
    {BODY("\x82" TYPE "\xa7"
          "payload\xc0"),
     false},
    {BODY("\x82" TYPE "\xa7"
          "payload\xa1x"),
     false},
    {BODY("\x82" TYPE "\xa7"
          "payload\x90"),
     false},
    {BODY("\x83" TYPE PAYLOAD META "\x90"), false},
    {BODY("\x83" TYPE PAYLOAD META "\xc2"), false},
    {BODY("\x82\xa4Type\xa1t" PAYLOAD), false},
    {BODY("\x82\xa5type \xa1t" PAYLOAD), false},
};

static enum rmp_error read_copy(struct rmp_envelope *envelope, const char *body, size_t len)
{
    char *copy = malloc(len + (len == 0));
    enum rmp_error error;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, body, len);
    error = rmp_envelope_read(envelope, slice_of(copy, len));
    free(copy);
    return error;
}

TEST_ROWS(bodies_are_judged, COUNT(bodies))
{
    struct rmp_envelope envelope;

    ck_assert_int_eq(read_copy(&envelope, bodies[row].body, bodies[row].len),
                     bodies[row].good ? RMP_OK : RMP_BODY_DECODE_ERROR);
}

TEST_ROWS(every_part_of_a_body_is_refused, COUNT(bodies))
{
    struct rmp_envelope envelope;

    for (size_t len = 0; len < bodies[row].len && bodies[row].good; len++)
        ck_assert_int_eq(read_copy(&envelope, bodies[row].body, len), RMP_BODY_DECODE_ERROR);
}

/* The envelope is the first level of 128. */
TEST(nesting_is_bounded)
{
    static const char *const open[] = {"\x91", "\x81\x01", "\xdc\x00\x01",
                                       "\xdf\x00\x00\x00\x01\xc0"};
    static const size_t lens[] = {1, 2, 3, 6};

    for (size_t kind = 0; kind < COUNT(open); kind++) {
        for (size_t levels = 125; levels <= 130; levels++) {
            struct text body = {NULL, 0, 0};
            struct rmp_envelope envelope;

            text_add(&body, BODY("\x83" TYPE PAYLOAD "\xa1x"));
            for (size_t i = 1; i < levels; i++)
                text_add(&body, open[kind], lens[kind]);
            text_add(&body, "\xc0", 1);
            ck_assert_int_eq(read_copy(&envelope, body.data, body.len),
                             levels <= 128 ? RMP_OK : RMP_BODY_DECODE_ERROR);
            text_free(&body);
        }
    }
}

TEST(nested_keys_are_bounded)
{
    struct text body = {NULL, 0, 0};
    struct rmp_envelope envelope;

    text_add(&body, BODY("\x83" TYPE PAYLOAD));
    text_fill(&body, (char)0x91, 128);
    text_add(&body, "\xc0\xc0", 2);
    ck_assert_int_eq(read_copy(&envelope, body.data, body.len), RMP_BODY_DECODE_ERROR);
    text_free(&body);
}

TEST(members_are_slices_of_the_body)
{
    struct slice body = {BODY("\x83" META "\x82\xa5topic\xa3"
                              "a/b\xa3"
                              "ack\xc3" PAYLOAD TYPE)};
    struct rmp_envelope envelope;

    ck_assert_int_eq(rmp_envelope_read(&envelope, body), RMP_OK);
    ck_assert(slice_equal(envelope.type, slice_of("t", 1)));
    ck_assert(slice_equal(envelope.payload, slice_of("\x80", 1)));
    ck_assert_ptr_eq(envelope.meta.data, body.data + 6);
    ck_assert_uint_eq(envelope.meta.len, 16);
    ck_assert(slice_equal(rmp_envelope_topic(&envelope), slice_of("a/b", 3)));
    ck_assert(rmp_envelope_wants_ack(&envelope));
}

TEST(meta_that_is_nil_is_none)
{
    struct rmp_envelope envelope;
    char written[32];
    struct msgpack_writer writer = {.to = written, .size = sizeof written};

    ck_assert_int_eq(rmp_envelope_read(&envelope, slice_of(BODY("\x83" META "\xc0" PAYLOAD TYPE))),
                     RMP_OK);
    ck_assert_uint_eq(envelope.meta.len, 0);
    ck_assert_uint_eq(rmp_envelope_topic(&envelope).len, 0);
    rmp_envelope_write(&writer, &envelope);
    ck_assert(msgpack_fits(&writer));
    ck_assert(slice_equal(slice_of(written, writer.len), slice_of(BODY("\x82" TYPE PAYLOAD))));
}

static const struct {
    const char *meta;
    size_t len;
    const char *topic;
    bool ack;
} metas[] = {
    {BODY("\x80"), "", false},
    {BODY("\x81\xa5topic\xa1t"), "t", false},
    {BODY("\x82\xa5topic\xa1t\xa5topic\xa1u"), "t", false},
    {BODY("\x81\xa5topic\x01"), "", false},
    {BODY("\x81\xc4\x05topic\xa1t"), "", false},
    {BODY("\x82\x91\xa5topic\xa1t\xa3"
          "ack\xc3"),
     "", true},
    {BODY("\x81\xa3"
          "ack\xc2"),
     "", false},
    {BODY("\x81\xa3"
          "ack\x01"),
     "", false},
    {BODY("\x82\xa3"
          "ack\xc3\xa5topic\xa0"),
     "", true},
    {BODY("\x81\xa1x\x81\xa5topic\xa1t"), "", false},
};

TEST_ROWS(meta_has_topic_and_ack, COUNT(metas))
{
    struct rmp_envelope envelope = {.meta = {metas[row].meta, metas[row].len}};
    struct slice topic = rmp_envelope_topic(&envelope);

    ck_assert(slice_equal(topic, slice_of(metas[row].topic, strlen(metas[row].topic))));
    ck_assert(rmp_envelope_wants_ack(&envelope) == metas[row].ack);
}

TEST(ids_are_bin_or_unsigned)
{
    struct slice bin = {BODY("\xc4\x10\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")};
    struct slice others[] = {{BODY("\xff")}, {BODY("\xc4\x01x")}, {BODY("\xa1x")}, {BODY("\xc0")}};
    struct slice max = {BODY("\xcf\xff\xff\xff\xff\xff\xff\xff\xff")};
    struct msgpack_value value;
    struct rmp_id id;
    char again[RMP_ID_LEN];

    ck_assert(msgpack_read(&bin, &value) && rmp_id_of_value(&value, &id));
    ck_assert_uint_eq(id.high, UINT64_C(0x0001020304050607));
    ck_assert_uint_eq(id.low, UINT64_C(0x08090a0b0c0d0e0f));
    rmp_id_write(again, id);
    ck_assert_mem_eq(again, value.bytes.data, RMP_ID_LEN);
    ck_assert(msgpack_read(&max, &value) && rmp_id_of_value(&value, &id));
    ck_assert(rmp_id_equal(id, (struct rmp_id){0, UINT64_MAX}));
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert(msgpack_read(&others[i], &value) && !rmp_id_of_value(&value, &id));
}

/* --- types --- */

static const struct {
    const char *type;
    bool good;
} types[] = {
    {"error.report.v1", true},
    {"intent.a.b.c.d.v12", true},
    {"observation.A-b_9.v1", true},
    {"error.v1.v1", true},
    {"artifact.x.v999999999999999999999999999999", true},
    {"", false},
    {"error", false},
    {"error.v1", false},
    {"error.report", false},
    {"error.report.v", false},
    {"error.report.v0", false},
    {"error.report.v01", false},
    {"error.report.v1a", false},
    {"error.report.V1", false},
    {"error.report.1", false},
    {"error.report.v1.", false},
    {".error.report.v1", false},
    {"error..v1", false},
    {"error.re port.v1", false},
    {"error.r\xC3\xA9.v1", false},
    {"errors.report.v1", false},
    {"erro.report.v1", false},
    {"Error.report.v1", false},
    {"unknown.report.v1", false},
};

TEST_ROWS(types_have_family_kind_and_version, COUNT(types))
{
    struct slice type = {types[row].type, strlen(types[row].type)};

    ck_assert(rmp_type_is_valid(type) == types[row].good);
}

TEST(type_is_of_the_family_of_its_schema)
{
    static const struct rmp_schemas schemas;
    const struct rmp_schema *report = rmp_schemas_find(&schemas, RMP_SCHEMA_ERROR_REPORT);
    const struct rmp_schema *notice = rmp_schemas_find(&schemas, RMP_SCHEMA_BUS_DROP_NOTICE);

    ck_assert_str_eq(report->type, "error.report.v1");
    ck_assert(rmp_schema_takes(report, slice_of(BODY("error.report.v1"))));
    ck_assert(rmp_schema_takes(report, slice_of(BODY("error.report.v2"))));
    ck_assert(rmp_schema_takes(notice, slice_of(BODY("error.another.kind.v1"))));
    ck_assert(!rmp_schema_takes(report, slice_of(BODY("intent.report.v1"))));
    ck_assert(!rmp_schema_takes(report, slice_of(BODY("err.report.v1"))));
    ck_assert(!rmp_schema_takes(report, slice_of(BODY("error.report"))));
    ck_assert(!rmp_schema_takes(report, slice_of(BODY(""))));
}

/* --- the registry --- */

TEST(public_registry)
{
    static const struct rmp_schemas schemas;
    unsigned count = 0;

    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const struct rmp_schema *schema = rmp_schemas_find(&schemas, (uint16_t)id);

        if (schema == NULL)
            continue;
        count++;
        ck_assert_uint_eq(schema->id, id);
        ck_assert(rmp_type_is_valid(slice_of(schema->type, strlen(schema->type))));
        ck_assert_ptr_eq(rmp_schemas_of_type(&schemas,
                                             slice_of(schema->type, strlen(schema->type))),
                         schema);
    }
    ck_assert_uint_eq(count, 36);
    ck_assert_ptr_null(rmp_schemas_find(&schemas, 0));
    ck_assert_ptr_null(rmp_schemas_of_type(&schemas, slice_of("intent", 6)));
}

TEST(schemas_are_added)
{
    struct rmp_schemas schemas = {.added = NULL};
    struct slice type = {BODY("intent.my.thing.v1")};

    for (unsigned id = 5000; id > 4950; id--)
        ck_assert_int_eq(rmp_schemas_add(&schemas, (uint16_t)id, type), STDIO_BUS_OK);
    ck_assert_int_eq(rmp_schemas_add(&schemas, UINT16_MAX, type), STDIO_BUS_OK);
    ck_assert_int_eq(rmp_schemas_add(&schemas, 4960, type), STDIO_BUS_EINVAL);
    ck_assert_int_eq(rmp_schemas_add(&schemas, 10, type), STDIO_BUS_EINVAL);
    ck_assert_int_eq(rmp_schemas_add(&schemas, 0, type), STDIO_BUS_EINVAL);
    ck_assert_int_eq(rmp_schemas_add(&schemas, 4660, slice_of("thing.v1", 8)), STDIO_BUS_EINVAL);
    for (unsigned id = 4951; id <= 5000; id++)
        ck_assert_str_eq(rmp_schemas_find(&schemas, (uint16_t)id)->type, "intent.my.thing.v1");
    ck_assert_ptr_null(rmp_schemas_find(&schemas, 4660));
    ck_assert_uint_eq(rmp_schemas_of_type(&schemas, type)->id, 4951);
    ck_assert_uint_eq(rmp_schemas_find(&schemas, 4001)->id, 4001);
    rmp_schemas_free(&schemas);
    ck_assert_ptr_null(rmp_schemas_find(&schemas, 4960));
}

TEST(kinds)
{
    enum rmp_kind kind;

    ck_assert(rmp_kind_read(slice_of("Agent", 5), &kind) && kind == RMP_KIND_AGENT);
    ck_assert(rmp_kind_read(slice_of("ui", 2), &kind) && kind == RMP_KIND_UI);
    ck_assert(rmp_kind_read(slice_of("TUI", 3), &kind) && kind == RMP_KIND_TUI);
    ck_assert(!rmp_kind_read(slice_of("", 0), &kind));
    ck_assert(!rmp_kind_read(slice_of("u", 1), &kind));
    ck_assert(!rmp_kind_read(slice_of("uis", 3), &kind));
}
