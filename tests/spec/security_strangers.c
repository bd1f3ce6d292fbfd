/* doc/security.md: web pages and other programs that speak HTTP or TLS to a listener, and what is
 * wrong before a client's first good frame. */
#include "build_config.h"

#include "harness.h"

static const char *const framings[] = {"ndjson", "content-length", "length"};

#define PLACES 6 /* each framing, on TCP and on a Unix socket */

static struct daemon *start_in(size_t row)
{
    return START(.mode = row < 3 ? SETUP_TCP : SETUP_UNIX, .instances = 1,
                 .arguments = {"--framing", framings[row % 3]});
}

/* --- a client in any framing --- */

static void add_message(struct text *to, size_t framing, const char *body)
{
    size_t len = strlen(body);
    char head[4] = {(char)(len >> 24), (char)(len >> 16 & 0xFF), (char)(len >> 8 & 0xFF),
                    (char)(len & 0xFF)};
    if (framing == 1) {
        frames_add(to, body, len);
        return;
    }
    if (framing == 2)
        text_add(to, head, 4);
    text_printf(to, "%s%s", body, framing == 0 ? "\n" : "");
}

static long pid_in(struct client *client, size_t framing)
{
    struct text *message = test_text();
    struct span body;
    add_message(message, framing, "{\"id\":1,\"method\":\"echo\"}");
    client_send_bytes(client, message->data, message->len);
    if (framing == 1)
        return json_number(frames_result(client, "1"), "pid");
    if (framing == 0)
        return json_number(client_result(client, "1"), "pid");
    while (client->input.len - client->consumed < 4 ||
           client->input.len - client->consumed <
               4u + (unsigned char)client->input.data[client->consumed + 3])
        ck_assert(client_read_before(client, deadline_usual()));
    body = (struct span){client->input.data + client->consumed + 4,
                         (unsigned char)client->input.data[client->consumed + 3]};
    client->consumed += 4 + body.len;
    return json_number(message_result(body, "1"), "pid");
}

/* --- strangers --- */

#define DIE "{\"id\":7,\"method\":\"die\"}"

#define CHROME                                                                                     \
    "POST /tools HTTP/1.1\r\nHost: localhost:5000\r\nConnection: keep-alive\r\n"                   \
    "Content-Length: %zu\r\nsec-ch-ua-platform: \"Linux\"\r\n"                                     \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "          \
    "Chrome/130.0.0.0 Safari/537.36\r\n"                                                           \
    "sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n"                              \
    "Content-Type: text/plain;charset=UTF-8\r\nsec-ch-ua-mobile: ?0\r\nAccept: */*\r\n"            \
    "Origin: https://page.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"    \
    "Sec-Fetch-Dest: empty\r\nReferer: https://page.example/\r\n"                                  \
    "Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n\r\n%s"

#define FIREFOX                                                                                    \
    "POST / HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n"                                                  \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0\r\n"       \
    "Accept: */*\r\nAccept-Language: en-US,en;q=0.5\r\n"                                           \
    "Accept-Encoding: gzip, deflate, br, zstd\r\nReferer: https://page.example/\r\n"               \
    "Content-Type: text/plain;charset=UTF-8\r\nContent-Length: %zu\r\n"                            \
    "Origin: https://page.example\r\nConnection: keep-alive\r\nSec-Fetch-Dest: empty\r\n"          \
    "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: cross-site\r\nPriority: u=4\r\n\r\n%s"

#define SAFARI                                                                                     \
    "POST / HTTP/1.1\r\nHost: localhost:5000\r\nContent-Type: text/plain;charset=UTF-8\r\n"        \
    "Origin: https://page.example\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n" \
    "Accept: */*\r\n"                                                                              \
    "User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "            \
    "(KHTML, like Gecko) Version/18.0 Safari/605.1.15\r\nReferer: https://page.example/\r\n"       \
    "Content-Length: %zu\r\nAccept-Language: en-GB\r\n\r\n%s"

static const char *const posts[] = {CHROME, FIREFOX, SAFARI};

/* Requests without a body. */
static const char *const requests[] = {
    "GET /{\"id\":7} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 25\r\n\r\n" DIE,
    "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
    "GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "M-SEARCH * HTTP/1.1\r\nHost: 239.255.255.250:1900\r\n\r\n",
};

/* The page sends its bytes in pieces, and gets an end and no byte. */
static void visit(struct daemon *daemon, const struct text *bytes)
{
    static const size_t chunks[] = {1, 7, 100000};
    for (size_t i = 0; i < COUNT(chunks); i++) {
        struct client *page = client_connect(daemon);
        client_send_chunks(page, bytes->data, bytes->len, chunks[i]);
        client_expect_eof(page);
        client_close(page);
    }
}

/* A body that has messages for each framing. */
static const char *smuggled(size_t framing)
{
    struct text *body = test_text();
    text_printf(body, "{}");
    add_message(body, framing, DIE);
    text_printf(body, "\n" DIE "\n");
    text_add(body, "", 1);
    return body->data;
}

TEST_ROWS(security_web_pages_reach_no_worker, PLACES)
{
    struct daemon *daemon = start_in(row);
    struct client *client = client_connect(daemon);
    long pid = pid_in(client, row % 3);
    for (size_t i = 0; i < 2 * COUNT(posts); i++) {
        const char *body = i < COUNT(posts) ? DIE : smuggled(row % 3);
        struct text *post = test_text();
        text_printf(post, posts[i % COUNT(posts)], strlen(body), body);
        visit(daemon, post);
        ck_assert_int_eq(pid_in(client, row % 3), pid);
    }
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct text *request = test_text();
        text_printf(request, "%s", requests[i]);
        visit(daemon, request);
        ck_assert_int_eq(pid_in(client, row % 3), pid);
    }
    daemon_wait_log(daemon, row < 3 ? " WARN .*HTTP in place of messages.*127\\.0\\.0\\.1:[0-9]+"
                                    : " WARN .*HTTP in place of messages");
    ck_assert_uint_le(daemon_count_log(daemon, " WARN .*HTTP in place of"), 60);
}

/* A ClientHello whose session ticket, which the server of the page has chosen, is a message. */
TEST_ROWS(security_tls_reaches_no_worker, PLACES)
{
    struct daemon *daemon = start_in(row);
    struct client *client = client_connect(daemon);
    long pid = pid_in(client, row % 3);
    struct text *hello = test_text(), *ticket = test_text();
    add_message(ticket, row % 3, DIE);
    text_printf(ticket, "\n" DIE "\n");
    text_add(hello, "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", 11);
    text_fill(hello, 'r', 32);
    text_add(hello, "\x00\x00\x02\x13\x01\x01\x00\x01\xD1\x00\x23", 11);
    text_add(hello, ticket->data, ticket->len);
    text_fill(hello, '\0', 300);
    visit(daemon, hello);
    ck_assert_int_eq(pid_in(client, row % 3), pid);
    daemon_wait_log(daemon, " WARN .*TLS in place of messages");
}

/* What only HTTP has ends a connection at any time: a relay may have shown a good frame before. */
TEST(security_http_after_a_frame_ends_the_connection)
{
    static const char *const later[] = {
        "POST / HTTP/1.1\r\nContent-Length: 23\r\n\r\n" DIE,
        "Host: localhost\r\nContent-Length: 23\r\n\r\n" DIE,
        "Content-Length: 23\r\norigin: https://page.example\r\n\r\n" DIE,
        "Content-Length: 23\r\nSec-Fetch-Site: cross-site\r\n\r\n" DIE,
        "Content-Length: 23\r\nX: y\r\nSEC-CH-UA: \"x\"\r\n\r\n" DIE,
        "Content-Length: 23\r\nCookie: a=b\r\n\r\n" DIE,
        "X: y\r\nGET / HTTP/1.1\r\nContent-Length: 23\r\n\r\n" DIE,
    };
    struct daemon *daemon = start_in(1);
    struct client *client = client_connect(daemon);
    long pid = frames_pid(client, 1);
    for (size_t i = 0; i < COUNT(later); i++) {
        for (size_t chunk = 1; chunk < 100; chunk += 49) {
            struct client *other = client_connect(daemon);
            frames_pid(other, 2);
            client_send_chunks(other, later[i], strlen(later[i]), chunk);
            client_expect_eof(other);
        }
        ck_assert_int_eq(frames_pid(client, 3), pid);
    }
    frames_send(client, "{'id':4,'method':'plain'}");
    frames_result(client, "4");
    client_send(client,
                "Content-Length: 25\r\nX-Host: a\r\nHostess: b\r\nTea: c\r\n\r"); /* and \n */
    client_send_bytes(client, "{\"id\":5,\"method\":\"plain\"}", 25);
    frames_result(client, "5");
}

/* Wrong first frames: one error, then the end, and what follows is not looked at. */
static const struct {
    size_t framing;
    const char *bytes;
    int code;
    const char *word;
} wrong[] = {
    {0, "Content-Length: 23\r\n\r\n", PARSE_ERROR, "not a JSON object"},
    {0, "\r\n\r\nPOST / HTTP/1.1\r\n", PARSE_ERROR, "not a JSON object"},
    {1, "{}", PARSE_ERROR, "not a header"},
    {1, "{}\n", PARSE_ERROR, "not a header"},
    {1, "\r\nPOST / HTTP/1.1\r\nHost: x\r\n", PARSE_ERROR, "no Content-Length"},
    {1, "\r\n", PARSE_ERROR, "no Content-Length"},
    {1, "what is this?\r\n", PARSE_ERROR, "not a header"},
    {1, "Content-Length: 2\n\n{}", PARSE_ERROR, "not a header"},
    {1, "Content-Length: x\r\n\r\n", PARSE_ERROR, "not a number"},
    {1, "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", PARSE_ERROR, "more than one"},
    {1, "Content-Length: 2\r\n\r\n[]", PARSE_ERROR, "not a JSON object"},
    {1, "Content-Length: 50\r\n\r\n{}", PARSE_ERROR, "more text"},
    {1, "Content-Length: 2\r\nContent-Type: text/plain\r\n\r\n{}", INVALID, "Content-Type"},
    {1, "Content-Length: 10485761\r\n\r\n", INVALID, "message exceeds"},
    {1, "Content-Length: 99999999999999999999\r\n\r\n", INVALID, "message exceeds"},
    {2, "\x7F\xFF\xFF\xFF", INVALID, "message exceeds"},
    {2, "post", INVALID, "message exceeds"},
    {2, "\x01\x01\x01\x01", INVALID, "message exceeds"},
    {2, "{}\n{", INVALID, "message exceeds"},
};

static void check_wrong(struct daemon *daemon, size_t i, size_t chunk)
{
    struct client *client = client_connect(daemon);
    struct text *stream = test_text();
    text_printf(stream, "%s", wrong[i].bytes);
    add_message(stream, wrong[i].framing, DIE);
    add_message(stream, wrong[i].framing, DIE);
    client_send_chunks(client, stream->data, stream->len, chunk);
    if (wrong[i].framing == 1) {
        frames_error(client, "null", wrong[i].code, wrong[i].word);
    } else if (wrong[i].framing == 0) {
        client_error(client, "null", wrong[i].code, wrong[i].word);
    } else {
        while (client_read_before(client, deadline_usual()))
            continue;
        struct span body = {client->input.data + 4, client->input.len - 4};
        client->consumed = client->input.len;
        message_error(body, "null", wrong[i].code, wrong[i].word);
    }
    client_expect_eof(client);
}

TEST_ROWS(security_wrong_first_frame_ends_the_connection, PLACES)
{
    struct daemon *daemon = start_in(row);
    struct client *client = client_connect(daemon);
    long pid = pid_in(client, row % 3);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        for (size_t chunk = 1; chunk < 200 && wrong[i].framing == row % 3; chunk += 66) {
            check_wrong(daemon, i, chunk);
            ck_assert_int_eq(pid_in(client, row % 3), pid);
        }
    }
}

/* A first frame that does not come to its end. */
TEST(security_late_first_frame_ends_the_connection)
{
    static const char *const parts[] = {"PO", "Content-Le", "Content-Length: 25\r\n\r\n{"};
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", FRAMED);
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct client *client = client_connect(daemon);
        client_send_bytes(client, parts[i], strlen(parts[i]));
        frames_error(client, "null", PARSE_ERROR, "the first frame was not complete");
        client_expect_eof(client);
    }
}
