/* RMP v0, sections 6 and 7: what is wrong with a frame or a command, in both dialects; what ends a
 * connection, and what does not. */
#include "build_config.h"

#include <inttypes.h>

#include "harness.h"
#include "rmp.h"

/* --- frames --- */

/* A good frame with other bytes at one place. */
struct change {
    const char *code;
    size_t offset, len;
    const char *bytes;
    bool closes;
};

static const struct change changes[] = {
    {"InvalidMagic", 4, 4, "RMP1", true},
    {"UnsupportedVersion", 8, 2, "\0\1", true},
    {"UnsupportedVersion", 10, 2, "\0\101", true},
    {"InvalidHeaderFlags", 12, 4, "\0\0\0\1", false},
    {"InvalidHeaderFlags", 18, 2, "\1\0", false},
    {"InvalidHeaderFlags", 64, 4, "\0\0\0\1", false},
    {"LengthMismatch", 20, 4, "\0\0\0\1", true},
    {"UnknownSchema", 16, 2, "\377\377", false},
    {"UnknownSchema", 16, 2, "\0\0", false},
    {"InvalidTtl", 32, 8, "\0\0\0\0\0\0\0\0", false},
    {"InvalidExpiry", 32, 8, "\377\377\377\377\377\377\377\377", false},
    {"Expired", 24, 8, "\0\0\0\0\0\0\0\1", false},
    {"BodyDecodeError", 68, 1, "\301", false},
    {"BodyTypeMismatch", 16, 2, "\0\1", false}, /* changed to a type of another family below */
};

TEST_ROWS(rmp_error_of_a_frame, COUNT(changes))
{
    const struct change *change = &changes[row];
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    struct text *frame = test_text();
    struct rmp_sent sent = {.topic = "a/b", .trace = 12, .msg_id = 34};
    if (strcmp(change->code, "BodyTypeMismatch") == 0)
        sent.type = "intent.trace.line.v1";
    rmp_frame(frame, &sent);
    memcpy(frame->data + change->offset, change->bytes, change->len);
    client_send_bytes(client, frame->data, frame->len);
    struct rmp_got got = rmp_expect_word(client, RMP_ERROR_SCHEMA, change->code);
    ck_assert_uint_eq(got.trace, 12);
    ck_assert_uint_eq(got.ttl_ms, 30000);
    if (change->closes)
        client_expect_eof(client);
    else
        rmp_hello(client, true, "agent");
}

TEST(rmp_truncated_header_closes)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, "\0\0\0\77RMP0", 8);
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "TruncatedHeader");
    client_expect_eof(client);
}

/* The length and the first bytes of a payload that is neither a frame nor a command: reported as
 * soon as that is certain. */
static const struct {
    const char *bytes;
    size_t len;
} starts[] = {
    {"\0\0\0\120A", 5},
    {"\0\0\0\100xyz", 7},
    {"\0\0\0\120\0\0\0\0", 8},
    {"\377\377\377\377\377\377\377\377", 8},
    {"hello, bus", 10},
    {"GETS/a", 6},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n", 38},
};

TEST_ROWS(rmp_7_payload_of_another_magic, COUNT(starts))
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, starts[row].bytes, starts[row].len);
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "InvalidMagic");
    client_expect_eof(client);
}

/* A body of exactly the limit passes. A longer one is refused at once, and skipped. */
TEST(rmp_body_too_large_is_skipped)
{
    struct daemon *daemon = rmp_start(",'max_body':1000", NULL);
    struct client *client = client_connect(daemon);
    struct text frame = {0}, fitting = {0};
    size_t empty;
    rmp_frame(&frame, &(struct rmp_sent){.topic = "a/b"});
    empty = frame.len - 68;
    text_free(&frame);
    rmp_subscribe(client, true, "a/b", 0);
    rmp_frame(&fitting, &(struct rmp_sent){.topic = "a/b", .filler = 1000 - empty});
    ck_assert_uint_eq(fitting.len, 1068);
    client_send_bytes(client, fitting.data, fitting.len);
    rmp_expect_frame(client, &fitting);
    rmp_frame(&frame, &(struct rmp_sent){.topic = "a/b", .filler = 100000, .trace = 5});
    client_send_bytes(client, frame.data, 68);
    ck_assert_uint_eq(rmp_expect_word(client, RMP_ERROR_SCHEMA, "BodyTooLarge").trace, 5);
    client_send_chunks(client, frame.data + 68, frame.len - 68, 9999);
    rmp_hello(client, true, "agent");
    text_free(&frame);
    text_free(&fitting);
}

/* Section 8: a frame of 2024. */
TEST(rmp_golden_frame_has_expired)
{
    static const char golden[] =
        "\0\0\0\240RMP0\0\0\0\100\0\0\0\0\0\12\0\0\0\0\0\140\0\0\1\223\43\144\134\173"
        "\0\0\0\0\0\0\352\140\21\42\63\104\125\146\167\210\231\252\273\314\335\356\377\0"
        "\0\0\0\0\0\0\0\52\0\0\0\0\203\244type\257error.report.v1\247payload\202\244code\260"
        "tool.unavailable\247message\256mailer offline\244meta\201\252opening_id\315\4\322";
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    ck_assert_uint_eq(sizeof golden - 1, 164);
    client_send_bytes(client, golden, sizeof golden - 1);
    ck_assert_uint_eq(rmp_expect_word(client, RMP_ERROR_SCHEMA, "Expired").trace,
                      0x99aabbccddeeff00);
}

/* A control frame whose payload says nothing that the broker knows. */
TEST(rmp_control_frame_that_cannot_be_read)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    RMP_SEND(client, .op = "hello", .key = "kind", .value = "daemon");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "BodyDecodeError");
    RMP_SEND(client, .op = "subscribe");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "BodyDecodeError");
    RMP_SEND(client, .op = "fly");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "Forbidden"); /* a message without a topic */
    RMP_SEND(client, .op = "subscribe", .key = "topic", .value = "");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "Forbidden");
    rmp_hello(client, true, "agent");
}

/* A frame is judged in pieces as it is in one. */
TEST_ROWS(rmp_errors_at_any_chunk_size, 6)
{
    static const size_t chunks[] = {1, 2, 3, 5, 67, 69};
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    struct text *bytes = test_text();
    rmp_frame(bytes, &(struct rmp_sent){.topic = "a", .schema = 9999, .filler = 50});
    rmp_frame(bytes, &(struct rmp_sent){.topic = "a", .no_ttl = true});
    rmp_frame(bytes, &(struct rmp_sent){.topic = "a", .ack = true});
    client_send_chunks(client, bytes->data, bytes->len, chunks[row]);
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "UnknownSchema");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "InvalidTtl");
    rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
}

TEST_ROWS(rmp_4_ttl_of_a_frame_is_refused_with_its_reason, 2)
{
    struct daemon *daemon = rmp_start(",'max_ttl_ms':5000", NULL);
    struct client *client = client_connect(daemon);
    struct rmp_got got;

    RMP_SEND(client, .topic = "a", .no_ttl = row == 0, .ttl_ms = 5001);
    got = rmp_expect_word(client, RMP_ERROR_SCHEMA, "InvalidTtl");
    ck_assert_int_eq(memmem(got.body.data, got.body.len, "ttl_ms is 0", 11) != NULL, row == 0);
    ck_assert_int_eq(memmem(got.body.data, got.body.len, "ttl_ms exceeds max_ttl_ms", 25) != NULL,
                     row == 1);
    RMP_SEND(client, .topic = "a", .ttl_ms = 5000, .ack = true);
    rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
}

/* --- commands --- */

static const struct {
    const char *header, *body, *err;
} refused[] = {
    {"'schema_id':3003,'body_len':0,'created_at_ms':1,'ttl_ms':2", "1", "'MessageExpired'"},
    {"'schema_id':3003,'body_len':0,'created_at_ms':1,'ttl_ms':0", "1", "{'InvalidTtl':0}"},
    {"'schema_id':3003,'body_len':2,'created_at_ms':1,'ttl_ms':2", "1,2,3",
     "{'BodyLengthMismatch':{'expected':2,'actual':3}}"},
    {"'schema_id':3003,'body_len':0,'created_at_ms':18446744073709551615,'ttl_ms':1", "1",
     "{'InvalidExpiry':{'created_at_ms':18446744073709551615,'ttl_ms':1}}"},
    {"'schema_id':9,'body_len':0,'created_at_ms':1,'ttl_ms':2", "1", "'MessageExpired'"},
    {"'schema_id':9999,'body_len':0,'created_at_ms':1,'ttl_ms':2", "1", "{'UnknownSchema':9999}"},
};

TEST_ROWS(rmp_err_of_a_publish, COUNT(refused))
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_command(client,
                "{'Publish':{'id':77,'topic':'a','message':{'header':{'header_version':0,"
                "'header_len':64,'flags':0,%s,'trace_id':1,'msg_id':1},'body':[%s]}}}",
                refused[row].header, refused[row].body);
    rmp_expect(client, "{'PublishAck':{'id':77,'result':{'Err':%s}}}", refused[row].err);
    rmp_hello(client, false, "Agent");
}

static const char *const bad_topics[] = {"", "a\\n", "\\u0000", "a\\u007f", "\\ud800"};

TEST_ROWS(rmp_topic_that_is_none, COUNT(bad_topics))
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_command(client, "{'Subscribe':{'id':1,'topic':'%s','sub_id':1}}", bad_topics[row]);
    struct rmp_got got = rmp_next(client);
    ck_assert(memmem(got.payload.data, got.payload.len, "Forbidden", 9) != NULL);
}

TEST_ROWS(rmp_topic_of_at_most_512_bytes, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_subscribe(client, row == 1, test_fill('t', 512), 1);
    if (row == 1)
        RMP_SEND(client, .op = "subscribe", .key = "topic", .value = test_fill('t', 513));
    else
        rmp_command(client, "{'Subscribe':{'id':1,'topic':'%s','sub_id':2}}", test_fill('t', 513));
    struct rmp_got got = rmp_next(client);
    ck_assert(memmem(got.payload.data, got.payload.len, "Forbidden", 9) != NULL);
}

/* Unless rmp.validate is false, the body of a command is judged as that of a frame is: one that is
 * no MsgPack, and one whose type is of another family. */
TEST_ROWS(rmp_2_body_of_a_command_is_read, 4)
{
    struct daemon *daemon = rmp_start(row < 2 ? NULL : ",'validate':false", NULL);
    struct client *client = client_connect(daemon);
    if (row % 2 == 0)
        rmp_command(
            client,
            "{'Publish':{'id':1,'topic':'a','message':{'header':{'header_version':0,"
            "'header_len':64,'flags':0,'schema_id':3003,'body_len':0,'created_at_ms':%" PRIu64
            ",'ttl_ms':30000,'trace_id':1,'msg_id':1},'body':[1,2,255]}}}",
            rmp_now_ms());
    else
        RMP_PUBLISH(client, 1, .topic = "a", .type = "intent.my.thing.v1");
    rmp_expect(client, "{'PublishAck':{'id':1,'result':%s}}",
               row >= 2
                   ? "{'Ok':null}"
                   : test_format("{'Err':{'BodyTypeMismatch':{'expected':3003,'actual':'%s'}}}",
                                 row == 0 ? "" : "intent.my.thing.v1"));
    RMP_PUBLISH(client, 2, .topic = "a");
    rmp_expect(client, "{'PublishAck':{'id':2,'result':{'Ok':null}}}");
}

/* A malformed command closes the connection without an answer. */
static const char *const malformed[] = {
    "{",
    "{}",
    "{'Foo':{}}",
    "'HelloAck'",
    "{'Hello':{'kind':'Nobody'}}",
    "{'Hello':{}}",
    "{'Subscribe':{'id':1,'topic':'a'}}",
    "{'Subscribe':{'id':'1','topic':'a','sub_id':1}}",
    "{'Subscribe':{'id':-1,'topic':'a','sub_id':1}}",
    "{'Unsubscribe':{'sub_id':18446744073709551616}}",
    "{'Hello':{'kind':'Agent'}} x",
    "{'Publish':{'id':1,'topic':'a','message':{'header':{'header_version':0,'header_len':64,"
    "'flags':0,'schema_id':3003,'body_len':0,'created_at_ms':1,'ttl_ms':1,'trace_id':1,"
    "'msg_id':1},'body':[256]}}}",
    "{'Publish':{'id':1,'topic':'a','message':{'header':{'header_version':0,'header_len':64,"
    "'flags':0,'schema_id':3003,'body_len':0,'created_at_ms':1,'ttl_ms':1,'trace_id':1},"
    "'body':[1]}}}",
};

TEST_ROWS(rmp_malformed_command_closes, COUNT(malformed))
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_hello(client, false, "Agent");
    rmp_command(client, "%s", malformed[row]);
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*unacceptable input");
}

/* --- strangers --- */

/* HTTP and TLS, the latter even where its length looks like the first byte of a frame; and a
 * command that is too long. */
static const struct {
    const char *bytes;
    size_t len;
} strangers[] = {
    {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35},
    {"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 41},
    {"\26\3\1\2\0\1\0\1\374\3\3", 11},
    {"\26\3\1\2R\1\0\1\374\3\3+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-", 73},
    {"OPTIONS * HTTP/1.1\r\n", 20},
    {"\0\200\0\105{", 5}, /* a command that is too long */
};

TEST_ROWS(rmp_stranger_is_closed_without_an_answer, COUNT(strangers))
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, strangers[row].bytes, strangers[row].len);
    client_expect_eof(client);
    if (row < COUNT(strangers) - 1)
        daemon_wait_log(daemon, " WARN .*unacceptable input: (HTTP|TLS) in place of messages");
}
