/* Specification, chapter 4: operating modes, connections, the messages of clients. */
#include "build_config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "network.h"

static void check_stdio(bool default_mode)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .default_mode = default_mode, .instances = 2);
    client_stdio(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "'over stdio'");
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'over stdio'}");
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}

START_TEST(spec_4_1_1_stdio_mode)
{
    check_stdio(false);
}
END_TEST

START_TEST(spec_4_1_1_stdio_is_the_default)
{
    check_stdio(true);
}
END_TEST

START_TEST(spec_4_1_1_unix_mode)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_UNIX);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "'over unix'");
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'over unix'}");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

static void check_tcp(const char *address, const char *listens_on)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_TCP, .address = address);
    ck_assert_str_eq(daemon.host, listens_on);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "'over tcp'");
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'over tcp'}");
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(spec_4_1_1_tcp_mode)
{
    check_tcp("127.0.0.1:0", "127.0.0.1");
}
END_TEST

START_TEST(spec_4_1_1_tcp_mode_ipv6)
{
    if (have_ipv6())
        check_tcp("[::1]:0", "::1");
}
END_TEST

START_TEST(spec_4_1_1_tcp_port_alone_is_loopback)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_TCP, .address = ":0");
    ck_assert(strcmp(daemon.host, "127.0.0.1") == 0 || strcmp(daemon.host, "::1") == 0);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The one client's end is the daemon's end. */
START_TEST(spec_4_1_2_1_stdio_has_one_client)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO);
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    ck_assert(!daemon_logged(&daemon, "listening on"));
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

static void check_many_clients(enum setup_mode mode)
{
    struct daemon daemon;
    struct client clients[40];
    START(&daemon, .mode = mode, .instances = 2);
    for (int i = 0; i < 40; i++)
        client_connect(&clients[i], &daemon);
    for (int i = 39; i >= 0; i--)
        client_send(&clients[i], "{'id':%d,'method':'plain','params':'client %d'}", i, i);
    for (int i = 0; i < 40; i++) {
        client_expect(&clients[i], "{'jsonrpc':'2.0','id':%d,'result':'client %d'}", i, i);
        client_close(&clients[i]);
    }
    daemon_stop(&daemon);
}

START_TEST(spec_4_1_2_2_many_unix_clients_at_once)
{
    check_many_clients(SETUP_UNIX);
}
END_TEST

START_TEST(spec_4_1_2_2_many_tcp_clients_at_once)
{
    check_many_clients(SETUP_TCP);
}
END_TEST

/* Neither a worker's death, nor error answers, nor the end of other clients ends a connection. */
START_TEST(spec_4_1_2_3_connection_stays_open)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_request(&client, "1", NULL, "fail", "{'code':-32601}");
    ck_assert(json_get(client_line(&client), "error").data != NULL);
    client_close(&other);
    client_request(&client, "2", "s", "die", "{'code':1}");
    client_error(&client, "2", -32000, "worker exited before answering");
    client_ask(&client, "3", "s", "echo", NULL);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Thirty messages, with escapes and multi-byte characters, cut in every way. */
static void check_chunks(struct daemon *daemon, size_t chunk)
{
    struct client client;
    struct text text = {0};
    client_connect(&client, daemon);
    for (int i = 0; i < 30; i++) {
        text_printf(&text, "{\"id\":%d,\"method\":\"plain\",\"sessionId\":\"s%d\",\"params\":", i,
                    i % 3);
        text_printf(&text, "\"\\\"}\xc3\xa9\\n{\\u20ac\xf0\x9f\x9a\x8c%zu\"}\n", chunk);
    }
    client_send_chunks(&client, text.data, text.len, chunk);
    for (int i = 0; i < 30; i++) {
        struct span line = client_line(&client);
        ck_assert_int_eq(json_long(json_get(line, "id"), -1), i);
        struct text expected = {0};
        text_printf(&expected, "\"\\\"}\xc3\xa9\\n{\\u20ac\xf0\x9f\x9a\x8c%zu\"", chunk);
        ck_assert(span_is(json_get(line, "result"), expected.data));
        text_free(&expected);
    }
    text_free(&text);
    client_close(&client);
}

START_TEST(spec_4_2_1_1_messages_cut_anywhere)
{
    static const size_t chunks[] = {1, 2, 3, 5, 7, 16, 61, 64, 200, 1000, 1000000};
    struct daemon daemon;
    START(&daemon, .instances = 1);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        check_chunks(&daemon, chunks[i]);
    daemon_stop(&daemon);
}
END_TEST

/* Message lengths around the sizes in which a daemon may read. */
START_TEST(spec_4_2_1_1_messages_of_awkward_lengths)
{
    static const size_t lengths[] = {4095, 4096, 4097, 65535, 65536, 65537, 131071, 131072, 131073};
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (int i = 0; i < 2 * (int)(sizeof lengths / sizeof lengths[0]); i++) {
        struct text line = {0};
        text_printf(&line, "{\"id\":%d,\"method\":\"plain\",\"params\":\"", i);
        size_t pad = lengths[i / 2] - line.len - 3;
        text_fill(&line, (char)('a' + i), pad);
        text_printf(&line, "\"}\n%s", i % 2 ? "{\"method\":\"no_answer\"}\n" : "");
        client_send_bytes(&client, line.data, line.len);
        struct span result = json_text(json_get(client_line(&client), "result"));
        ck_assert_uint_eq(result.len, pad);
        for (size_t at = 0; at < pad; at++)
            ck_assert(result.data[at] == 'a' + i);
        text_free(&line);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_4_2_1_1_blank_lines_and_crlf)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    const char *text = "\n\r\n  \t \n{\"id\":1}\r\n\n\n \r\n {\"id\":2} \t\r\n";
    client_send_bytes(&client, text, strlen(text));
    client_result(&client, "1");
    client_result(&client, "2");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Without its newline a message is not one yet. */
START_TEST(spec_4_2_1_3_newline_ends_a_message)
{
    struct daemon daemon;
    struct client client, other;
    struct span line;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_pid(&client, "0", NULL);
    const char *text = "{\"id\":1,\"method\":\"notify\",\"params\":{\"session\":\"s\"}}";
    client_ask(&other, "1", "s", "echo", NULL);
    client_send_bytes(&client, text, strlen(text));
    client_expect_quiet(&other);
    ck_assert(!client_line_before(&client, 0, &line));
    client_send_bytes(&client, "\n", 1);
    client_result(&client, "1");
    ck_assert(span_is(json_get(client_line(&other), "method"), "\"note\""));
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_4_2_1_3_unterminated_last_line_is_dropped)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    const char *text = "{\"id\":1,\"method\":\"plain\",\"params\":7}\n{\"method\":\"die\"}";
    client_send_bytes(&client, text, strlen(text));
    client_half_close(&client);
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':7}");
    client_expect_eof(&client);
    daemon_wait_log(&daemon, " WARN .*in the middle of a message");
    client_expect_quiet(&other);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_4_2_2_ids_and_sessions_of_each_kind)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2);
    client_connect(&client, &daemon);
    client_ask(&client, "0", NULL, "echo", NULL);
    client_ask(&client, "-7", "", "echo", NULL);
    client_ask(&client, "1.5e-3", "s", "echo", NULL);
    client_ask(&client, "12345678901234567890123", "s", "echo", NULL);
    client_ask(&client, "''", "s", "echo", NULL);
    client_ask(&client, "'a string'", "s", "echo", NULL);
    client_ask(&client, "'\\ud83d\\ude8c \\u0000'", "\\u0000\\/", "echo", NULL);
    client_send(&client, "{'id':7,'method':null}");
    client_result(&client, "7");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Members of the same names further down are content. */
START_TEST(spec_4_2_2_only_top_level_fields_route)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send(&client, "{'params':{'id':7,'sessionId':'x','result':1,'error':[{'id':8}]},"
                         "'method':'mirror','id':1}");
    client_result(&client, "1");
    client_send(&client, "{'params':[{'id':{}},{'sessionId':3}],'id':'2'}");
    client_result(&client, "'2'");
    client_send(&client, "{'x':'\\'id\\':9','id':3,'y':{'z':{'id':null}}}");
    client_result(&client, "3");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* None of these is JSON-RPC; all of them are passed on. */
START_TEST(spec_4_2_2_does_not_validate_json_rpc)
{
    static const char *const lines[] = {
        "{'id':1}",
        "{'id':1,'jsonrpc':'1.0','method':'echo'}",
        "{'id':1,'jsonrpc':2,'method':'echo'}",
        "{'id':1,'method':5,'params':'text'}",
        "{'id':1,'method':null}",
        "{'id':1,'method':{'a':[]}}",
        "{'id':1,'method':'echo','unknown':true,'params':null}",
    };
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        client_send(&client, "%s", lines[i]);
        client_result(&client, "1");
    }
    client_send(&client, "{}");
    client_send(&client, "{'hello':'there'}");
    client_send(&client, "{'method':'no_such_method'}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Lines whose every byte must arrive as it was written; %s stands for the other fields. */
static const char *const odd_lines[] = {
    "{\"id\":1,%s}",
    "  { \"id\" :\t1 , %s }  ",
    "{\"a\":1.0,\"b\":1e2,\"c\":-0,\"d\":1E+2,\"e\":0.10,\"id\":1,%s}",
    "{\"id\":1,\"t\":\"\\u00e9\xc3\xa9\\/\\\"\\\\\\b\\f\\n\\r\\t\\ud83d\\ude8c\",%s}",
    "{\"x\":1,\"x\":2,\"x\":3,\"id\":1,%s}",
    "{\"id\":1,\"big\":123456789012345678901234567890.123456789,%s}",
    "{\"id\":1,\"e\":{},\"a\":[],\"n\":[[[[null,true,false]]]],%s}",
    "{\"id\":1,\"del\":\"\x7f\xc2\x80\xef\xbb\xbf\",%s}\r",
};

static void add_hex(struct text *to, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text_printf(to, "%02x", (unsigned char)bytes[i]);
}

/* One of the odd lines with its other fields. */
static void add_odd_line(struct text *to, size_t i, const char *fields)
{
    struct text line = {0};
    text_printf(&line, "%s", odd_lines[i]);
    text_replace(&line, "%s", fields);
    text_add(&line, "\n", 1);
    text_add(to, line.data, line.len);
    text_free(&line);
}

START_TEST(spec_4_2_3_2_answers_are_lines)
{
    struct daemon daemon;
    struct client client;
    char bytes[64];
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "0");
    const char *expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":0}\n";
    for (size_t len = 0; len < strlen(expected);) {
        ck_assert(wait_fd(client.in, POLLIN, deadline_usual()));
        ssize_t n = read(client.in, bytes + len, sizeof bytes - len);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
        ck_assert_int_eq(memcmp(bytes, expected, len), 0);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_4_2_3_3_worker_messages_are_not_modified)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_pid(&client, "0", "s");
    for (size_t i = 0; i < sizeof odd_lines / sizeof odd_lines[0]; i++) {
        struct text line = {0}, request = {0};
        add_odd_line(&line, i, "\"result\":[ ]");
        text_printf(&request, "{\"id\":1,\"method\":\"garbage\",\"params\":{\"hex\":\"");
        add_hex(&request, line.data, line.len);
        text_printf(&request, "\"}}\n");
        client_send_bytes(&client, request.data, request.len);
        line.data[line.len - 1] = '\0';
        ck_assert(span_is(client_line(&client), line.data));
        text_free(&line);
        text_free(&request);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_5_1_1_3_client_messages_are_not_modified)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < sizeof odd_lines / sizeof odd_lines[0]; i++) {
        struct text line = {0}, hex = {0};
        add_odd_line(&line, i, "\"method\":\"mirror\",\"sessionId\":\"s\"");
        text_add(&hex, "\"", 1);
        add_hex(&hex, line.data, line.len);
        text_add(&hex, "\"", 1);
        client_send_bytes(&client, line.data, line.len);
        struct span seen = json_get(client_line(&client), "result.line");
        ck_assert_msg(span_is(seen, hex.data), "line %zu reached the worker changed", i);
        text_free(&line);
        text_free(&hex);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* What was asked before the end of the sending side is answered still. */
START_TEST(design_half_close_gets_its_answers)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_ask(&other, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 5; i++)
        client_send(&client, "{'id':%d,'method':'plain','params':%d}", i, i);
    client_half_close(&client);
    client_ask(&other, "'r'", NULL, "release", NULL);
    for (int i = 0; i < 5; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    client_expect_eof(&client);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_half_close_without_requests_is_the_end)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_pid(&client, "1", "s");
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_pool_field_picks_the_pool)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = POOL("a", 1, "'--name','a'") "," POOL("b", 2, "'--name','b'"));
    client_connect(&client, &daemon);
    for (int i = 0; i < 6; i++) {
        client_send(&client, "{'id':1,'pool':'%s','method':'echo'}", i % 2 ? "a" : "b");
        struct span name = json_get(client_result(&client, "1"), "worker");
        ck_assert(span_is(name, i % 2 ? "\"a\"" : "\"b\""));
    }
    client_send(&client, "{'id':2,'pool':'\\u0062','sessionId':'s','method':'echo'}");
    ck_assert(span_is(json_get(client_result(&client, "2"), "worker"), "\"b\""));
    client_send(&client, "{'id':3,'pool':'c','method':'echo'}");
    client_error(&client, "3", -32602, "pool");
    client_send(&client, "{'pool':'c','method':'echo'}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

static void add_message_tests(Suite *suite)
{
    TCase *messages = harness_case(suite, "4.2 messages");
    tcase_add_test(messages, spec_4_2_1_1_messages_cut_anywhere);
    tcase_add_test(messages, spec_4_2_1_1_messages_of_awkward_lengths);
    tcase_add_test(messages, spec_4_2_1_1_blank_lines_and_crlf);
    tcase_add_test(messages, spec_4_2_1_3_newline_ends_a_message);
    tcase_add_test(messages, spec_4_2_1_3_unterminated_last_line_is_dropped);
    tcase_add_test(messages, spec_4_2_2_ids_and_sessions_of_each_kind);
    tcase_add_test(messages, spec_4_2_2_only_top_level_fields_route);
    tcase_add_test(messages, spec_4_2_2_does_not_validate_json_rpc);
    tcase_add_test(messages, spec_4_2_3_2_answers_are_lines);
    tcase_add_test(messages, spec_4_2_3_3_worker_messages_are_not_modified);
    tcase_add_test(messages, spec_5_1_1_3_client_messages_are_not_modified);
    tcase_add_test(messages, design_pool_field_picks_the_pool);
}

int main(void)
{
    Suite *suite = suite_create("spec 4: clients");
    TCase *modes = harness_case(suite, "4.1 modes and connections");
    tcase_add_test(modes, spec_4_1_1_stdio_mode);
    tcase_add_test(modes, spec_4_1_1_stdio_is_the_default);
    tcase_add_test(modes, spec_4_1_1_unix_mode);
    tcase_add_test(modes, spec_4_1_1_tcp_mode);
    tcase_add_test(modes, spec_4_1_1_tcp_mode_ipv6);
    tcase_add_test(modes, spec_4_1_1_tcp_port_alone_is_loopback);
    tcase_add_test(modes, spec_4_1_2_1_stdio_has_one_client);
    tcase_add_test(modes, spec_4_1_2_2_many_unix_clients_at_once);
    tcase_add_test(modes, spec_4_1_2_2_many_tcp_clients_at_once);
    tcase_add_test(modes, spec_4_1_2_3_connection_stays_open);
    tcase_add_test(modes, design_half_close_gets_its_answers);
    tcase_add_test(modes, design_half_close_without_requests_is_the_end);
    add_message_tests(suite);
    return harness_run(suite);
}
