/* The JSON dialect of the RMP socket: commands are read exactly, or not at all; answers are written
 * as public clients read them. */
#include "build_config.h"

#include <inttypes.h>

#include "rmp/command.h"
#include "rmp/msgpack.h"
#include "rmp/reply.h"
#include "suite.h"

/* The text, with ' in place of ". */
static struct text quoted(const char *json)
{
    struct text text = {NULL, 0, 0};

    text_add(&text, json, strlen(json));
    text_quote(&text, 0);
    return text;
}

/* Reads an exact copy, into a work area that is none too large. Both are the caller's to free. */
static bool read_command(struct rmp_command *command, const char *json, size_t len, char **copy,
                         char **work)
{
    *copy = malloc(len + (len == 0));
    *work = malloc(RMP_COMMAND_WORK(len));
    ck_assert(*copy != NULL && *work != NULL);
    memcpy(*copy, json, len);
    return rmp_command_read(command, slice_of(*copy, len), *work);
}

static bool is_good(const char *json, size_t len)
{
    struct rmp_command command;
    char *copy, *work;
    bool good = read_command(&command, json, len, &copy, &work);

    free(copy);
    free(work);
    return good;
}

#define HEADER_START "{'header_version':0,'header_len':64,'flags':0,"
#define HEADER_REST                                                                                \
    "'schema_id':3003,'body_len':3,'created_at_ms':1700000000000,'ttl_ms':30000,"                  \
    "'trace_id':22774453838368691933757882222884355840,'msg_id':7}"
#define HEADER HEADER_START HEADER_REST
#define PUBLISH_START "{'Publish':{'id':1,'topic':'a/b','message':{'header':"
#define PUBLISH PUBLISH_START HEADER ",'body':[1,2,255]}}}"

TEST(publish_is_read)
{
    struct text json = quoted(PUBLISH);
    struct rmp_command command;
    char *copy, *work;

    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    ck_assert_int_eq(command.type, RMP_PUBLISH);
    ck_assert_uint_eq(command.id, 1);
    ck_assert(slice_equal(command.topic, slice_of("a/b", 3)));
    ck_assert_uint_eq(command.header.schema_id, 3003);
    ck_assert_uint_eq(command.header.body_len, 3);
    ck_assert_uint_eq(command.header.created_at_ms, UINT64_C(1700000000000));
    ck_assert_uint_eq(command.header.ttl_ms, 30000);
    ck_assert_uint_eq(command.header.trace_id.high, UINT64_C(0x1122334455667788));
    ck_assert_uint_eq(command.header.trace_id.low, UINT64_C(0x99aabbccddeeff00));
    ck_assert_uint_eq(command.header.msg_id, 7);
    ck_assert(slice_equal(command.body, slice_of("\1\2\xff", 3)));
    ck_assert_ptr_eq(command.body.data, work + RMP_BODY_OFFSET);
    free(copy);
    free(work);
    text_free(&json);
}

TEST(every_part_of_a_command_is_refused)
{
    struct text json = quoted(PUBLISH);

    for (size_t len = 0; len < json.len; len++)
        ck_assert(!is_good(json.data, len));
    ck_assert(is_good(json.data, json.len));
    text_free(&json);
}

/* One byte more or another byte anywhere: whatever happens, it stays within the text. */
TEST(changed_commands_are_read_or_refused)
{
    struct text json = quoted(PUBLISH);

    for (size_t at = 0; at < json.len; at++) {
        char was = json.data[at];

        for (unsigned byte = 0; byte < 256; byte++) {
            json.data[at] = (char)byte;
            is_good(json.data, json.len);
        }
        json.data[at] = was;
    }
    text_free(&json);
}

TEST(body_becomes_a_frame)
{
    struct text json = quoted(PUBLISH);
    struct rmp_command command;
    struct rmp_header header;
    char *copy, *work;

    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    command.header.body_len = (uint32_t)command.body.len;
    rmp_header_write_prefixed(work, &command.header);
    ck_assert_uint_eq(wire_get_u32(work), 64 + 3);
    ck_assert_int_eq(rmp_header_read(&header, slice_of(work + 4, 64)), RMP_OK);
    ck_assert(rmp_id_equal(header.trace_id, command.header.trace_id));
    ck_assert_mem_eq(work + 68, "\1\2\xff", 3);
    free(copy);
    free(work);
    text_free(&json);
}

/* --- what is a command --- */

#define BODY(elements) PUBLISH_START HEADER ",'body':" elements "}}}"
#define SUBSCRIBE(members) "{'Subscribe':{" members "}}"
#define DEEP_4(x) x x x x
#define DEEP_16(x) DEEP_4(x) DEEP_4(x) DEEP_4(x) DEEP_4(x)
#define DEEP_128(x)                                                                                \
    DEEP_16(x) DEEP_16(x) DEEP_16(x) DEEP_16(x) DEEP_16(x) DEEP_16(x) DEEP_16(x) DEEP_16(x)

static const char *const good[] = {
    "{'Hello':{'kind':'Agent'}}",
    "{'Hello':{'kind':'Ui'}}",
    "{'Hello':{'kind':'Tui'}}",
    "{'Hello':{'kind':'\\u0041gent'}}",
    "{'\\u0048ello':{'\\u006bind':'Agent'}}",
    " \t\r\n{ 'Hello' : { 'kind' : 'Agent' } } \n",
    "{'Hello':{'other':[1,{'a':null}],'kind':'Agent','more':-1.5e+3}}",
    "{'Unsubscribe':{'sub_id':18446744073709551615}}",
    SUBSCRIBE("'id':0,'topic':'','sub_id':0"),
    SUBSCRIBE("'sub_id':2,'topic':'a','id':3"),
    SUBSCRIBE("'replay':true,'sub_id':2,'topic':'a','id':3"),
    SUBSCRIBE("'sub_id':2,'topic':'a','id':3,'replay':false"),
    SUBSCRIBE("'x':'\\ud83d\\ude00','id':1,'topic':'\xC3\xA9','sub_id':1"),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'x':" DEEP_128("[") DEEP_128("]")),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'x':[[],{},[{}],{'a':{}},0,-0,1E9,true,false]"),
    BODY("[]"),
    BODY("[ ]"),
    BODY("[0]"),
    BODY("[ 0 , 255 ]"),
    "{'Publish':{'message':{'body':[1],'header':" HEADER "},'topic':'a','id':1}}",
    PUBLISH_START HEADER_START "'x':{}," HEADER_REST ",'body':[1]}}}",
};

static const char *const bad[] = {
    "",
    " ",
    "{}",
    "[]",
    "1",
    "'HelloAck'",
    "'Hello'",
    "{'Hello':{'kind':'Agent'}}x",
    "{'Hello':{'kind':'Agent'}} {}",
    "{'Hello':{'kind':'Agent'},'Hello':{'kind':'Agent'}}",
    "{'Hello':{'kind':'Agent'},}",
    "{'Hello':{'kind':'Agent',}}",
    "{'Hello':{'kind':'Agent','kind':'Agent'}}",
    "{'Hello':{'kind':'Agent','k\\u0069nd':'Agent'}}",
    "{'Hello':{'kind':'Robot'}}",
    "{'Hello':{'kind':1}}",
    "{'Hello':{'kind':null}}",
    "{'Hello':{}}",
    "{'Hello':['Agent']}",
    "{'Hello':null}",
    "{'hello':{'kind':'Agent'}}",
    "{'HelloAck':{'kind':'Agent'}}",
    "{'Hello':{'x':1}}",
    "{'Hello':{'kind':'Agent','x':}}",
    "{'Hello':{'kind':'Agent','x':[1,]}}",
    "{'Hello':{'kind':'Agent','x':{'a':1,}}}",
    "{'Hello':{'kind':'Agent','x':{'a'}}}",
    "{'Hello':{'kind':'Agent','x':{1:1}}}",
    "{'Hello':{'kind':'Agent','x':[1}}}",
    "{'Hello':{'kind':'Agent','x':01}}",
    "{'Hello':{'kind':'Agent','x':1.}}",
    "{'Hello':{'kind':'Agent','x':.5}}",
    "{'Hello':{'kind':'Agent','x':1e}}",
    "{'Hello':{'kind':'Agent','x':+1}}",
    "{'Hello':{'kind':'Agent','x':-}}",
    "{'Hello':{'kind':'Agent','x':tru}}",
    "{'Hello':{'kind':'Agent','x':True}}",
    "{'Hello':{'kind':'Agent','x':'\\x'}}",
    "{'Hello':{'kind':'Agent','x':'\\u12g4'}}",
    "{'Hello':{'kind':'Agent','x':'\n'}}",
    "{'Hello':{'kind':'Agent','x':'\xFF'}}",
    "{'Hello':{'kind':'Agent','x':'\xC3'}}",
    "{'Hello':{'kind':'Agent','x':'\xED\xA0\x80'}}",
    "{'Hello':{'kind':'Agent','\xFF':1}}",
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'x':[" DEEP_128("[") DEEP_128("]") "]"),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'replay':1"),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'replay':tru"),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'replay':null"),
    SUBSCRIBE("'id':1,'topic':'a','sub_id':1,'replay':true,'replay':true"),
    SUBSCRIBE("'id':1,'topic':'a','replay':true"),
    SUBSCRIBE("'id':1,'topic':'a'"),
    SUBSCRIBE("'id':1,'sub_id':1"),
    SUBSCRIBE("'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':'1','topic':'a','sub_id':1"),
    SUBSCRIBE("'id':-1,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':-0,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':1.0,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':1e0,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':01,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':00,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':18446744073709551616,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':null,'topic':'a','sub_id':1"),
    SUBSCRIBE("'id':1,'topic':1,'sub_id':1"),
    BODY("[256]"),
    BODY("[1000]"),
    BODY("[00]"),
    BODY("[01]"),
    BODY("[-1]"),
    BODY("[1.0]"),
    BODY("[1e1]"),
    BODY("['1']"),
    BODY("[null]"),
    BODY("[1,]"),
    BODY("[,1]"),
    BODY("[1 2]"),
    BODY("[[1]]"),
    BODY("'AQID'"),
    BODY("null"),
    BODY("{}"),
    BODY("[1]],'x':["),
    PUBLISH_START HEADER "}}}",
    PUBLISH_START HEADER ",'body':[1],'body':[1]}}}",
    PUBLISH_START HEADER_START HEADER_REST ",'header':" HEADER ",'body':[1]}}}",
};

TEST_ROWS(commands_are_read, COUNT(good))
{
    struct text json = quoted(good[row]);

    ck_assert_msg(is_good(json.data, json.len), "%s", json.data);
    for (size_t len = 0; len < json.len && json.data[len] != '\0'; len++)
        is_good(json.data, len);
    text_free(&json);
}

TEST_ROWS(all_else_is_refused, COUNT(bad))
{
    struct text json = quoted(bad[row]);

    ck_assert_msg(!is_good(json.data, json.len), "%s", json.data);
    text_free(&json);
}

TEST(nul_bytes_are_refused)
{
    struct text json = quoted("{'Unsubscribe':{'sub_id':1}}");

    text_add(&json, "\0", 1);
    ck_assert(!is_good(json.data, json.len));
    text_free(&json);
}

/* --- the fields of the header --- */

static const struct {
    const char *name, *value, *refused;
} fields[] = {
    {"header_version", "0", "1"},
    {"header_len", "64", "65"},
    {"flags", "0", "1"},
    {"schema_id", "65535", "65536"},
    {"body_len", "4294967295", "4294967296"},
    {"created_at_ms", "18446744073709551615", "18446744073709551616"},
    {"ttl_ms", "18446744073709551615", "18446744073709551616"},
    {"trace_id", "340282366920938463463374607431768211455",
     "340282366920938463463374607431768211456"},
    {"msg_id", "18446744073709551615", "18446744073709551616"},
};

/* A Publish whose header has the largest values, but one of them is left out or has another. */
static struct text publish_with(size_t odd, const char *value)
{
    struct text json = {NULL, 0, 0};

    text_printf(&json, PUBLISH_START);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const char *written = i != odd ? fields[i].value : value;

        if (written != NULL)
            text_printf(&json, "%c'%s':%s", json.data[json.len - 1] == ':' ? '{' : ',',
                        fields[i].name, written);
    }
    text_printf(&json, "},'body':[]}}}");
    text_quote(&json, 0);
    return json;
}

TEST_ROWS(header_fields_have_a_range, COUNT(fields))
{
    static const char *const others[] = {NULL,  "-1",   "1.5", "64.0",   "0.0",
                                         "'0'", "null", "[]",  "1e1000", ""};
    struct text json = publish_with(row, fields[row].value);

    ck_assert(is_good(json.data, json.len));
    text_free(&json);
    json = publish_with(row, fields[row].refused);
    ck_assert(!is_good(json.data, json.len));
    text_free(&json);
    for (size_t i = 0; i < COUNT(others); i++) {
        json = publish_with(row, others[i]);
        ck_assert_msg(!is_good(json.data, json.len), "%s", json.data);
        text_free(&json);
    }
}

TEST(largest_values_are_exact)
{
    struct text json = publish_with(COUNT(fields), NULL);
    struct rmp_command command;
    char *copy, *work;

    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    ck_assert_uint_eq(command.header.body_len, UINT32_MAX);
    ck_assert_uint_eq(command.header.created_at_ms, UINT64_MAX);
    ck_assert_uint_eq(command.header.ttl_ms, UINT64_MAX);
    ck_assert(rmp_id_equal(command.header.trace_id, (struct rmp_id){UINT64_MAX, UINT64_MAX}));
    ck_assert_uint_eq(command.header.msg_id, UINT64_MAX);
    free(copy);
    free(work);
    text_free(&json);
}

static const struct {
    const char *text;
    struct rmp_id id;
} ids[] = {
    {"0", {0, 0}},
    {"1", {0, 1}},
    {"10", {0, 10}},
    {"4294967296", {0, UINT64_C(1) << 32}},
    {"18446744073709551615", {0, UINT64_MAX}},
    {"18446744073709551616", {1, 0}},
    {"18446744073709551619", {1, 3}},
    {"79228162514264337593543950336", {UINT64_C(1) << 32, 0}},
    {"22774453838368691933757882222884355840",
     {UINT64_C(0x1122334455667788), UINT64_C(0x99aabbccddeeff00)}},
    {"170141183460469231731687303715884105728", {UINT64_C(1) << 63, 0}},
    {"340282366920938463463374607431768211455", {UINT64_MAX, UINT64_MAX}},
};

static const char *const too_large[] = {
    "340282366920938463463374607431768211456",  "340282366920938463463374607431768211460",
    "399999999999999999999999999999999999999",  "999999999999999999999999999999999999999",
    "1000000000000000000000000000000000000000", "3402823669209384634633746074317682114550",
};

/* Read, written in a Message, and read again. */
TEST_ROWS(trace_ids_are_exact, COUNT(ids))
{
    struct text json = publish_with(7, ids[row].text), again = {NULL, 0, 0}, wanted = {NULL, 0, 0};
    struct rmp_command command;
    char *copy, *work, rest[RMP_MESSAGE_REST_MAX(0) + 1];

    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    ck_assert(rmp_id_equal(command.header.trace_id, ids[row].id));
    text_add(&again, rest, rmp_message_rest(rest, &command.header, slice_of(NULL, 0)));
    text_printf(&wanted, "\"trace_id\":%s,", ids[row].text);
    expect_word(again.data, wanted.data);
    free(copy);
    free(work);
    text_free(&json);
    text_free(&again);
    text_free(&wanted);
}

TEST_ROWS(larger_trace_ids_are_refused, COUNT(too_large))
{
    struct text json = publish_with(7, too_large[row]);

    ck_assert(!is_good(json.data, json.len));
    text_free(&json);
}

/* --- topics --- */

static const struct {
    const char *text, *topic;
} topics[] = {
    {"", ""},
    {"a/b", "a/b"},
    {"\xC3\xA9", "\xC3\xA9"},
    {"\\u0061\\/\\u00e9\\ud83d\\ude00", "a/\xC3\xA9\xF0\x9F\x98\x80"},
    {"\\n", "\n"},
    {"\\ud800", "\xED\xA0\x80"}, /* no UTF-8: no topic of the broker */
};

TEST_ROWS(topics_are_decoded, COUNT(topics))
{
    struct text json = {NULL, 0, 0};
    struct rmp_command command;
    char *copy, *work;

    text_printf(&json, "{'Publish':{'id':1,'topic':'%s','message':{'header':%s,'body':[7,8,9]}}}",
                topics[row].text, HEADER);
    text_quote(&json, 0);
    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    ck_assert(slice_equal(command.topic, slice_of(topics[row].topic, strlen(topics[row].topic))));
    ck_assert(slice_equal(command.body, slice_of("\7\x08\x09", 3)));
    free(copy);
    free(work);
    text_free(&json);
}

/* The longest of both: the decoded topic and the body stay apart in the work area. */
TEST(long_topic_and_long_body_stay_apart)
{
    struct text json = {NULL, 0, 0};
    struct rmp_command command;
    char *copy, *work;

    text_printf(&json, "{\"Publish\":{\"id\":1,\"topic\":\"\\u0061");
    text_fill(&json, 't', 100000);
    text_printf(&json, "\",\"message\":{\"body\":[1");
    for (unsigned i = 1; i < 100000; i++)
        text_add(&json, ",1", 2);
    text_printf(&json, "],\"header\":");
    {
        struct text header = quoted(HEADER "}}}");

        text_add(&json, header.data, header.len);
        text_free(&header);
    }
    ck_assert(read_command(&command, json.data, json.len, &copy, &work));
    ck_assert_uint_eq(command.topic.len, 100001);
    ck_assert_uint_eq(command.body.len, 100000);
    for (unsigned i = 0; i < 100000; i++)
        ck_assert(command.topic.data[i + 1] == 't' && command.body.data[i] == 1);
    free(copy);
    free(work);
    text_free(&json);
}

/* --- answers --- */

static const struct {
    struct rmp_result result;
    const char *json;
} results[] = {
    {{.outcome = RMP_RESULT_OK}, "{'Ok':null}"},
    {{.outcome = RMP_RESULT_CLOSED}, "{'Err':'Closed'}"},
    {{.outcome = RMP_RESULT_MESSAGE_EXPIRED}, "{'Err':'MessageExpired'}"},
    {{.outcome = RMP_RESULT_INVALID_TTL, .ttl_ms = 0}, "{'Err':{'InvalidTtl':0}}"},
    {{.outcome = RMP_RESULT_BODY_LENGTH_MISMATCH, .expected = 1, .actual = 2},
     "{'Err':{'BodyLengthMismatch':{'expected':1,'actual':2}}}"},
    {{.outcome = RMP_RESULT_BACKPRESSURE_TIMEOUT, .text = {"t", 1}},
     "{'Err':{'BackpressureTimeout':{'topic':'t'}}}"},
    {{.outcome = RMP_RESULT_FORBIDDEN, .text = {"te\nxt", 5}}, "{'Err':{'Forbidden':'te\\nxt'}}"},
    {{.outcome = RMP_RESULT_BODY_TYPE_MISMATCH, .schema_id = 1, .text = {"s", 1}},
     "{'Err':{'BodyTypeMismatch':{'expected':1,'actual':'s'}}}"},
    {{.outcome = RMP_RESULT_INVALID_EXPIRY, .created_at_ms = UINT64_MAX, .ttl_ms = 2},
     "{'Err':{'InvalidExpiry':{'created_at_ms':18446744073709551615,'ttl_ms':2}}}"},
    {{.outcome = RMP_RESULT_UNKNOWN_SCHEMA, .schema_id = 9}, "{'Err':{'UnknownSchema':9}}"},
};

static void assert_frame(const char *frame, size_t len, const char *json)
{
    struct text wanted = quoted(json);

    ck_assert_uint_eq(len, wanted.len + 4);
    ck_assert_uint_eq(wire_get_u32(frame), wanted.len);
    ck_assert_mem_eq(frame + 4, wanted.data, wanted.len);
    text_free(&wanted);
}

TEST_ROWS(results_are_written, COUNT(results))
{
    struct text wanted = {NULL, 0, 0};
    char to[RMP_REPLY_MAX];

    ck_assert_uint_eq(COUNT(results), RMP_RESULT_COUNT);
    text_printf(&wanted, "{'PublishAck':{'id':1,'result':%s}}", results[row].json);
    assert_frame(to, rmp_reply_publish(to, 1, &results[row].result), wanted.data);
    wanted.len = 0;
    text_printf(&wanted, "{'SubscribeAck':{'id':%" PRIu64 ",'result':%s}}", UINT64_MAX,
                results[row].json);
    assert_frame(to, rmp_reply_subscribe(to, UINT64_MAX, &results[row].result), wanted.data);
    assert_frame(to, rmp_reply_hello(to), "'HelloAck'");
    text_free(&wanted);
}

/* The worst text, of control characters or of bytes that are not UTF-8, fits. */
TEST(long_texts_are_cut)
{
    static const char *const fills[] = {"\x01", "\xFF", "\xE2\x82\xAC", "x"};

    for (size_t i = 0; i < COUNT(fills); i++) {
        struct text text = {NULL, 0, 0};
        struct rmp_result result = {.outcome = RMP_RESULT_FORBIDDEN};
        char to[RMP_REPLY_MAX];
        size_t len;

        while (text.len < 5000)
            text_add(&text, fills[i], strlen(fills[i]));
        result.text = slice_of(text.data, text.len);
        len = rmp_reply_publish(to, 1, &result);
        ck_assert_uint_lt(len, RMP_REPLY_MAX);
        ck_assert_uint_gt(len, 1000);
        ck_assert_mem_eq(to + len - 5, "\"}}}}", 5);
        ck_assert(i != 2 || to[len - 6] == '\xAC');
        text_free(&text);
    }
}

TEST(message_is_written)
{
    struct rmp_header header = {
        .schema_id = 3003,
        .body_len = 99,
        .created_at_ms = UINT64_C(1700000000000),
        .ttl_ms = 30000,
        .trace_id = {UINT64_C(0x1122334455667788), UINT64_C(0x99aabbccddeeff00)},
        .msg_id = 7};
    char rest[RMP_MESSAGE_REST_MAX(3)], frame[RMP_MESSAGE_START_MAX + sizeof rest];
    size_t rest_len = rmp_message_rest(rest, &header, slice_of("\1\2\xff", 3));
    size_t len = rmp_message_start(frame, 1, rest_len);

    memcpy(frame + len, rest, rest_len);
    assert_frame(frame, len + rest_len,
                 "{'Message':{'sub_id':1,'message':{'header':" HEADER ",'body':[1,2,255]}}}");
}

/* With the largest numbers, each byte value, and room for no byte more. */
TEST(messages_fit)
{
    struct rmp_header header = {.schema_id = UINT16_MAX,
                                .created_at_ms = UINT64_MAX,
                                .ttl_ms = UINT64_MAX,
                                .trace_id = {UINT64_MAX, UINT64_MAX},
                                .msg_id = UINT64_MAX};
    char body[256], start[RMP_MESSAGE_START_MAX], *rest = malloc(RMP_MESSAGE_REST_MAX(256));
    struct text numbers = {NULL, 0, 0}, message = {NULL, 0, 0};
    size_t len;

    ck_assert_ptr_nonnull(rest);
    for (unsigned i = 0; i < 256; i++) {
        body[i] = (char)i;
        text_printf(&numbers, "%s%u", i > 0 ? "," : "[", i);
    }
    text_printf(&numbers, "]}}}");
    for (size_t body_len = 0; body_len <= 256; body_len++)
        len = rmp_message_rest(rest, &header, slice_of(body, body_len));
    ck_assert_mem_eq(rest + len - numbers.len, numbers.data, numbers.len);
    memset(body, 0xFF, sizeof body);
    len = rmp_message_rest(rest, &header, slice_of(body, 256));
    ck_assert_uint_le(len, RMP_MESSAGE_REST_MAX(256));
    text_add(&message, start, rmp_message_start(start, UINT64_MAX, len));
    ck_assert_uint_le(message.len, RMP_MESSAGE_START_MAX);
    text_add(&message, rest, len);
    ck_assert_uint_eq(wire_get_u32(message.data), message.len - 4);
    free(rest);
    text_free(&numbers);
    text_free(&message);
}
