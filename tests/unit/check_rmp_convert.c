#include "build_config.h"

#include "rmp/convert.h"

#include "base/error.h"
#include "rmp/frame.h"
#include "suite.h"

/* --- the tables: JSON, and MsgPack in hexadecimal --- */

#define UUID_BIN "c410112233445566778899aabbccddeeff00"
#define UUID "11223344-5566-7788-99aa-bbccddeeff00"
#define KEY_TRACE "a874726163655f6964" /* "trace_id" */

struct row {
    const char *json, *msgpack;
};

static const struct row symmetric[] = {
    {"null", "c0"},
    {"true", "c3"},
    {"false", "c2"},
    {"0", "00"},
    {"-1", "ff"},
    {"127", "7f"},
    {"128", "cc80"},
    {"-32", "e0"},
    {"-33", "d0df"},
    {"9007199254740991", "cf001fffffffffffff"},
    {"-9007199254740991", "d3ffe0000000000001"},
    {"1.5", "cb3ff8000000000000"},
    {"0.1", "cb3fb999999999999a"},
    {"1e+300", "cb7e37e43c8800759c"},
    {"\"\"", "a0"},
    {"\"a\"", "a161"},
    {"\"\xc3\xa9\\\"\\\\\\n\\u0001\"", "a6c3a9225c0a01"},
    {"[]", "90"},
    {"{}", "80"},
    {"[1,[2,[]],{}]", "9301920290"
                      "80"},
    {"{\"a\":1,\"b\":[true]}", "82a16101a16291c3"},
    {"{\"trace_id\":\"" UUID "\"}", ("81" KEY_TRACE UUID_BIN)},
    {"{\"trace_id\":\"trace:1\"}", ("81" KEY_TRACE "a774726163653a31")},
    {"{\"trace_id\":\"9007199254740992\"}", ("81" KEY_TRACE "cf0020000000000000")},
    {"{\"a\":{\"trace_id\":\"" UUID "\"}}", ("81a16181" KEY_TRACE UUID_BIN)},
};

static const struct row to_json_only[] = {
    {"null", "cb7ff0000000000000"},
    {"null", "cb7ff8000000000000"},
    {"\"18446744073709551615\"", "cfffffffffffffffff"},
    {"\"-9223372036854775808\"", "d38000000000000000"},
    {"\"9007199254740992\"", "cf0020000000000000"},
    {"\"ESIzRFVmd4iZqrvM3e7/AA==\"", UUID_BIN},
    {"\"\"", "c400"},
    {"\"AQ==\"", "c40101"},
    {"\"AQI=\"", "c4020102"},
    {"\"AQID\"", "c403010203"},
    {"{\"trace_id\":\"AQI=\"}", ("81" KEY_TRACE "c4020102")},
    {"{\"trace_id\":[\"ESIzRFVmd4iZqrvM3e7/AA==\"]}", ("81" KEY_TRACE "91" UUID_BIN)},
    {"{\"ext\":-1,\"data\":\"AAAAAQ==\"}", "d6ff00000001"},
    {"{\"1\":2,\"-1\":3,\"true\":4}", "830102ff03c304"},
    {"\"\\ufffda\"", "a2ff61"},
};

static const struct row to_msgpack_only[] = {
    {" [ 1 , 2 ] ", "920102"},
    {"{ \"a\" : { } , \"b\" : [ ] }", "82a16180a16290"},
    {"-0", "00"},
    {"1.0", "cb3ff0000000000000"},
    {"18446744073709551615", "cfffffffffffffffff"},
    {"18446744073709551616", "cb43f0000000000000"},
    {"-9223372036854775807", "d38000000000000001"},
    {"-9223372036854775808", "cbc3e0000000000000"},
    {"\"\\u00e9\\ud83d\\ude00\"", "a6c3a9f09f9880"},
    {"\"\\ud800\"", "a3efbfbd"},
    {"\"11223344-5566-7788\"", "b231313232333334342d353536362d37373838"},
    {"{\"trac\\u0065_id\":\"" UUID "\"}", ("81" KEY_TRACE UUID_BIN)},
    {"{\"trace_id\":[\"7\"]}", ("81" KEY_TRACE "91a137")},
    {"{\"trace_id\":\"\"}", ("81" KEY_TRACE "a0")},
    {"{\"a\":\"b,c:[{\",\"d\":\"\\\"\"}", "82a161a6622c633a5b7ba164a122"},
};

/* --- */

static size_t from_hex(char *to, const char *hex)
{
    size_t len = strlen(hex) / 2;

    for (size_t i = 0; i < len; i++) {
        unsigned byte;

        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        to[i] = (char)byte;
    }
    return len;
}

static void expect_json(const struct row *row)
{
    struct json_text text = {.data = NULL};
    char bytes[256];
    size_t len = from_hex(bytes, row->msgpack);

    ck_assert(convert_to_json(&text, slice_of(bytes, len)));
    ck_assert(!text.failed);
    json_text_add(&text, slice_of("", 1));
    ck_assert_str_eq(text.data, row->json);
    json_text_free(&text);
}

static void expect_msgpack(const struct row *row)
{
    char bytes[256], *msgpack;
    size_t expected = from_hex(bytes, row->msgpack), len;

    ck_assert_int_eq(convert_to_msgpack(slice_of(row->json, strlen(row->json)), &msgpack, &len),
                     STDIO_BUS_OK);
    ck_assert_uint_eq(len, expected);
    ck_assert_mem_eq(msgpack, bytes, len);
    free(msgpack);
}

TEST_ROWS(both_ways, COUNT(symmetric))
{
    expect_json(&symmetric[row]);
    expect_msgpack(&symmetric[row]);
}

TEST_ROWS(to_json, COUNT(to_json_only))
{
    expect_json(&to_json_only[row]);
}

TEST_ROWS(to_msgpack, COUNT(to_msgpack_only))
{
    expect_msgpack(&to_msgpack_only[row]);
}

/* --- what cannot be converted --- */

static const char *const bad_msgpack[] = {
    "",       /* nothing */
    "92",     /* cut */
    "0101",   /* two values */
    "c1",     /* not MsgPack */
    "81c001", /* keys without a text */
    "819001", "81c4010101",
};

TEST_ROWS(not_convertible, COUNT(bad_msgpack))
{
    struct json_text text = {.data = NULL};
    char bytes[64];
    size_t len = from_hex(bytes, bad_msgpack[row]);

    ck_assert(!convert_to_json(&text, slice_of(bytes, len)));
    json_text_free(&text);
}

TEST(depth)
{
    struct json_text text = {.data = NULL};
    char json[2 * MSGPACK_MAX_DEPTH + 3], *msgpack;
    size_t half = MSGPACK_MAX_DEPTH, len;

    memset(json, '[', half);
    memset(json + half, ']', half);
    ck_assert_int_eq(convert_to_msgpack(slice_of(json, 2 * half), &msgpack, &len), STDIO_BUS_OK);
    ck_assert_uint_eq(len, half);
    ck_assert(convert_to_json(&text, slice_of(msgpack, len)));
    ck_assert_uint_eq(text.len, 2 * half);
    free(msgpack);
    json_text_free(&text);
    half++;
    memset(json, '[', half);
    memset(json + half, ']', half);
    ck_assert_int_eq(convert_to_msgpack(slice_of(json, 2 * half), &msgpack, &len),
                     STDIO_BUS_EINVAL);
    memset(json, '\x91', half);
    json[half - 1] = '\x90';
    ck_assert(!convert_to_json(&text, slice_of(json, half)));
    json_text_free(&text);
}

/* --- members of an object --- */

static const struct {
    const char *json, *key, *value; /* NULL: none */
} members[] = {
    {"{\"a\":1,\"b\":2}", "b", "2"},
    {"{\"a\":1,\"a\":2}", "a", "2"},
    {" { \"a\" : {\"b\":[1,2]} , \"b\" : 3 } ", "a", "{\"b\":[1,2]}"},
    {" { \"a\" : {\"b\":[1,2]} , \"b\" : 3 } ", "b", "3"},
    {"{\"a\":\"x,}\\\"\",\"b\":[]}\n", "b", "[]"},
    {"{\"a\":\"x,}\\\"\"}", "a", "\"x,}\\\"\""},
    {"{}", "a", NULL},
    {"[1]", "a", NULL},
    {"{\"b\":{\"a\":1}}", "a", NULL},
};

TEST_ROWS(member, COUNT(members))
{
    struct slice value;
    const char *json = members[row].json, *expected = members[row].value;

    ck_assert(convert_find(slice_of(json, strlen(json)), members[row].key, &value) ==
              (expected != NULL));
    if (expected == NULL)
        return;
    ck_assert_uint_eq(value.len, strlen(expected));
    ck_assert_mem_eq(value.data, expected, value.len);
}

/* --- UUIDs --- */

static const char *const not_uuids[] = {
    "",
    "11223344-5566-7788-99aa-bbccddeeff0",
    "11223344-5566-7788-99aa-bbccddeeff000",
    "11223344-5566-7788-99aa_bbccddeeff00",
    "11223344-5566-7788-99aa-bbccddeeffg0",
    "112233445566-7788-99aa-bbccddeeff000",
    "1122334-45566-7788-99aa-bbccddeeff00",
};

TEST(uuid)
{
    struct rmp_id id;
    char text[RMP_UUID_LEN + 1];

    ck_assert(rmp_uuid_read(slice_of(UUID, RMP_UUID_LEN), &id));
    ck_assert(id.high == UINT64_C(0x1122334455667788) && id.low == UINT64_C(0x99aabbccddeeff00));
    ck_assert_str_eq(rmp_uuid_write(text, id), UUID);
    ck_assert(rmp_uuid_read(slice_of("ABCDEFab-cdef-0000-0000-000000000001", RMP_UUID_LEN), &id));
    ck_assert_str_eq(rmp_uuid_write(text, id), "abcdefab-cdef-0000-0000-000000000001");
}

TEST_ROWS(not_uuid, COUNT(not_uuids))
{
    struct rmp_id id;

    ck_assert(!rmp_uuid_read(slice_of(not_uuids[row], strlen(not_uuids[row])), &id));
}
