/* Specification 4.3: what a client sends that cannot be understood. */
#include "build_config.h"

#include <poll.h>
#include <string.h>

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
    {"GET / HTTP/1.1\r", 0, NOT_JSON},
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
    {"{\"id\":1,\"sessionId\":1}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":{\"a\":\"b\"}}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":[\"a\"]}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":true}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"sessionId\":null}", 0, NOT_ROUTABLE},
    {"{\"id\":1,\"pool\":7}", 0, NOT_ROUTABLE},
    {"{\"\\u0069d\":[]}", 0, NOT_ROUTABLE},
};

/* Each line closes the client that sent it, after one error line, and nobody else. */
static void check_lines(const struct bad_line *lines, size_t count, const char *members)
{
    struct daemon daemon;
    struct client other;
    START(&daemon, .instances = 1, .members = members);
    client_connect(&other, &daemon);
    long pid = client_pid(&other, "1", NULL);
    for (size_t i = 0; i < count; i++) {
        struct client client;
        size_t len = lines[i].len > 0 ? lines[i].len : strlen(lines[i].bytes);
        client_connect(&client, &daemon);
        client_send_bytes(&client, lines[i].bytes, len);
        client_send_bytes(&client, "\n", 1);
        if (members == NULL)
            client_error(&client, "null", lines[i].code, "");
        client_expect_eof(&client);
        client_close(&client);
        ck_assert_int_eq(client_pid(&other, "1", NULL), pid);
    }
    client_close(&other);
    daemon_stop(&daemon);
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

START_TEST(spec_4_3_1_not_json_closes_the_client)
{
    check_lines(not_json, COUNT(not_json), NULL);
}
END_TEST

START_TEST(spec_4_3_2_not_routable_closes_the_client)
{
    check_lines(not_routable, COUNT(not_routable), NULL);
}
END_TEST

START_TEST(spec_4_3_1_strict_makes_nothing_up)
{
    check_lines(not_json, 3, "'strict':true");
    check_lines(not_routable, 3, "'strict':true");
}
END_TEST

START_TEST(spec_4_3_2_logs_a_warning)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send(&client, "{'id':[]}");
    client_error(&client, "null", NOT_ROUTABLE, "id");
    client_expect_eof(&client);
    daemon_wait_log(&daemon, " WARN .*id must be");
    client_close(&client);
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'sessionId':2}");
    client_error(&client, "null", NOT_ROUTABLE, "sessionId");
    client_expect_eof(&client);
    daemon_wait_log(&daemon, " WARN .*sessionId must be");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* An accepted text may be answered or not; the daemon goes on with what comes behind it. */
static void expect_accepted(struct client *client, const char *name)
{
    struct span line;
    client_request(client, "'behind it'", NULL, "plain", NULL);
    do {
        ck_assert_msg(client_line_before(client, deadline_usual(), &line), "%s: refused", name);
        ck_assert_msg(!span_is(json_get(line, "error.code"), "-32700"), "%s: %.*s", name,
                      (int)line.len, line.data);
    } while (!span_is(json_get(line, "id"), "\"behind it\""));
}

static void check_json_texts(size_t chunk)
{
    struct daemon daemon;
    START(&daemon, .instances = 1);
    for (size_t i = 0; i < JSON_TEXT_COUNT; i++) {
        const struct json_text *text = &json_texts[i];
        struct client client;
        client_connect(&client, &daemon);
        client_send_chunks(&client, text->text, text->len, chunk);
        if (text->error == SCAN_ERROR_NONE) {
            expect_accepted(&client, text->name);
        } else {
            client_error(&client, "null", NOT_JSON, "");
            client_expect_eof(&client);
        }
        client_close(&client);
    }
    daemon_stop(&daemon);
}

START_TEST(spec_4_3_1_json_texts)
{
    static const size_t chunks[] = {1, 7, 1000000};
    check_json_texts(chunks[_i]);
}
END_TEST

static void add_quoted(struct text *to, const char *key, size_t len)
{
    text_printf(to, "\"%s\":\"", key);
    text_fill(to, 'x', len);
    text_printf(to, "\"");
}

static void check_length(struct daemon *daemon, size_t id_len, size_t session_len, bool ok)
{
    struct client client;
    struct text line = {0};
    client_connect(&client, daemon);
    text_printf(&line, "{");
    add_quoted(&line, "id", id_len);
    text_printf(&line, ",");
    add_quoted(&line, "sessionId", session_len);
    text_printf(&line, ",\"method\":\"echo\"}\n");
    client_send_bytes(&client, line.data, line.len);
    if (ok) {
        ck_assert(json_get(client_line(&client), "result").data != NULL);
    } else {
        client_error(&client, "null", NOT_ROUTABLE, "");
        client_expect_eof(&client);
    }
    client_close(&client);
    text_free(&line);
}

START_TEST(spec_8_2_length_of_ids_and_sessions)
{
    struct daemon daemon;
    START(&daemon, .instances = 1);
    check_length(&daemon, 128, 256, true);
    check_length(&daemon, 129, 10, false);
    check_length(&daemon, 10, 257, false);
    check_length(&daemon, 5000, 10, false);
    check_length(&daemon, 10, 5000, false);
    daemon_stop(&daemon);
}
END_TEST

/* Lengths count the string itself: six bytes of \u0078 are one. */
START_TEST(spec_8_2_escapes_count_decoded)
{
    struct daemon daemon;
    struct client client;
    struct text line = {0};
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    text_printf(&line, "{\"id\":\"");
    for (int i = 0; i < 128; i++)
        text_printf(&line, "\\u0078");
    text_printf(&line, "\",\"method\":\"answer_as\",\"params\":{\"id\":\"");
    text_fill(&line, 'x', 128);
    text_printf(&line, "\"}}\n");
    client_send_bytes(&client, line.data, line.len);
    ck_assert(json_get(client_line(&client), "result").data != NULL);
    client_close(&client);
    text_free(&line);
    daemon_stop(&daemon);
}
END_TEST

static void check_depth(struct daemon *daemon, size_t depth, bool ok)
{
    struct client client;
    struct text line = {0};
    client_connect(&client, daemon);
    text_printf(&line, "{\"id\":1,\"method\":\"plain\",\"deep\":");
    text_fill(&line, '[', depth - 1);
    text_fill(&line, ']', depth - 1);
    text_printf(&line, "}\n");
    client_send_bytes(&client, line.data, line.len);
    if (ok) {
        client_result(&client, "1");
    } else {
        client_error(&client, "null", NOT_JSON, "");
        client_expect_eof(&client);
    }
    client_close(&client);
    text_free(&line);
}

START_TEST(design_nesting_up_to_1024_levels)
{
    struct daemon daemon;
    START(&daemon, .instances = 1);
    check_depth(&daemon, 1024, true);
    check_depth(&daemon, 1025, false);
    check_depth(&daemon, 500000, false);
    daemon_stop(&daemon);
}
END_TEST

/* What stands before the bad line is done, what stands behind it is not. Seen by another client,
 * whose session the notifications go to. */
START_TEST(spec_4_3_1_nothing_after_the_bad_line_is_processed)
{
    static const char text[] =
        "{\"method\":\"notify\",\"params\":{\"session\":\"other\",\"size\":1}}\n"
        "{\"bad\"}\n"
        "{\"method\":\"notify\",\"params\":{\"session\":\"other\",\"size\":2}}\n"
        "{\"method\":\"die\"}\n";
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_ask(&other, "1", "other", "echo", NULL);
    client_send_bytes(&client, text, sizeof text - 1);
    client_error(&client, "null", NOT_JSON, "");
    client_expect_eof(&client);
    client_expect(&other, "{'jsonrpc':'2.0','method':'note','sessionId':'other',"
                          "'params':{'n':0,'pad':'x'}}");
    client_expect_quiet(&other);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Answers that were already on their way come before the error line. */
START_TEST(spec_4_3_1_answers_before_the_bad_line_are_delivered)
{
    struct daemon daemon;
    struct client client, other;
    struct span line;
    START(&daemon, .instances = 1);
    client_connect_small(&client, &daemon);
    client_connect(&other, &daemon);
    client_request(&client, "1", NULL, "big", "{'size':900000}");
    ck_assert(wait_fd(client.in, POLLIN, deadline_usual()));
    client_expect_quiet(&other);
    client_send(&client, "nonsense");
    line = client_line(&client);
    ck_assert_uint_gt(line.len, 900000);
    client_error(&client, "null", NOT_JSON, "");
    client_expect_eof(&client);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_4_3_1_malformed_stdio_client_ends_the_daemon)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2);
    client_stdio(&client, &daemon);
    client_pid(&client, "1", NULL);
    client_send(&client, "nonsense");
    client_error(&client, "null", NOT_JSON, "");
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 65);
    client_close(&client);
}
END_TEST

/* The reason is in the error line, and in the log with who it was. */
START_TEST(spec_4_3_1_error_names_the_reason)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send_bytes(&client, "{\"a\":\"\xff\"}\n", 10);
    client_error(&client, "null", NOT_JSON, "UTF-8");
    client_expect_eof(&client);
    client_close(&client);
    daemon_wait_log(&daemon, " WARN .*UTF-8");
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 4.3: malformed input");
    TCase *malformed = harness_case(suite, "4.3 malformed");
    tcase_add_test(malformed, spec_4_3_1_not_json_closes_the_client);
    tcase_add_loop_test(malformed, spec_4_3_1_json_texts, 0, 3);
    tcase_add_test(malformed, spec_4_3_2_not_routable_closes_the_client);
    tcase_add_test(malformed, spec_4_3_1_strict_makes_nothing_up);
    tcase_add_test(malformed, spec_4_3_2_logs_a_warning);
    tcase_add_test(malformed, spec_8_2_length_of_ids_and_sessions);
    tcase_add_test(malformed, spec_8_2_escapes_count_decoded);
    tcase_add_test(malformed, design_nesting_up_to_1024_levels);
    tcase_add_test(malformed, spec_4_3_1_nothing_after_the_bad_line_is_processed);
    tcase_add_test(malformed, spec_4_3_1_answers_before_the_bad_line_are_delivered);
    tcase_add_test(malformed, spec_4_3_1_malformed_stdio_client_ends_the_daemon);
    tcase_add_test(malformed, spec_4_3_1_error_names_the_reason);
    return harness_run(suite);
}
