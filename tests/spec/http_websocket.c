/* WebSocket at an HTTP listener: each section of RFC 6455 that a server can break. */
#include "build_config.h"

#include "harness.h"
#include "web_socket.h"

#define WS_DAEMON(...) START(.mode = SETUP_HTTP, .instances = 2, __VA_ARGS__)

static struct daemon *start(void)
{
    return WS_DAEMON(.members = NULL);
}

/* --- 4: the opening handshake --- */

TEST(rfc_6455_4_2_2_accepts)
{
    struct web_socket *socket = ws_open(start());
    const char *accept = ws_field(socket, "Sec-WebSocket-Accept");
    ck_assert_str_eq(ws_field(socket, "Upgrade"), "websocket");
    ck_assert_str_eq(ws_field(socket, "Connection"), "Upgrade");
    ck_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); /* the example of section 1.3 */
    ck_assert_ptr_null(ws_field(socket, "Sec-WebSocket-Protocol"));
    ck_assert_ptr_null(ws_field(socket, "Sec-WebSocket-Extensions"));
    ck_assert_ptr_null(ws_field(socket, "Acp-Connection-Id"));
    ws_expect_alive(socket);
}

static const struct {
    const char *fields;
    int status;
} handshakes[] = {
    {"connection: keep-alive, UPGRADE\r\nupgrade: h2c, WebSocket\r\n" WS_KEY WS_VERSION, 101},
    {"Connection: keep-alive\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" WS_KEY WS_VERSION,
     101},
    {WS_UPGRADE WS_KEY "Sec-WebSocket-Version: 8\r\n", 426},
    {WS_UPGRADE WS_KEY "Sec-WebSocket-Version: 13, 8\r\n", 426},
    {WS_UPGRADE WS_KEY, 426},
    {WS_UPGRADE WS_VERSION, 400},
    {WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: \r\n", 400},
    {WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n", 400},
    {WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: not base64 of 16 bytes!!\r\n", 400},
    {WS_UPGRADE WS_VERSION WS_KEY WS_KEY, 400},
    {"Upgrade: websocket\r\n" WS_KEY WS_VERSION, 400},
    {WS_UPGRADE WS_KEY WS_VERSION "Content-Length: 4\r\n", 400},
    {WS_UPGRADE WS_KEY WS_VERSION "Transfer-Encoding: chunked\r\n", 400},
    {WS_UPGRADE WS_KEY WS_VERSION "Origin: https://example.org\r\n", 403}, /* 10.2 */
};

TEST_ROWS(rfc_6455_4_2_1_judges_the_request, COUNT(handshakes))
{
    struct daemon *daemon = start();
    struct web_socket socket = {0};
    int status = ws_ask(&socket, daemon, "/mcp", handshakes[row].fields);
    ck_assert_int_eq(status, handshakes[row].status);
    if (status == 426) /* 4.4 */
        ck_assert_str_eq(ws_field(&socket, "Sec-WebSocket-Version"), "13");
    if (status == 101)
        ws_expect_alive(&socket);
    text_free(&socket.head);
    text_free(&socket.payload);
}

TEST(rfc_6455_4_2_1_only_at_a_path_of_messages)
{
    struct daemon *daemon = start();
    struct web_socket socket = {0};
    ck_assert_int_eq(ws_ask(&socket, daemon, "/nothing", WS_UPGRADE WS_KEY WS_VERSION), 404);
    ck_assert_int_eq(ws_ask(&socket, daemon, "/mcp/pool", WS_UPGRADE WS_KEY WS_VERSION), 101);
    ws_expect_alive(&socket);
    text_free(&socket.head);
    text_free(&socket.payload);
}

/* 1.9: the first one that is known. */
static const struct {
    const char *offered, *chosen;
} subprotocols[] = {
    {"mcp", "mcp"},
    {"soap, jsonrpc , mcp", "jsonrpc"},
    {"soap\r\nSec-WebSocket-Protocol: acp", "acp"},
    {"soap", NULL},
    {"MCP", NULL},
};

TEST_ROWS(rfc_6455_1_9_agrees_on_a_subprotocol, COUNT(subprotocols))
{
    struct web_socket *socket = ws_open_with(start(), test_format("Sec-WebSocket-Protocol: %s\r\n",
                                                                  subprotocols[row].offered));
    const char *chosen = ws_field(socket, "Sec-WebSocket-Protocol");
    if (subprotocols[row].chosen == NULL)
        ck_assert_ptr_null(chosen);
    else
        ck_assert_str_eq(chosen, subprotocols[row].chosen);
    ws_expect_alive(socket);
}

TEST(rfc_6455_9_1_declines_extensions)
{
    struct web_socket *socket =
        ws_open_with(start(),
                     "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n");
    ck_assert_ptr_null(ws_field(socket, "Sec-WebSocket-Extensions"));
    ws_expect_alive(socket);
}

/* What follows the request at once is the first frame. */
TEST(rfc_6455_4_1_frames_may_follow_at_once)
{
    static const char bytes[] =
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" WS_UPGRADE WS_KEY WS_VERSION
        "\r\n\x81\x96\0\0\0\0{\"id\":7,\"method\":\"x\"} ";
    struct daemon *daemon = start();
    struct client *client = client_connect(daemon);
    client_send_chunks(client, bytes, sizeof bytes - 1, 1);
    while (client->input.len == 0 || strstr(client->input.data, "\r\n\r\n") == NULL)
        ck_assert(client_read_before(client, deadline_usual()));
    while (memmem(client->input.data, client->input.len, "\"id\":7", 6) == NULL)
        ck_assert(client_read_before(client, deadline_usual()));
}

/* --- 5: framing --- */

enum { CUT_NEVER, CUT_ANYWHERE };

/* Bytes as they are on the wire, and the code of the CLOSE. */
static const struct {
    const char *name, *bytes;
    size_t len;
    unsigned code;
} breaches[] = {
#define BREACH(name, bytes, code)                                                                  \
    {                                                                                              \
        name, bytes, sizeof(bytes) - 1, code                                                       \
    }
    BREACH("5.1: a frame that is not masked", "\x81\x02{}", 1002),
    BREACH("5.2: the first reserved bit", "\xC1\x80\0\0\0\0", 1002),
    BREACH("5.2: the second reserved bit", "\xA1\x80\0\0\0\0", 1002),
    BREACH("5.2: the third reserved bit", "\x91\x80\0\0\0\0", 1002),
    BREACH("5.2: opcode 3", "\x83\x80\0\0\0\0", 1002),
    BREACH("5.2: opcode 7", "\x87\x80\0\0\0\0", 1002),
    BREACH("5.2: opcode 11", "\x8B\x80\0\0\0\0", 1002),
    BREACH("5.2: opcode 15", "\x8F\x80\0\0\0\0", 1002),
    BREACH("5.2: a length of 16 bits that is not the shortest", "\x81\xFE\0\x02\0\0\0\0{}", 1002),
    BREACH("5.2: a length of 64 bits that is not the shortest",
           "\x81\xFF\0\0\0\0\0\0\0\x02\0\0\0\0{}", 1002),
    BREACH("5.2: a length with the highest bit", "\x81\xFF\x80\0\0\0\0\0\0\0\0\0\0\0", 1002),
    BREACH("5.4: a continuation of nothing", "\x80\x82\0\0\0\0{}", 1002),
    BREACH("5.4: a second message within the first", "\x01\x81\0\0\0\0{\x81\x81\0\0\0\0}", 1002),
    BREACH("5.5: a ping of 126 bytes", "\x89\xFE\0\x7E\0\0\0\0", 1002),
    BREACH("5.5: a ping in fragments", "\x09\x80\0\0\0\0", 1002),
    BREACH("5.5: a close in fragments", "\x08\x80\0\0\0\0", 1002),
    BREACH("5.5.1: a close of one byte", "\x88\x81\0\0\0\0\x03", 1002),
    BREACH("5.6: a binary message", "\x82\x82\0\0\0\0{}", 1003),
    BREACH("7.4.1: a close with 1004", "\x88\x82\0\0\0\0\x03\xEC", 1002),
    BREACH("7.4.1: a close with 1005", "\x88\x82\0\0\0\0\x03\xED", 1002),
    BREACH("7.4.1: a close with 1006", "\x88\x82\0\0\0\0\x03\xEE", 1002),
    BREACH("7.4.1: a close with 1015", "\x88\x82\0\0\0\0\x03\xF7", 1002),
    BREACH("7.4.2: a close with 999", "\x88\x82\0\0\0\0\x03\xE7", 1002),
    BREACH("7.4.2: a close with 0", "\x88\x82\0\0\0\0\0\0", 1002),
    BREACH("7.4.2: a close with 5000", "\x88\x82\0\0\0\0\x13\x88", 1002),
    BREACH("8.1: a text that is not UTF-8", "\x81\x87\0\0\0\0{\"a\":\"\xFF", 1007),
    BREACH("8.1: an overlong sequence", "\x81\x89\0\0\0\0{\"a\":\"\xC0\x80\"", 1007),
    BREACH("8.1: a surrogate", "\x81\x8A\0\0\0\0{\"a\":\"\xED\xA0\x80\"", 1007),
    BREACH("8.1: in the second fragment", "\x01\x87\0\0\0\0{\"a\":\"\xC3\x80\x84\0\0\0\0x\"} ",
           1007),
    BREACH("8.1: a reason that is not UTF-8", "\x88\x84\0\0\0\0\x03\xE8\xFFz", 1007),
};

TEST_ROWS(rfc_6455_5_to_8_breaches_are_answered, 2 * COUNT(breaches))
{
    struct daemon *daemon = start();
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    size_t at = row / 2, piece = row % 2 == CUT_ANYWHERE ? 1 : breaches[at].len;
    client_send_chunks(socket->client, breaches[at].bytes, breaches[at].len, piece);
    if (breaches[at].code == 1007 && (breaches[at].bytes[0] & 0x7F) == WS_TEXT)
        ws_error(socket, "null", -32700, "UTF-8"); /* it is no JSON either */
    ws_expect_close(socket, breaches[at].code);
    ws_expect_alive(other);
}

/* 5.2, 5.3: lengths in each of the three ways, both directions; and any key. */
static const size_t lengths[] = {0, 1, 100, 125, 126, 127, 65535, 65536, 65537, 500000};

TEST_ROWS(rfc_6455_5_2_carries_any_length, COUNT(lengths))
{
    struct web_socket *socket = ws_open(start());
    const char *fill = test_fill('x', lengths[row]);
    struct span echoed;
    ws_text(socket, "{'id':1,'method':'echo','params':'%s'}", fill);
    ck_assert(ws_read(socket));
    echoed = json_get((struct span){socket->payload.data, socket->payload.len}, "result");
    ck_assert_ptr_nonnull(echoed.data);
    ck_assert_uint_ge(socket->payload.len, lengths[row]);
    ck_assert(lengths[row] == 0 || memmem(echoed.data, echoed.len, fill, lengths[row]) != NULL);
}

/* 5.4, 5.5: fragments of any length, empty ones too, with control frames between them. */
TEST_ROWS(rfc_6455_5_4_joins_fragments, 4)
{
    static const char message[] = "{\"id\":1,\"method\":\"echo\",\"params\":{\"a\":\"\xC3\xA4\"}}";
    static const size_t pieces[] = {1, 2, 7, 30};
    const size_t len = sizeof message - 1;
    struct web_socket *socket = ws_open(start());
    ws_frame(socket, WS_TEXT, "", 0);
    for (size_t at = 0; at < len; at += pieces[row]) {
        size_t piece = len - at < pieces[row] ? len - at : pieces[row];
        ws_frame(socket, WS_CONTINUATION, message + at, piece);
        ws_frame(socket, WS_CONTINUATION, "", 0);
        ws_frame(socket, WS_FIN | WS_PING, message, piece);
        ws_frame(socket, WS_FIN | WS_PONG, message, piece);
        ws_expect_control(socket, WS_PONG, message, piece); /* before the end of the message */
    }
    ws_frame(socket, WS_FIN | WS_CONTINUATION, "", 0);
    ck_assert(ws_read(socket));
    ck_assert_ptr_nonnull(memmem(socket->payload.data, socket->payload.len, "\xC3\xA4", 2));
    ws_expect_alive(socket);
}

/* --- 5.5: control frames --- */

TEST(rfc_6455_5_5_2_answers_pings)
{
    struct web_socket *socket = ws_open(start());
    const char *data = test_fill('p', 125);
    ws_frame(socket, WS_FIN | WS_PING, "", 0);
    ws_expect_control(socket, WS_PONG, "", 0);
    ws_frame(socket, WS_FIN | WS_PING, "\0\xFF", 2);
    ws_expect_control(socket, WS_PONG, "\0\xFF", 2);
    ws_frame(socket, WS_FIN | WS_PING, data, 125);
    ws_expect_control(socket, WS_PONG, data, 125);
    ws_frame(socket, WS_FIN | WS_PONG, "unasked", 7); /* 5.5.3 */
    ws_expect_alive(socket);
}

/* 5.5.1: the same code comes back; what follows the CLOSE is not read. */
static const unsigned codes[] = {0, 1000, 1001, 1003, 1007, 1011, 1014, 3000, 4999};

TEST_ROWS(rfc_6455_5_5_1_answers_a_close, COUNT(codes))
{
    struct daemon *daemon = start();
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    unsigned code = codes[row];
    const char payload[] = {(char)(code >> 8), (char)code, 'w', 'h', 'y'};
    ws_frame(socket, WS_FIN | WS_CLOSE, payload, code > 0 ? sizeof payload : 0);
    ws_text(socket, "{'id':1,'method':'echo'}");
    ws_expect_close(socket, code);
    ws_expect_alive(other);
}

/* --- 6, 7: messages, and the end --- */

TEST(rfc_6455_6_two_clients_with_the_same_ids)
{
    struct daemon *daemon = start();
    struct web_socket *one = ws_open(daemon), *other = ws_open(daemon);
    for (int i = 0; i < 20; i++) {
        ws_text(one, "{'id':%d,'method':'echo','params':{'who':'one'}}", i);
        ws_text(other, "{'id':%d,'method':'echo','params':{'who':'other'}}", i);
        ck_assert(ws_read(one) && ws_read(other));
        ck_assert_ptr_nonnull(strstr(one->payload.data, "\"one\""));
        ck_assert_ptr_nonnull(strstr(other->payload.data, "\"other\""));
    }
}

/* What a worker sends arrives; a reply goes to it. */
TEST(rfc_6455_6_messages_of_workers)
{
    struct web_socket *socket = ws_open(start());
    ws_text(socket, "{'id':1,'sessionId':'s','method':'notify','params':{'n':3}}");
    for (int i = 0; i < 4; i++) {
        ck_assert(ws_read(socket));
        ck_assert_uint_eq(socket->first, WS_FIN | WS_TEXT);
        ck_assert(memchr(socket->payload.data, '\n', socket->payload.len) == NULL);
    }
    ck_assert_ptr_nonnull(strstr(socket->payload.data, "\"id\":1"));
}

/* A text that is no message is answered, and the next one is read. */
TEST(rfc_6455_6_text_that_is_no_message)
{
    struct web_socket *socket = ws_open(start());
    static const char *const texts[] = {"nonsense", "[]", "{'a':", "", "{} {}", "{'id':[]}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        ws_text(socket, "%s", texts[i]);
        ws_error(socket, "null", i < 5 ? -32700 : -32600, "");
        ws_expect_alive(socket);
    }
}

/* 7.1.5: without a CLOSE the client is gone, and what it asked is cancelled. */
TEST_ROWS(rfc_6455_7_1_5_a_client_that_is_gone, 2)
{
    struct daemon *daemon = start();
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    ws_text(socket, "{'id':1,'method':'no_answer'}");
    if (row == 0)
        client_abort(socket->client);
    else
        client_half_close(socket->client);
    daemon_wait_log(daemon, "disconnected");
    ws_expect_alive(other);
}

/* 7.4.1: 1001 at the end of the daemon, after what is in flight. */
TEST(rfc_6455_7_4_1_going_away)
{
    struct daemon *daemon = start();
    struct web_socket *socket = ws_open(daemon), *idle = ws_open(daemon);
    ws_expect_alive(socket);
    daemon_signal(daemon, SIGTERM);
    ws_expect_close(socket, 1001);
    ws_expect_close(idle, 1001);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* 7.4.1, 10.4: a message that is too long, announced or in fragments. */
TEST_ROWS(rfc_6455_10_4_has_a_limit, 2)
{
    struct daemon *daemon = WS_DAEMON(.limits = "'max_input_buffer':100000");
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    const char *fill = test_fill('x', 60000);
    if (row == 0) {
        ws_text(socket, "{'id':1,'params':'%s%s'}", fill, fill);
    } else {
        ws_frame(socket, WS_TEXT, "{\"id\":1,\"params\":\"", 18);
        ws_frame(socket, WS_CONTINUATION, fill, 60000);
        ws_frame(socket, WS_CONTINUATION, fill, 60000);
    }
    ws_expect_close(socket, 1009);
    ws_expect_alive(other);
}

/* 10.4: a message that is not whole in time, in the middle of a frame or between two. */
TEST_ROWS(rfc_6455_10_4_has_a_time, 2)
{
    struct daemon *daemon = WS_DAEMON(.limits = "'frame_timeout_sec':1");
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    if (row == 0)
        client_send_bytes(socket->client, "\x81\x97\0\0\0\0{", 7);
    else
        ws_frame(socket, WS_TEXT, "{", 1);
    ws_expect_close(socket, 1008);
    ws_expect_alive(other);
}

/* --- silence --- */

TEST(websocket_pings_a_silent_client)
{
    struct daemon *daemon = WS_DAEMON(.limits = "'ping_sec':3"); /* the test may be late by that */
    struct web_socket *socket = ws_open(daemon), *mute = ws_open(daemon);
    for (int i = 0; i < 2; i++) {
        ws_expect_control(socket, WS_PING, "", 0);
        ws_frame(socket, WS_FIN | WS_PONG, "", 0);
    }
    ws_expect_alive(socket);
    ws_expect_control(mute, WS_PING, "", 0); /* long ago */
    ck_assert(!ws_read(mute));
    daemon_wait_log(daemon, "no answer to a ping");
}

TEST(websocket_without_pings)
{
    struct daemon *daemon = WS_DAEMON(.limits = "'ping_sec':0");
    struct web_socket *socket = ws_open(daemon);
    ws_expect_alive(socket);
}

/* --- ACP --- */

TEST(websocket_names_an_acp_connection)
{
    struct daemon *daemon =
        START(.mode = SETUP_HTTP,
              .pools = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'acp'}");
    struct web_socket *one = ws_open(daemon), *other = ws_open(daemon);
    const char *id = ws_field(one, "Acp-Connection-Id");
    ck_assert_ptr_nonnull(id);
    ck_assert_uint_eq(strlen(id), 32);
    ck_assert_str_ne(id, ws_field(other, "Acp-Connection-Id"));
}

/* --- a client that does not read --- */

TEST(websocket_pings_of_a_client_that_does_not_read)
{
    struct daemon *daemon = WS_DAEMON(.limits = "'max_output_queue':65536");
    struct web_socket *socket = ws_open(daemon), *other = ws_open(daemon);
    const char *data = test_fill('p', 125);
    struct text *frames = test_text();
    size_t sent = 0;
    for (int i = 0; i < 1000; i++) {
        text_add(frames, "\x89\xFD\0\0\0\0", 6);
        text_add(frames, data, 125);
    }
    for (int64_t until = now_ms() + 1000; now_ms() < until && sent < 100000000;)
        sent += client_offer(socket->client, frames->data + sent % frames->len,
                             frames->len - sent % frames->len);
    if (!harness_skips_memory())
        ck_assert_int_lt(proc_status(daemon->pid, "VmRSS"), 20000);
    ws_expect_alive(other);
}
