/* Specification 4.3: malformed input of clients. */
#include "build_config.h"

#include <poll.h>

#include "data/json_texts.h"
#include "harness.h"

struct bad_line {
    const char *bytes; /* without the newline */
    size_t len;        /* 0: up to the NUL */
    int code;
};

enum { NOT_JSON = -32700, NOT_ROUTABLE = -32600 };

static const struct bad_line not_json[] = {
    {"hello", 0, NOT_JSON},
    {"{", 0, NOT_JSON},
    {"}", 0, NOT_JSON},
    {"{\"id\":1", 0, NOT_JSON},
    {"{\"id\":1,}", 0, NOT_JSON},
    {"{\"id\" 1}", 0, NOT_JSON},
    {"{id:1}", 0, NOT_JSON},
    {"{'id':1}", 0, NOT_JSON},
    {"{\"id\":01}", 0, NOT_JSON},
    {"{\"id\":+1}", 0, NOT_JSON},
    {"{\"id\":1.}", 0, NOT_JSON},
    {"{\"id\":.5}", 0, NOT_JSON},
    {"{\"id\":1e}", 0, NOT_JSON},
    {"{\"id\":NaN}", 0, NOT_JSON},
    {"{\"id\":nul}", 0, NOT_JSON},
    {"{\"id\":True}", 0, NOT_JSON},
    {"{\"id\":1}{\"id\":2}", 0, NOT_JSON},
    {"{\"id\":1} x", 0, NOT_JSON},
    {"{\"id\":1}]", 0, NOT_JSON},
    {"{\"a\":[1,2}", 0, NOT_JSON},
    {"{\"a\":[1,]}", 0, NOT_JSON},
    {"{\"a\":[1 2]}", 0, NOT_JSON},
    {"{\"a\":\"\\x\"}", 0, NOT_JSON},
    {"{\"a\":\"\\u12g4\"}", 0, NOT_JSON},
    {"{\"a\":\"b", 0, NOT_JSON},
    {"{\"a\":\"\t\"}", 0, NOT_JSON},
    {"{\"a\":\"\x01\"}", 0, NOT_JSON},
    {"{\"a\":\"\0\"}", 9, NOT_JSON},
    {"\0", 1, NOT_JSON},
    {"{\"a\":1}\0", 8, NOT_JSON},
    {"{\"a\":\"\xff\"}", 0, NOT_JSON},
    {"{\"a\":\"\xc0\xaf\"}", 0, NOT_JSON},
    {"{\"a\":\"\xe0\x80\x80\"}", 0, NOT_JSON},
    {"{\"a\":\"\xed\xa0\x80\"}", 0, NOT_JSON},
    {"{\"a\":\"\xf4\x90\x80\x80\"}", 0, NOT_JSON},
    {"{\"a\":\"\xc3\"}", 0, NOT_JSON},
    {"{\"a\":\"\x80\"}", 0, NOT_JSON},
    {"\xef\xbb\xbf{\"id\":1}", 0, NOT_JSON},
    {"\xff\xfe{", 0, NOT_JSON},
    {"/* no */ {\"id\":1}", 0, NOT_JSON},
    {"{\"id\":1} // no", 0, NOT_JSON},
    {"get / http/1.1\r", 0, NOT_JSON},
    {"[]", 0, NOT_JSON},
    {"[{\"id\":1}]", 0, NOT_JSON},
    {"\"text\"", 0, NOT_JSON},
    {"1", 0, NOT_JSON},
    {"null", 0, NOT_JSON},
};

static const struct bad_line not_routable[] = {
    {"{\"id\":{}}", 0, NOT_ROUTABLE},
    {"{\"id\":[1]}", 0, NOT_ROUTABLE},
    {"{\"id\":true}", 0, NOT_ROUTABLE},
    {"{\"id\":false,\"method\":\"echo\"}", 0, NOT_ROUTABLE},
    {"{\"id\":1e400,\"method\":\"echo\"}", 0, NOT_ROUTABLE},
    {"{\"id\":-1e309}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":1}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":{\"a\":\"b\"}}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":[\"a\"]}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":true}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":null}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"pool\":7}", 0, NOT_ROUTABLE},
    {"{\"\\u0069d\":[]}", 0, NOT_ROUTABLE},
};

/* Each line closes the client that sent it, after one error line, and no other client. */
static void check_lines(const struct bad_line *lines, size_t count, const char *members)
{
    struct daemon *daemon = START(.instances = 1, .members = members);
    struct client *other = client_connect(daemon);
    long pid = client_pid(other, "1", NULL);
    for (size_t i = 0; i < count; i++) {
        size_t len = lines[i].len > 0 ? lines[i].len : strlen(lines[i].bytes);
        struct client *client = client_connect(daemon);
        client_send_bytes(client, lines[i].bytes, len);
        client_send_bytes(client, "\n", 1);
        if (members == NULL)
            client_error(client, "null", lines[i].code, "");
        client_expect_eof(client);
        client_close(client);
        ck_assert_int_eq(client_pid(other, "1", NULL), pid);
    }
}

TEST(spec_4_3_1_not_json_closes_the_client)
{
    check_lines(not_json, COUNT(not_json), NULL);
}

TEST(spec_4_3_2_not_routable_closes_the_client)
{
    check_lines(not_routable, COUNT(not_routable), NULL);
}

TEST_ROWS(spec_4_3_1_strict_sends_no_error, 2)
{
    check_lines(row == 0 ? not_json : not_routable, 3, "'strict':true");
}

TEST(spec_4_3_2_logs_a_warning)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':[]}");
    client_error(client, "null", NOT_ROUTABLE, "id");
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*id must be");
    client = client_connect(daemon);
    client_send(client, "{'id':1,'sessionId':2}");
    client_error(client, "null", NOT_ROUTABLE, "sessionId");
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*sessionId must be");
}

/* An accepted text may be answered or not; the next request must be. */
static void expect_accepted(struct client *client, const char *name)
{
    struct span line;
    client_request(client, "'next'", NULL, "plain", NULL);
    do {
        ck_assert_msg(client_line_before(client, deadline_usual(), &line), "%s: refused", name);
        ck_assert_msg(!span_is(json_get(line, "error.code"), "-32700"), "%s: %.*s", name,
                      SHOWN(line));
    } while (!span_is(json_get(line, "id"), "\"next\""));
}

TEST_ROWS(spec_4_3_1_json_texts, 3)
{
    static const size_t chunks[] = {1, 7, 1000000};
    struct daemon *daemon = START(.instances = 1);
    for (size_t i = 0; i < JSON_TEXT_COUNT; i++) {
        const struct json_text *text = &json_texts[i];
        struct client *client = client_connect(daemon);
        client_send_chunks(client, text->text, text->len, chunks[row]);
        if (text->error == SCAN_ERROR_NONE) {
            expect_accepted(client, text->name);
        } else {
            client_error(client, "null", NOT_JSON, "");
            client_expect_eof(client);
        }
        client_close(client);
    }
}

/* The message must be answered, or its client closed after an error with this code. */
static void check_message(struct daemon *daemon, const char *message, int code)
{
    struct client *client = client_connect(daemon);
    client_send(client, "%s", message);
    if (code == 0) {
        ck_assert(json_get(client_line(client), "result").data != NULL);
    } else {
        client_error(client, "null", code, "");
        client_expect_eof(client);
    }
    client_close(client);
}

TEST(spec_8_2_length_of_ids_and_sessions)
{
    static const struct {
        size_t id, session;
        int code;
    } lengths[] = {{128, 256, 0},
                   {129, 10, NOT_ROUTABLE},
                   {10, 257, NOT_ROUTABLE},
                   {5000, 10, NOT_ROUTABLE},
                   {10, 5000, NOT_ROUTABLE}};
    struct daemon *daemon = START(.instances = 1);
    for (size_t i = 0; i < COUNT(lengths); i++)
        check_message(daemon,
                      test_format("{'id':'%s','sessionId':'%s','method':'echo'}",
                                  test_fill('x', lengths[i].id),
                                  test_fill('x', lengths[i].session)),
                      lengths[i].code);
}

/* The length is that of the decoded string: six bytes of \u0078 are one. */
TEST(spec_8_2_escapes_count_decoded)
{
    struct text *id = test_text();
    for (int i = 0; i < 128; i++)
        text_printf(id, "\\u0078");
    check_message(START(.instances = 1),
                  test_format("{'id':'%s','method':'answer_as','params':{'id':'%s'}}", id->data,
                              test_fill('x', 128)),
                  0);
}

TEST(design_nesting_up_to_1024_levels)
{
    static const struct {
        size_t levels;
        int code;
    } depths[] = {{1024, 0}, {1025, NOT_JSON}, {500000, NOT_JSON}};
    struct daemon *daemon = START(.instances = 1);
    for (size_t i = 0; i < COUNT(depths); i++) {
        size_t arrays = depths[i].levels - 1;
        check_message(daemon,
                      test_format("{'id':1,'method':'plain','deep':%s%s}", test_fill('[', arrays),
                                  test_fill(']', arrays)),
                      depths[i].code);
    }
}

/* The message before the bad line is handled, those after it are not: another client's session gets
 * their notifications. */
TEST(spec_4_3_1_messages_after_the_bad_line_are_ignored)
{
    static const char text[] =
        "{\"method\":\"notify\",\"params\":{\"session\":\"other\",\"size\":1}}\n"
        "{\"bad\"}\n"
        "{\"method\":\"notify\",\"params\":{\"session\":\"other\",\"size\":2}}\n"
        "{\"method\":\"die\"}\n";
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_ask(other, "1", "other", "echo", NULL);
    client_send_bytes(client, text, sizeof text - 1);
    client_error(client, "null", NOT_JSON, "");
    client_expect_eof(client);
    client_expect(other, "{'jsonrpc':'2.0','method':'note','sessionId':'other',"
                         "'params':{'n':0,'pad':'x'}}");
    client_expect_quiet(other);
}

/* Answers on their way come before the error line. */
TEST(spec_4_3_1_answers_before_the_bad_line_are_delivered)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect_small(daemon), *other = client_connect(daemon);
    client_request(client, "1", NULL, "big", "{'size':900000}");
    ck_assert(wait_fd(client->in, POLLIN, deadline_usual()));
    client_expect_quiet(other);
    client_send(client, "nonsense");
    ck_assert_uint_gt(client_line(client).len, 900000);
    client_error(client, "null", NOT_JSON, "");
    client_expect_eof(client);
}

TEST(spec_4_3_1_malformed_stdio_client_ends_the_daemon)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2);
    struct client *client = client_stdio(daemon);
    client_pid(client, "1", NULL);
    client_send(client, "nonsense");
    client_error(client, "null", NOT_JSON, "");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 65);
}

/* The error line and the log name the reason. */
TEST(spec_4_3_1_error_names_the_reason)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, "{\"a\":\"\xff\"}\n", 10);
    client_error(client, "null", NOT_JSON, "UTF-8");
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*UTF-8");
}
