/* ADR-010: messages framed by Content-Length, and bridging between framings. */
#include "build_config.h"

#include "harness.h"

/* Answers of a worker and an error of the daemon: frames, and nothing else. */
static void check_conversation(struct client *client)
{
    frames_send(client, "{'jsonrpc':'2.0','id':1,'method':'plain','params':[1, 2]}");
    frames_expect(client, "{'jsonrpc':'2.0','id':1,'result':[1, 2]}");
    frames_send(client, "{'jsonrpc':'2.0','method':'plain'}");
    frames_send(client, "{'jsonrpc':'2.0','id':2,'method':'fail','params':{'code':7}}");
    frames_expect(client, "{'jsonrpc':'2.0','id':2,'error':{'code':7,'message':'as you asked'}}");
    frames_send(client, "{'id':3,'pool':'none','method':'plain'}");
    frames_error(client, "3", -32602, "no such pool");
    ck_assert_uint_eq(client->input.len, client->consumed);
}

TEST(adr_010_stdio)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, FRAMED);
    struct client *client = client_stdio(daemon);
    check_conversation(client);
    client_finish(client, daemon);
}

static const struct setup framed_setups[] = {
    {.mode = SETUP_UNIX, FRAMED},
    {.mode = SETUP_TCP, FRAMED},
    {.members = "'listen':{'framing':'content-length'}"},
    {.members = "'listen':{'framing':'length'}", FRAMED}, /* the option overrides the key */
};

TEST_ROWS(adr_010_sockets, COUNT(framed_setups))
{
    check_conversation(client_connect(daemon_start(&framed_setups[row])));
}

TEST(adr_010_option_wins_over_the_configuration)
{
    client_expect_quiet(client_connect(START(.members = "'listen':{'framing':'length'}",
                                             .arguments = {"--framing", "ndjson"})));
}

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

/* Sent in pieces of `row` bytes, or in one. */
TEST_ROWS(adr_010_headers_that_are_accepted, 8)
{
    struct text *stream = test_text();
    struct client *client = client_connect(START(FRAMED));
    for (size_t i = 0; i < COUNT(heads); i++) {
        const char *body = test_format("{\"id\":%zu,\"method\":\"plain\"}", i);
        text_printf(stream, heads[i], strlen(body));
        text_add(stream, body, strlen(body));
    }
    client_send_chunks(client, stream->data, stream->len, row == 0 ? stream->len : row);
    for (size_t i = 0; i < COUNT(heads); i++)
        frames_result(client, test_format("%zu", i));
}

/* The length counts bytes, not characters. */
TEST(adr_010_length_counts_bytes)
{
    struct text *body = test_text();
    struct client *client = client_connect(START(FRAMED));
    for (int i = 0; i < 20000; i++)
        text_printf(body, "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
    frames_send(client, "{'jsonrpc':'2.0','id':1,'method':'plain','params':'%s'}", body->data);
    frames_expect(client, "{'jsonrpc':'2.0','id':1,'result':'%s'}", body->data);
    frames_pid(client, 2);
}

TEST(adr_010_frames_are_handled_in_order)
{
    struct text *stream = test_text();
    struct client *client = client_connect(START(FRAMED));
    for (int i = 0; i < 1000; i++) {
        const char *body = test_format("{\"id\":%d,\"method\":\"plain\",\"params\":%d}", i, i);
        frames_add(stream, body, strlen(body));
    }
    client_send_bytes(client, stream->data, stream->len);
    for (int i = 0; i < 1000; i++)
        frames_expect(client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
}

/* --- bridging --- */

static const char *hex_of(const char *bytes)
{
    struct text *hex = test_text();
    text_hex(hex, bytes, strlen(bytes));
    return hex->data;
}

/* The test worker mirrors its input, which must be these bytes. */
static void expect_mirrored(struct span result, const char *bytes)
{
    expect_member(result, "line", test_format("'%s'", hex_of(bytes)));
}

#define BODY "{\n\"id\":1,\r\n\t\"method\":\n\"mirror\",\"params\":\"a\\nb\"\r}\n"
#define LINE "{ \"id\":1,  \t\"method\": \"mirror\",\"params\":\"a\\nb\" } "

/* Newlines between tokens become spaces, and nothing else changes. */
TEST(adr_010_newlines_become_spaces)
{
    struct client *client = client_connect(START(FRAMED));
    frames_send(client, "%s", BODY);
    expect_mirrored(frames_result(client, "1"), LINE "\n");
}

/* Between two framed sides a body passes unchanged. */
TEST(adr_010_bodies_pass_unchanged)
{
    struct client *client = client_connect(START(.pools = FRAMED_POOL(""), FRAMED));
    check_conversation(client);
    frames_send(client, "%s", BODY);
    expect_mirrored(frames_result(client, "1"), BODY);
}

TEST(adr_010_lines_for_framed_workers)
{
    static const char body[] = "{\n\"sessionId\":\"s\",\r\n\"method\":\"x\"\r\n}";
    struct text *frame = test_text();
    struct client *client = client_connect(START(.pools = FRAMED_POOL("")));
    client_request(client, "1", "s", "mirror", "'\\n'");
    expect_mirrored(client_result(client, "1"),
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"sessionId\":\"s\",\"method\":\"mirror\","
                    "\"params\":\"\\n\"}");
    frames_add(frame, body, sizeof body - 1);
    client_request(client, NULL, "s", "garbage", test_format("{'hex':'%s'}", hex_of(frame->data)));
    client_expect(client, "{ 'sessionId':'s',  'method':'x'  }");
}

/* A worker that reads lines, and one that reads frames. */
static const char *const pools[] = {POOL("pool", 1, ""), FRAMED_POOL("")};

/* A worker's request to the client, its reply, and notifications. */
TEST_ROWS(adr_010_workers_ask_and_notify, COUNT(pools))
{
    struct client *client = client_connect(START(.pools = pools[row], FRAMED));
    frames_send(client, "{'id':1,'sessionId':'s','method':'ask','params':{'id':'q','params':5}}");
    struct span question = frames_next(client);
    expect_member(question, "id", "'q'");
    expect_member(question, "params", "5");
    frames_send(client, "{'id':'q',%s'result':{'a':1}}", row == 0 ? "\n" : " ");
    expect_member(frames_result(client, "1"), "result.a", "1");
    frames_send(client, "{'id':2,'sessionId':'s','method':'notify','params':{'n':3,'size':10}}");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(json_number(frames_next(client), "params.n"), i);
    frames_result(client, "2");
}

/* Large bodies move with their buffers, small ones are copied, in both directions. */
TEST_ROWS(adr_010_bodies_of_all_sizes, COUNT(pools))
{
    static const size_t sizes[] = {1, 1000, 16384, 65536, 100, 300000, 900000};
    struct client *client = client_connect(START(.pools = pools[row], FRAMED));
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        const char *pad = test_fill('p', sizes[i / 2]);
        frames_send(client, "{'id':%zu,'method':'plain',%s'params':'%s'}", i, i % 2 ? "\n" : "",
                    pad);
        frames_expect(client, "{'jsonrpc':'2.0','id':%zu,'result':'%s'}", i, pad);
    }
}

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

TEST(adr_010_length_framing)
{
    struct client *client = client_connect(
        START(.arguments = {"--framing", "length"},
              .pools = "{'id':'pool','command':'@WORKER@','instances':1,'framing':'length',"
                       "'args':['--framing','length']}"));
    send_length(client, "{\"id\":1,\n\"method\":\"plain\",\"params\":5}\n");
    expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}");
    send_length(client, "{\"id\":2,]");
    expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                          "\"message\":\"not valid JSON\"}}");
    send_length(client, "{\"id\":3,\"method\":\"plain\"}");
    expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}");
}

/* A body reaches a worker that reads lines as one line. */
TEST_ROWS(adr_010_body_is_one_line_for_a_worker, 2)
{
    struct client *client =
        client_connect(START(.arguments = {"--framing", row == 0 ? "length" : "content-length"}));
    const char *body = "{\"method\":\"no_answer\"\n}\n{\"id\":9,\"method\":\"echo\"}\n";
    const char *good = "{\"id\":1,\n\"method\":\"plain\"\n}";
    if (row == 0) {
        send_length(client, good);
        expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
        send_length(client, body);
        expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                              "\"message\":\"more text behind the JSON object\"}}");
        send_length(client, good);
        expect_length(client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
    } else {
        frames_pid(client, 2);
        frames_send(client, "%s", body);
        frames_error(client, "null", -32700, "more text");
        frames_send(client, "%s", good);
        frames_result(client, "1");
    }
}
