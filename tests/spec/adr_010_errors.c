/* ADR-010: a wrong frame gets an error with the id null, and the connection continues. */
#include "build_config.h"

#include "harness.h"

#define LENGTH(n) "Content-Length: " #n "\r\n"
#define GOOD "{\"id\":1}" /* 8 bytes */

/* Wrong frames: each gets exactly one error. */
static const struct {
    const char *bytes;
    int code;
    const char *word;
} wrong[] = {
    /* the body is no JSON, no object, or not UTF-8 */
    {LENGTH(8) "\r\n{\"id\":1,", PARSE_ERROR, "ends inside"},
    {LENGTH(9) "\r\n{\"id\":1,}", PARSE_ERROR, "not valid JSON"},
    {LENGTH(5) "\r\nhello", PARSE_ERROR, "not a JSON object"},
    {LENGTH(0) "\r\n", PARSE_ERROR, "ends inside"},
    {LENGTH(1) "\r\n\n", PARSE_ERROR, "ends inside"},
    {LENGTH(2) "\r\n[]", PARSE_ERROR, "not a JSON object"},
    {LENGTH(9) "\r\n{\"id\":\"\xFF\"", PARSE_ERROR, "invalid UTF-8"},
    {LENGTH(10) "\r\n{\"id\":\"\xC0\xAF\"", PARSE_ERROR, "invalid UTF-8"},
    {LENGTH(11) "\r\n{\"id\":\"\xE2(\xA1\"", PARSE_ERROR, "invalid UTF-8"},
    {LENGTH(11) "\r\n{\"id\":\"\xED\xA0\x80\"", PARSE_ERROR, "invalid UTF-8"},
    {LENGTH(11) "\r\n{\"id\":\"a\n\"}", PARSE_ERROR, "not valid JSON"},
    /* the wrong type */
    {LENGTH(8) "Content-Type: text/plain\r\n\r\n" GOOD, INVALID, "Content-Type"},
    {LENGTH(8) "Content-Type: application/xml; charset=utf-8\r\n\r\n" GOOD, INVALID,
     "Content-Type"},
    {"content-type: application/vscode-jsonrpc; charset=utf-16\r\n" LENGTH(8) "\r\n" GOOD, INVALID,
     "Content-Type"},
    {LENGTH(8) "Content-Type: application/json; charset=\"latin1\"\r\n\r\n" GOOD, INVALID,
     "Content-Type"},
    {LENGTH(8) "Content-Type:\r\n\r\n" GOOD, INVALID, "Content-Type"},
    /* no length, or none that is a length */
    {"\r\n" GOOD, PARSE_ERROR, "no Content-Length"},
    {"X-Length: 8\r\n\r\n" GOOD, PARSE_ERROR, "no Content-Length"},
    {"Content-Type: application/json\r\n\r\n" GOOD, PARSE_ERROR, "no Content-Length"},
    {LENGTH(8) LENGTH(8) "\r\n" GOOD, PARSE_ERROR, "more than one"},
    {LENGTH(eight) "\r\n" GOOD, PARSE_ERROR, "not a number"},
    {LENGTH(-8) "\r\n" GOOD, PARSE_ERROR, "not a number"},
    {LENGTH(8.0) "\r\n" GOOD, PARSE_ERROR, "not a number"},
    {LENGTH() "\r\n" GOOD, PARSE_ERROR, "not a number"},
    {LENGTH(0x8) "\r\n" GOOD, PARSE_ERROR, "not a number"},
    /* no header */
    {"Content-Length 8\r\n\r\n" GOOD, PARSE_ERROR, "not a header"},
    {"Content-Length : 8\r\n\r\n" GOOD, PARSE_ERROR, "not a header"},
    {"Content-Length: 8\n\n" GOOD, PARSE_ERROR, "not a header"},
    {LENGTH(8) "what is this?\r\n\r\n" GOOD, PARSE_ERROR, "not a header"},
    {LENGTH(8) "X: \x01\r\n\r\n" GOOD, PARSE_ERROR, "not a header"},
    {GOOD "\n", PARSE_ERROR, "not a header"},
    /* a length that is not the body's */
    {LENGTH(5) "\r\n" GOOD, PARSE_ERROR, "ends inside"},
    {LENGTH(50) "\r\n" GOOD, PARSE_ERROR, "more text"},
    /* several errors in one head */
    {LENGTH(99999999999999999999999) "Content-Type: text/plain\r\n" LENGTH(1) "\r\n" GOOD,
     PARSE_ERROR, "more than one"},
    /* routing fields that cannot be extracted */
    {LENGTH(9) "\r\n{\"id\":[]}", INVALID, "id must be"},
    {LENGTH(11) "\r\n{\"id\":true}", INVALID, "id must be"},
    {LENGTH(15) "\r\n{\"sessionId\":1}", INVALID, "sessionId must be"},
    {LENGTH(11) "\r\n{\"pool\":{}}", INVALID, "pool must be"},
};

#define WRONG (int)COUNT(wrong)

/* Sends something wrong and then a good frame, in pieces; the good one is answered. */
static void check_wrong(struct client *client, int i, size_t chunk)
{
    struct text *stream = test_text();
    char body[60];
    text_printf(stream, "%s", wrong[i].bytes);
    int len = snprintf(body, sizeof body, "{\"id\":%d,\"method\":\"plain\"}", 100 + i);
    frames_add(stream, body, (size_t)len);
    client_send_chunks(client, stream->data, stream->len, chunk);
    frames_error(client, "null", wrong[i].code, wrong[i].word);
    frames_expect(client, "{'jsonrpc':'2.0','id':%d,'result':null}", 100 + i);
}

TEST_ROWS(adr_010_errors_keep_the_connection, 4)
{
    static const size_t chunks[] = {1, 2, 7, 1000};
    struct client *client = frames_connect(START(FRAMED));
    for (int i = 0; i < WRONG; i++)
        check_wrong(client, i, chunks[row]);
    ck_assert_uint_eq(client->input.len, client->consumed);
}

/* The rest of a wrong body is skipped without an error; the next wrong frame gets its own. */
TEST_ROWS(adr_010_each_of_two_wrong_frames_is_reported, 2)
{
    static const char bytes[] =
        LENGTH(0) "\r\n" LENGTH(x) "\r\n" GOOD LENGTH(8) "\r\n{\"id\":1," LENGTH(8)
            LENGTH(8) "\r\n" GOOD;
    struct client *client = frames_connect(START(FRAMED));
    client_send_chunks(client, bytes, sizeof bytes - 1, 1 + (size_t)row * 1000);
    frames_error(client, "null", PARSE_ERROR, "ends inside");
    frames_error(client, "null", PARSE_ERROR, "not a number");
    frames_error(client, "null", PARSE_ERROR, "ends inside");
    frames_error(client, "null", PARSE_ERROR, "more than one");
}

/* Bytes after a body that are no header. */
TEST(adr_010_excess_after_the_body)
{
    static const char *const excess[] = {"\n", " ", "xyz", "}", "\r\n", "{\"id\":2}\n", "\xFF\x00"};
    struct text *stream = test_text();
    struct client *client = client_connect(START(FRAMED));
    for (size_t i = 0; i < COUNT(excess); i++) {
        stream->len = 0;
        frames_add(stream, "{\"id\":1,\"method\":\"plain\"}", 25);
        text_add(stream, excess[i], strlen(excess[i]));
        frames_add(stream, "{\"id\":2,\"method\":\"plain\"}", 25);
        client_send_bytes(client, stream->data, stream->len);
        bool answers[3] = {false};
        for (int k = 0; k < 3; k++) { /* the error may come before the answers */
            struct span body = frames_next(client);
            long id = json_long(json_get(body, "id"), 0);
            ck_assert(id >= 0 && id <= 2 && !answers[id]);
            answers[id] = true;
            if (id == 0)
                expect_member(body, "error.code", "-32700");
        }
    }
}

/* The end of the input inside a frame is an error too; earlier requests are answered. */
TEST(adr_010_end_inside_a_frame)
{
    static const char *const cut[] = {"C", "Content-Length: 30\r\n", "Content-Length: 30\r\n\r\n",
                                      "Content-Length: 30\r\n\r\n{\"id\":2,\"method\":\"plain\"}"};
    struct daemon *daemon = START(FRAMED);
    for (size_t i = 0; i < COUNT(cut); i++) {
        struct client *client = client_connect(daemon);
        frames_send(client, "{'id':1,'method':'plain'}");
        frames_result(client, "1");
        client_send_bytes(client, cut[i], strlen(cut[i]));
        client_half_close(client);
        frames_error(client, "null", PARSE_ERROR, "the input ends in the middle of a frame");
        client_expect_eof(client);
    }
}

/* The exit status is 0 in spite of the errors. */
TEST(adr_010_stdio_mode_survives_errors)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, FRAMED);
    struct client *client = client_stdio(daemon);
    for (int i = 0; i < WRONG; i++)
        check_wrong(client, i, 1000);
    client_send_bytes(client, "Content-Length: 30\r\n\r\n{", 23);
    client_half_close(client);
    frames_error(client, "null", PARSE_ERROR, "the input ends");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* In strict mode the connection continues without an error. */
TEST(adr_010_strict_sends_no_errors)
{
    struct daemon *daemon = START(.members = "'strict':true", FRAMED);
    struct client *client = frames_connect(daemon);
    client_send_bytes(client, wrong[0].bytes, strlen(wrong[0].bytes));
    frames_pid(client, 1);
    daemon_wait_log(daemon, " WARN .*client=1.* refused a frame: the body ends");
}

/* The daemon stops reading from a client that sends wrong frames and does not read its errors. */
TEST(adr_010_errors_do_not_pile_up)
{
    struct text *stream = test_text();
    size_t sent = 0, count = 0;
    struct daemon *daemon = START(.limits = "'max_output_queue':65536", FRAMED);
    struct client *client = client_connect_small(daemon);
    frames_pid(client, 1);
    for (int i = 0; i < 4000; i++)
        frames_add(stream, "[]", 2);
    for (int stuck = 0; stuck < 50; stuck++) { /* until the daemon stops reading */
        size_t from = sent % stream->len;
        size_t offered = client_offer(client, stream->data + from, stream->len - from);
        sent += offered;
        stuck = offered > 0 ? 0 : stuck;
        nap();
        ck_assert_uint_lt(sent, 100 * stream->len);
    }
    daemon_check_memory(daemon, 16384);
    size_t in_step = sent - sent % (stream->len / 4000);
    for (count = 0; count < in_step / (stream->len / 4000); count++)
        frames_error(client, "null", PARSE_ERROR, "not a JSON object");
}

/* --- workers --- */

static void say(struct client *client, const char *bytes)
{
    struct text *hex = test_text();
    text_hex(hex, bytes, strlen(bytes));
    client_send(client, "{'method':'garbage','params':{'hex':'%s'}}", hex->data);
}

/* A worker's wrong frame is logged; the worker gets no error, and continues. */
TEST_ROWS(adr_010_worker_errors_are_logged, 2)
{
    static const char *const pools[] = {FRAMED_POOL(",'clients':'shared'"),
                                        FRAMED_POOL(",'clients':'sticky'")};
    struct daemon *daemon = START(.pools = pools[row]);
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    for (int i = 0; i < WRONG; i++) {
        daemon_mark_log(daemon);
        say(client, wrong[i].bytes);
        ck_assert_int_eq(client_pid(client, "2", NULL), pid);
        if (i < 5) /* not all of many similar lines are written */
            daemon_wait_log(daemon, " WARN .*worker=1.* refused a frame of its output: ");
    }
    ck_assert(span_is(client_ask(client, "3", NULL, "reply_text", NULL), "null"));
}
