/* HTTP/1.1 on the wire (RFC 9112): requests that are read, and those that are refused. */
#include "build_config.h"

#include "harness.h"

#define START_HTTP                                                                                 \
    START(.mode = SETUP_HTTP, .pools = "{'id':'p','command':'@WORKER@','instances':1}")

#define HOST "Host: 127.0.0.1\r\n"
#define POST "POST /rpc/p HTTP/1.1\r\n" HOST HTTP_JSON
#define BODY "{\"id\":1,\"method\":\"echo\"}" /* 24 bytes */

static void send_text(struct http *http, const char *text)
{
    client_send_bytes(http->client, text, strlen(text));
}

/* --- what is refused --- */

static const struct {
    const char *bytes;
    int status;
} refused[] = {
    {"GET /rpc/p HTTP/1.1\nHost: 127.0.0.1\n\n", 400},
    {"GET /rpc/p HTTP/1.1\r\nHost: 127.0.0.1\nA: b\r\n\r\n", 400},
    {"GET /rpc/p HTTP/1.1\r\n\r\n", 400},
    {"GET /rpc/p HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"GET /rpc/p HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400},
    {"GET /rpc/p HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400},
    {"GET  /rpc/p HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /a\"b HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
    {"{\"id\":1,\"method\":\"echo\"}\n", 400},
    {POST "Content-Length: 24\r\nContent-Length: 24\r\n\r\n" BODY, 400},
    {POST "Content-Length: 24, 24\r\n\r\n" BODY, 400},
    {POST "Content-Length: +24\r\n\r\n" BODY, 400},
    {POST "Content-Length: 24\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
    {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n18 \r\n" BODY "\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n18\n" BODY "\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n0x18\r\n" BODY "\r\n0\r\n\r\n", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\n18\r\n" BODY "x", 400},
    {POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" BODY, 400},
    {"POST /rpc/p HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {POST "Expect: a miracle\r\nContent-Length: 24\r\n\r\n" BODY, 417},
    {"CONNECT 127.0.0.1:80 HTTP/1.1\r\n" HOST "\r\n", 501},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
};

/* The answer says why; the connection ends, and what follows the request is not read as one. */
TEST_ROWS(rfc_9112_ambiguous_requests_end_the_connection, COUNT(refused))
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, refused[row].bytes);
    send_text(http, POST "Content-Length: 24\r\n\r\n" BODY);
    http_expect(http, refused[row].status);
    ck_assert(span_is(http_field(http, "Connection"), "close"));
    client_expect_eof(http->client);
}

TEST(rfc_9112_3_target_and_head_have_limits)
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, test_format("GET /%s HTTP/1.1\r\n", test_fill('x', 17000)));
    http_expect(http, 414);
    http = http_connect(daemon);
    send_text(http, test_format("GET / HTTP/1.1\r\n" HOST "A: %s\r\n", test_fill('x', 17000)));
    http_expect(http, 431);
    client_expect_eof(http->client);
    http = http_connect(daemon);
    send_text(http, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 100; i++)
        send_text(http, "A: b\r\n");
    send_text(http, "\r\n");
    http_expect(http, 431);
    client_expect_eof(http->client);
}

/* --- what is read --- */

static const char *const requests[] = {
    POST "Content-Length: 24\r\n\r\n" BODY,
    POST "content-length:024\r\n\r\n" BODY,
    "\r\n\r\n" POST "Content-Length: 24\r\n\r\n" BODY,
    POST "Transfer-Encoding: chunked\r\n\r\n18\r\n" BODY "\r\n0\r\n\r\n",
    POST
    "Transfer-Encoding: Chunked\r\n\r\n"
    "1\r\n{\r\n0A;a=b;c=\"d\"\r\n\"id\":1,\"me\r\n00d\r\nthod\":\"echo\"}\r\n0\r\nA: b\r\n\r\n",
    "POST http://127.0.0.1/rpc/p HTTP/1.1\r\n" HOST HTTP_JSON "Content-Length: 24\r\n\r\n" BODY,
    "POST /rpc/p?a=b HTTP/1.2\r\n" HOST HTTP_JSON "Content-Length: 24\r\n\r\n" BODY,
    "POST /rpc/p HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n" HTTP_JSON
    "Content-Length: 24\r\n\r\n" BODY,
};

/* row: the request, at once or byte by byte. */
TEST_ROWS(rfc_9112_requests_in_any_form_and_pieces, 2 * COUNT(requests))
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    const char *text = requests[row / 2];
    client_send_chunks(http->client, text, strlen(text), row % 2 == 0 ? strlen(text) : 1);
    message_result(http_expect(http, 200), "1");
}

TEST(rfc_9112_9_http_1_0_closes)
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, "POST /rpc/p HTTP/1.0\r\n" HOST HTTP_JSON "Content-Length: 24\r\n\r\n" BODY);
    message_result(http_expect(http, 200), "1");
    client_expect_eof(http->client);
}

/* Requests that come at once are answered one by one, and the last one closes. */
TEST(rfc_9112_9_6_close_is_of_its_own_request)
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, POST "Content-Length: 24\r\n\r\n" BODY POST
                         "Connection: close\r\nContent-Length: 24\r\n\r\n" BODY);
    message_result(http_expect(http, 200), "1");
    ck_assert_ptr_null(http_field(http, "Connection").data);
    message_result(http_expect(http, 200), "1");
    ck_assert(span_is(http_field(http, "Connection"), "close"));
    client_expect_eof(http->client);
}

/* A body that is no JSON is refused, and the next request is found after it. */
TEST(rfc_9112_6_body_that_is_refused_is_skipped)
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, POST "Content-Length: 5\r\n\r\n{bad}");
    message_error(http_expect(http, 400), "null", -32700, "");
    send_text(http, POST "Content-Length: 24\r\n\r\n" BODY);
    message_result(http_expect(http, 200), "1");
    send_text(http, POST "Transfer-Encoding: chunked\r\n\r\n5\r\n{bad}\r\n0\r\n\r\n");
    message_error(http_expect(http, 400), "null", -32700, "");
    client_expect_eof(http->client);
}

TEST(rfc_9110_10_1_1_client_is_told_to_continue)
{
    struct daemon *daemon = START_HTTP;
    struct http *http = http_connect(daemon);
    send_text(http, POST "Expect: 100-continue\r\nContent-Length: 24\r\n\r\n");
    ck_assert_int_eq(http_status(http), 100);
    send_text(http, BODY);
    message_result(http_expect(http, 200), "1");
    /* one that is not wanted is not asked for */
    send_text(http, "POST /nowhere HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                    "Content-Length: 24\r\n\r\n");
    http_expect(http, 404);
    client_expect_eof(http->client);
}

/* --- time --- */

static const struct {
    const char *head, *piece;
} trickles[] = {
    {POST "Content-Length: 100000\r\n\r\n{\"id\":1,\"params\":\"", "x"},
    {POST "Transfer-Encoding: chunked\r\n\r\n13\r\n{\"id\":1,\"params\":\"x\r\n", "1\r\nx\r\n"},
    {POST "Transfer-Encoding: chunked\r\n\r\n1;", "x"},
};

/* A body that comes byte by byte, without end, is not waited for longer than one that stops. */
TEST_ROWS(rfc_9112_9_5_body_that_trickles_is_ended, COUNT(trickles))
{
    struct daemon *daemon = START(.mode = SETUP_HTTP, .limits = "'frame_timeout_sec':1",
                                  .pools = POOL("p", 1, ""));
    struct http *http = http_connect(daemon);
    int64_t deadline = deadline_usual();
    send_text(http, trickles[row].head);
    while (!client_read_before(http->client, now_ms() + 10)) {
        ck_assert_msg(!deadline_over(deadline), "it is not ended");
        client_offer(http->client, trickles[row].piece, strlen(trickles[row].piece));
    }
    http_expect(http, 408);
    ck_assert(span_is(http_field(http, "Connection"), "close"));
}
