/* Specification, chapter 4: operating modes, connections, the messages of clients. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"
#include "network.h"

static const struct {
    struct setup setup;
    const char *host;
} modes[] = {
    {{.mode = SETUP_STDIO}, ""},
    {{.mode = SETUP_STDIO, .default_mode = true}, ""},
    {{.mode = SETUP_UNIX}, ""},
    {{.mode = SETUP_TCP, .address = "127.0.0.1:0"}, "127.0.0.1"},
    {{.mode = SETUP_TCP, .address = "[::1]:0"}, "::1"},
};

TEST_ROWS(spec_4_1_1_modes, COUNT(modes))
{
    if (strcmp(modes[row].host, "::1") == 0 && !have_ipv6())
        return;
    struct daemon *daemon = daemon_start(&modes[row].setup);
    bool stdio = modes[row].setup.mode == SETUP_STDIO;
    struct client *client = stdio ? client_stdio(daemon) : client_connect(daemon);
    ck_assert_str_eq(daemon->host, modes[row].host);
    client_request(client, "1", NULL, "plain", "'hello'");
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':'hello'}");
    if (stdio)
        client_finish(client, daemon);
}

TEST(spec_4_1_1_tcp_port_alone_is_loopback)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .address = ":0");
    ck_assert(strcmp(daemon->host, "127.0.0.1") == 0 || strcmp(daemon->host, "::1") == 0);
    client_expect_quiet(client_connect(daemon));
}

/* The end of the only client is the end of the daemon. */
TEST(spec_4_1_2_1_stdio_has_one_client)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO);
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    ck_assert(!daemon_logged(daemon, "listening on"));
    client_finish(client, daemon);
}

static const enum setup_mode socket_modes[] = {SETUP_UNIX, SETUP_TCP};

TEST_ROWS(spec_4_1_2_2_many_clients_at_once, COUNT(socket_modes))
{
    struct client *clients[40];
    struct daemon *daemon = START(.mode = socket_modes[row], .instances = 2);
    for (int i = 0; i < 40; i++)
        clients[i] = client_connect(daemon);
    for (int i = 39; i >= 0; i--)
        client_send(clients[i], "{'id':%d,'method':'plain','params':'client %d'}", i, i);
    for (int i = 0; i < 40; i++)
        client_expect(clients[i], "{'jsonrpc':'2.0','id':%d,'result':'client %d'}", i, i);
}

/* Neither a worker's death, nor error answers, nor the end of other clients ends a connection. */
TEST(spec_4_1_2_3_connection_stays_open)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_request(client, "1", NULL, "fail", "{'code':-32601}");
    ck_assert(json_get(client_line(client), "error").data != NULL);
    client_close(other);
    client_crash(client, "2", "s", "{'code':1}");
    client_ask(client, "3", "s", "echo", NULL);
}

/* Thirty messages with escapes and multi-byte characters, sent in pieces. */
static void check_chunks(struct daemon *daemon, size_t chunk)
{
    struct text *text = test_text();
    struct client *client = client_connect(daemon);
    const char *params = test_format("\"\\\"}\xc3\xa9\\n{\\u20ac\xf0\x9f\x9a\x8c%zu\"", chunk);
    for (int i = 0; i < 30; i++)
        text_printf(text, "{\"id\":%d,\"method\":\"plain\",\"sessionId\":\"s%d\",\"params\":%s}\n",
                    i, i % 3, params);
    client_send_chunks(client, text->data, text->len, chunk);
    for (int i = 0; i < 30; i++) {
        struct span line = client_line(client);
        ck_assert_int_eq(json_number(line, "id"), i);
        expect_member(line, "result", params);
    }
}

TEST(spec_4_2_1_1_messages_cut_anywhere)
{
    static const size_t chunks[] = {1, 2, 3, 5, 7, 16, 61, 64, 200, 1000, 1000000};
    struct daemon *daemon = START(.instances = 1);
    for (size_t i = 0; i < COUNT(chunks); i++)
        check_chunks(daemon, chunks[i]);
}

/* Message lengths around likely sizes of reads. */
TEST(spec_4_2_1_1_messages_of_awkward_lengths)
{
    static const size_t lengths[] = {4095, 4096, 4097, 65535, 65536, 65537, 131071, 131072, 131073};
    struct client *client = client_connect(START(.instances = 1));
    for (int i = 0; i < 2 * (int)COUNT(lengths); i++) {
        struct text *line = test_text();
        text_printf(line, "{\"id\":%d,\"method\":\"plain\",\"params\":\"", i);
        size_t pad = lengths[i / 2] - line->len - 3;
        text_fill(line, (char)('a' + i), pad);
        text_printf(line, "\"}\n%s", i % 2 ? "{\"method\":\"no_answer\"}\n" : "");
        client_send_bytes(client, line->data, line->len);
        struct span result = json_text(json_get(client_line(client), "result"));
        ck_assert_uint_eq(result.len, pad);
        for (size_t at = 0; at < pad; at++)
            ck_assert(result.data[at] == 'a' + i);
    }
}

TEST(spec_4_2_1_1_blank_lines_and_crlf)
{
    struct client *client = client_connect(START(.instances = 1));
    const char *text = "\n\r\n  \t \n{\"id\":1}\r\n\n\n \r\n {\"id\":2} \t\r\n";
    client_send_bytes(client, text, strlen(text));
    client_result(client, "1");
    client_result(client, "2");
}

/* A message without its newline is not handled. */
TEST(spec_4_2_1_3_newline_ends_a_message)
{
    struct span line;
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_pid(client, "0", NULL);
    const char *text = "{\"id\":1,\"method\":\"notify\",\"params\":{\"session\":\"s\"}}";
    client_ask(other, "1", "s", "echo", NULL);
    client_send_bytes(client, text, strlen(text));
    client_expect_quiet(other);
    ck_assert(!client_line_before(client, 0, &line));
    client_send_bytes(client, "\n", 1);
    client_result(client, "1");
    expect_member(client_line(other), "method", "'note'");
}

TEST(spec_4_2_1_3_unterminated_last_line_is_dropped)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    const char *text = "{\"id\":1,\"method\":\"plain\",\"params\":7}\n{\"method\":\"die\"}";
    client_send_bytes(client, text, strlen(text));
    client_half_close(client);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':7}");
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*in the middle of a message");
    client_expect_quiet(other);
}

TEST(spec_4_2_2_ids_and_sessions_of_each_kind)
{
    struct client *client = client_connect(START(.instances = 2));
    client_ask(client, "0", NULL, "echo", NULL);
    client_ask(client, "-7", "", "echo", NULL);
    client_ask(client, "1.5e-3", "s", "echo", NULL);
    client_ask(client, "12345678901234567890123", "s", "echo", NULL);
    client_ask(client, "''", "s", "echo", NULL);
    client_ask(client, "'a string'", "s", "echo", NULL);
    client_ask(client, "'\\ud83d\\ude8c \\u0000'", "\\u0000\\/", "echo", NULL);
    client_send(client, "{'id':7,'method':null}");
    client_result(client, "7");
}

/* Nested members of the same names are content. */
TEST(spec_4_2_2_only_top_level_fields_route)
{
    struct client *client = client_connect(START(.instances = 1));
    client_send(client, "{'params':{'id':7,'sessionId':'x','result':1,'error':[{'id':8}]},"
                        "'method':'mirror','id':1}");
    client_result(client, "1");
    client_send(client, "{'params':[{'id':{}},{'sessionId':3}],'id':'2'}");
    client_result(client, "'2'");
    client_send(client, "{'x':'\\'id\\':9','id':3,'y':{'z':{'id':null}}}");
    client_result(client, "3");
}

/* None of these is JSON-RPC, and all are forwarded. */
TEST(spec_4_2_2_does_not_validate_json_rpc)
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
    struct client *client = client_connect(START(.instances = 1));
    for (size_t i = 0; i < COUNT(lines); i++) {
        client_send(client, "%s", lines[i]);
        client_result(client, "1");
    }
    client_send(client, "{}");
    client_send(client, "{'hello':'there'}");
    client_send(client, "{'method':'no_such_method'}");
    client_expect_quiet(client);
}

/* Lines that must arrive unchanged; %s stands for the other fields. */
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

/* One of these lines with its other fields. */
static struct text *odd_line(size_t i, const char *fields)
{
    struct text *line = test_text();
    text_printf(line, "%s\n", odd_lines[i]);
    text_replace(line, "%s", fields);
    return line;
}

TEST(spec_4_2_3_2_answers_are_lines)
{
    char bytes[64];
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", NULL, "plain", "0");
    const char *expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":0}\n";
    for (size_t len = 0; len < strlen(expected);) {
        ck_assert(wait_fd(client->in, POLLIN, deadline_usual()));
        ssize_t n = read(client->in, bytes + len, sizeof bytes - len);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
        ck_assert_int_eq(memcmp(bytes, expected, len), 0);
    }
}

TEST(spec_4_2_3_3_worker_messages_are_not_modified)
{
    struct client *client = client_connect(START(.instances = 1));
    client_pid(client, "0", "s");
    for (size_t i = 0; i < COUNT(odd_lines); i++) {
        struct text *line = odd_line(i, "\"result\":[ ]"), *hex = test_text();
        text_hex(hex, line->data, line->len);
        client_send(client, "{'id':1,'method':'garbage','params':{'hex':'%s'}}", hex->data);
        line->data[line->len - 1] = '\0';
        ck_assert(span_is(client_line(client), line->data));
    }
}

TEST(spec_5_1_1_3_client_messages_are_not_modified)
{
    struct client *client = client_connect(START(.instances = 1));
    for (size_t i = 0; i < COUNT(odd_lines); i++) {
        struct text *line = odd_line(i, "\"method\":\"mirror\",\"sessionId\":\"s\"");
        struct text *hex = test_text();
        text_hex(hex, line->data, line->len);
        client_send_bytes(client, line->data, line->len);
        struct span seen = json_text(json_get(client_line(client), "result.line"));
        ck_assert_msg(span_is(seen, hex->data), "line %zu reached the worker changed", i);
    }
}

/* What was sent up to now is read, the end of a client's input too: in the round of the first
 * answer the daemon reads the last bytes, and in that of the second one the end after them. */
static void let_read(struct client *other)
{
    for (int i = 0; i < 2; i++) {
        client_send(other, "{'id':0,'pool':'none','method':'echo'}");
        client_error(other, "0", -32602, "pool");
    }
}

/* Requests before the end of input are answered after it. */
TEST(design_half_close_gets_its_answers)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_ask(other, "'h'", NULL, "hold", NULL);
    client_send_plain(client, NULL, 5);
    client_half_close(client);
    let_read(other);
    client_ask(other, "'r'", NULL, "release", NULL);
    client_expect_plain(client, NULL, 5);
    client_expect_eof(client);
}

TEST(design_half_close_without_requests_is_the_end)
{
    struct client *client = client_connect(START(.instances = 1));
    client_pid(client, "1", "s");
    client_half_close(client);
    client_expect_eof(client);
}

TEST(design_pool_field_picks_the_pool)
{
    struct client *client = client_connect(
        START(.pools = POOL("a", 1, "'--name','a'") "," POOL("b", 2, "'--name','b'")));
    for (int i = 0; i < 6; i++) {
        client_send(client, "{'id':1,'pool':'%s','method':'echo'}", i % 2 ? "a" : "b");
        expect_member(client_result(client, "1"), "worker", i % 2 ? "'a'" : "'b'");
    }
    client_send(client, "{'id':2,'pool':'\\u0062','sessionId':'s','method':'echo'}");
    expect_member(client_result(client, "2"), "worker", "'b'");
    client_send(client, "{'id':3,'pool':'c','method':'echo'}");
    client_error(client, "3", -32602, "pool");
    client_send(client, "{'pool':'c','method':'echo'}");
    client_expect_quiet(client);
}
