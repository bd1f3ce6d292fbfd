/* ADR-010: messages framed by Content-Length, and bridging between framings. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

#define FRAMED .arguments = {"--framing", "content-length"}
#define FRAMED_WORKER "'--framing','content-length'"
#define FRAMED_POOL(args)                                                                          \
    "{'id':'pool','command':'@WORKER@','instances':1,'framing':'content-length',"                  \
    "'args':[" FRAMED_WORKER args "]}"

/* Says hello to both the daemon and a worker, and sees that nothing but frames comes back. */
static void check_conversation(struct client *client)
{
    frames_send(client, "{'jsonrpc':'2.0','id':1,'method':'plain','params':[1, 2]}");
    frames_expect(client, "{'jsonrpc':'2.0','id':1,'result':[1, 2]}");
    frames_send(client, "{'jsonrpc':'2.0','method':'plain'}");
    frames_send(client, "{'jsonrpc':'2.0','id':2,'method':'fail','params':{'code':7}}");
    frames_expect(client,
                  "{'jsonrpc':'2.0','id':2,'error':{'code':7,'message':'as you asked'}}");
    frames_send(client, "{'id':3,'pool':'none','method':'plain'}");
    frames_error(client, "3", -32602, "no such pool");
    ck_assert_uint_eq(client->input.len, client->consumed);
}

START_TEST(adr_010_stdio)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, FRAMED);
    client_stdio(&client, &daemon);
    check_conversation(&client);
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

START_TEST(adr_010_sockets)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = _i == 0 ? SETUP_UNIX : SETUP_TCP, FRAMED);
    client_connect(&client, &daemon);
    check_conversation(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(adr_010_framing_from_the_configuration)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .members = "'listen':{'framing':'content-length'}");
    client_connect(&client, &daemon);
    check_conversation(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(adr_010_option_wins_over_the_configuration)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .members = "'listen':{'framing':'length'}", FRAMED);
    client_connect(&client, &daemon);
    check_conversation(&client);
    client_close(&client);
    daemon_stop(&daemon);
    START(&daemon, .members = "'listen':{'framing':'length'}",
          .arguments = {"--framing", "ndjson"});
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* --- headers --- */

static const char *const heads[] = {
    "Content-Length: %zu\r\n\r\n",
    "content-length:%zu\r\n\r\n",
    "CONTENT-LENGTH:\t 00%zu  \r\n\r\n",
    "Content-Length: %zu\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
    "Content-Type: application/vscode-jsonrpc; charset=UTF8\r\nContent-Length: %zu\r\n\r\n",
    "CONTENT-TYPE: Application/VSCODE-jsonrpc;x=y;Charset=\"Utf-8\"\r\nContent-Length: %zu\r\n\r\n",
    "content-type:application/vscode-jsonrpc\r\nContent-Length: %zu\r\n\r\n",
    "Content-Type: application/json; charset = utf-8 ; a=b\r\nContent-Length: %zu\r\n\r\n",
    "X-Unknown: text/plain; charset=latin1\r\nContent-Length: %zu\r\nContent-Lengths: x\r\n\r\n",
};

#define HEADS (sizeof heads / sizeof heads[0])

START_TEST(adr_010_headers_that_are_accepted)
{
    struct daemon daemon;
    struct client client;
    struct text stream = {0};
    char body[80];
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < HEADS; i++) {
        int len = snprintf(body, sizeof body, "{\"id\":%zu,\"method\":\"plain\"}", i);
        text_printf(&stream, heads[i], (size_t)len);
        text_add(&stream, body, (size_t)len);
    }
    client_send_chunks(&client, stream.data, stream.len, _i == 0 ? stream.len : (size_t)_i);
    for (size_t i = 0; i < HEADS; i++) {
        snprintf(body, sizeof body, "%zu", i);
        frames_result(&client, body);
    }
    text_free(&stream);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The length is one of bytes. */
START_TEST(adr_010_length_counts_bytes)
{
    struct daemon daemon;
    struct client client;
    struct text body = {0};
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    for (int i = 0; i < 20000; i++)
        text_printf(&body, "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
    frames_send(&client, "{'jsonrpc':'2.0','id':1,'method':'plain','params':'%s'}", body.data);
    frames_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'%s'}", body.data);
    frames_pid(&client, 2);
    text_free(&body);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(adr_010_frames_are_handled_in_order)
{
    struct daemon daemon;
    struct client client;
    struct text stream = {0};
    char body[80];
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    for (int i = 0; i < 1000; i++) {
        int len = snprintf(body, sizeof body, "{\"id\":%d,\"method\":\"plain\",\"params\":%d}", i,
                           i);
        frames_add(&stream, body, (size_t)len);
    }
    client_send_bytes(&client, stream.data, stream.len);
    for (int i = 0; i < 1000; i++)
        frames_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    text_free(&stream);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* --- bridging --- */

static void add_hex(struct text *to, const char *bytes)
{
    for (; *bytes != '\0'; bytes++)
        text_printf(to, "%02x", (unsigned)(unsigned char)*bytes);
}

#define BODY "{\n\"id\":1,\r\n\t\"method\":\n\"mirror\",\"params\":\"a\\nb\"\r}\n"
#define LINE "{ \"id\":1,  \t\"method\": \"mirror\",\"params\":\"a\\nb\" } "

/* Newlines between tokens become spaces, and nothing else changes. */
START_TEST(adr_010_newlines_become_spaces)
{
    struct daemon daemon;
    struct client client;
    struct text hex = {0};
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    add_hex(&hex, LINE "\n");
    frames_send(&client, "%s", BODY);
    ck_assert(span_is(json_text(json_get(frames_result(&client, "1"), "line")), hex.data));
    text_free(&hex);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Between two framed sides a body passes as it is. */
START_TEST(adr_010_bodies_pass_unchanged)
{
    struct daemon daemon;
    struct client client;
    struct text hex = {0};
    START(&daemon, .pools = FRAMED_POOL(""), FRAMED);
    client_connect(&client, &daemon);
    check_conversation(&client);
    add_hex(&hex, BODY);
    frames_send(&client, "%s", BODY);
    ck_assert(span_is(json_text(json_get(frames_result(&client, "1"), "line")), hex.data));
    text_free(&hex);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(adr_010_lines_for_framed_workers)
{
    struct daemon daemon;
    struct client client;
    struct text frame = {0}, hex = {0};
    START(&daemon, .pools = FRAMED_POOL(""));
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "mirror", "'\\n'");
    add_hex(&hex, "{\"jsonrpc\":\"2.0\",\"id\":1,\"sessionId\":\"s\",\"method\":\"mirror\","
                  "\"params\":\"\\n\"}");
    ck_assert(span_is(json_text(json_get(client_result(&client, "1"), "line")), hex.data));
    hex.len = 0;
    frames_add(&frame, "{\n\"sessionId\":\"s\",\r\n\"method\":\"x\"\r\n}",
               strlen("{\n\"sessionId\":\"s\",\r\n\"method\":\"x\"\r\n}"));
    add_hex(&hex, frame.data);
    text_printf(&frame, "{'hex':'%s'}", hex.data);
    client_request(&client, NULL, "s", "garbage", strchr(frame.data, '}') + 1);
    client_expect(&client, "{ 'sessionId':'s',  'method':'x'  }");
    text_free(&frame);
    text_free(&hex);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A worker's request to the client, its reply, and notifications. */
START_TEST(adr_010_workers_ask_and_notify)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = _i == 0 ? POOL("pool", 1, "") : FRAMED_POOL(""), FRAMED);
    client_connect(&client, &daemon);
    frames_send(&client, "{'id':1,'sessionId':'s','method':'ask','params':{'id':'q','params':5}}");
    struct span question = frames_next(&client);
    ck_assert(span_is(json_get(question, "id"), "\"q\""));
    ck_assert(span_is(json_get(question, "params"), "5"));
    frames_send(&client, "{'id':'q',%s'result':{'a':1}}", _i == 0 ? "\n" : " ");
    ck_assert(span_is(json_get(frames_result(&client, "1"), "result.a"), "1"));
    frames_send(&client, "{'id':2,'sessionId':'s','method':'notify','params':{'n':3,'size':10}}");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(json_long(json_get(frames_next(&client), "params.n"), -1), i);
    frames_result(&client, "2");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Large bodies move, small ones are copied, in both directions and between all framings. */
START_TEST(adr_010_bodies_of_all_sizes)
{
    static const size_t sizes[] = {1, 1000, 16384, 65536, 100, 300000, 900000};
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = _i == 0 ? POOL("pool", 1, "") : FRAMED_POOL(""), FRAMED);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        struct text pad = {0};
        text_fill(&pad, 'p', sizes[i / 2]);
        frames_send(&client, "{'id':%zu,'method':'plain',%s'params':'%s'}", i, i % 2 ? "\n" : "",
                    pad.data);
        frames_expect(&client, "{'jsonrpc':'2.0','id':%zu,'result':'%s'}", i, pad.data);
        text_free(&pad);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* --- four bytes of length --- */

static void send_length(struct client *client, const char *body)
{
    size_t len = strlen(body);
    unsigned char head[4] = {0, 0, (unsigned char)(len >> 8), (unsigned char)len};
    client_send_bytes(client, head, 4);
    client_send_bytes(client, body, len);
}

static void expect_length(struct client *client, const char *body)
{
    size_t len = strlen(body) + 4;
    while (client->input.len - client->consumed < len)
        ck_assert(client_read_before(client, deadline_usual()));
    const char *at = client->input.data + client->consumed;
    ck_assert_int_eq(at[0] | at[1] | at[2], 0);
    ck_assert_int_eq((unsigned char)at[3], (int)len - 4);
    ck_assert_mem_eq(at + 4, body, len - 4);
    client->consumed += len;
}

START_TEST(adr_010_length_framing)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .arguments = {"--framing", "length"},
          .pools = "{'id':'pool','command':'@WORKER@','instances':1,'framing':'length',"
                   "'args':['--framing','length']}");
    client_connect(&client, &daemon);
    send_length(&client, "{\"id\":1,\n\"method\":\"plain\",\"params\":5}\n");
    expect_length(&client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}");
    send_length(&client, "{\"id\":2,]");
    expect_length(&client, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                           "\"message\":\"not valid JSON\"}}");
    send_length(&client, "{\"id\":3,\"method\":\"plain\"}");
    expect_length(&client, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Whatever a body contains, a worker that reads lines sees one. */
START_TEST(adr_010_nobody_smuggles_a_line)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .arguments = {"--framing", _i == 0 ? "length" : "content-length"});
    client_connect(&client, &daemon);
    const char *body = "{\"method\":\"no_answer\"\n}\n{\"id\":9,\"method\":\"echo\"}\n";
    const char *good = "{\"id\":1,\n\"method\":\"plain\"\n}";
    if (_i == 0) {
        send_length(&client, body);
        expect_length(&client, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                               "\"message\":\"more text behind the JSON object\"}}");
        send_length(&client, good);
        expect_length(&client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
    } else {
        frames_send(&client, "%s", body);
        frames_error(&client, "null", -32700, "more text");
        frames_send(&client, "%s", good);
        frames_result(&client, "1");
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ADR-010: framing");
    TCase *modes = harness_case(suite, "modes"), *headers = harness_case(suite, "headers");
    TCase *bridging = harness_case(suite, "bridging");
    tcase_add_test(modes, adr_010_stdio);
    tcase_add_loop_test(modes, adr_010_sockets, 0, 2);
    tcase_add_test(modes, adr_010_framing_from_the_configuration);
    tcase_add_test(modes, adr_010_option_wins_over_the_configuration);
    tcase_add_loop_test(headers, adr_010_headers_that_are_accepted, 0, 8);
    tcase_add_test(headers, adr_010_length_counts_bytes);
    tcase_add_test(headers, adr_010_frames_are_handled_in_order);
    tcase_add_test(bridging, adr_010_newlines_become_spaces);
    tcase_add_test(bridging, adr_010_bodies_pass_unchanged);
    tcase_add_test(bridging, adr_010_lines_for_framed_workers);
    tcase_add_loop_test(bridging, adr_010_workers_ask_and_notify, 0, 2);
    tcase_add_loop_test(bridging, adr_010_bodies_of_all_sizes, 0, 2);
    tcase_add_test(bridging, adr_010_length_framing);
    tcase_add_loop_test(bridging, adr_010_nobody_smuggles_a_line, 0, 2);
    return harness_run(suite);
}
