/* The client side of HTTP: responses and event streams, in pieces of every size. */
#include "build_config.h"

#include "http/event_reader.h"
#include "http/response_reader.h"
#include "suite.h"

#define SEEN_MAX 4096

struct seen {
    char text[SEEN_MAX];
    size_t len;
};

static void note(struct seen *seen, const char *bytes, size_t len)
{
    ck_assert_uint_le(seen->len + len, sizeof seen->text);
    if (len > 0)
        memcpy(seen->text + seen->len, bytes, len);
    seen->len += len;
}

static void note_text(struct seen *seen, const char *text)
{
    note(seen, text, strlen(text));
}

/* --- responses --- */

struct response_case {
    const char *sent, *seen; /* "200[body]" with "c" if the connection closes after it */
    bool closes;             /* the connection ends after the bytes */
};

#define HEAD "HTTP/1.1 200 OK\r\n"

static const struct response_case responses[] = {
    {HEAD "Content-Length: 5\r\n\r\nhello", "200[hello]", false},
    {HEAD "Content-Length: 0\r\n\r\n" HEAD "content-length:2\r\n\r\nok", "200[]200[ok]", false},
    {HEAD "Content-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok", "200[ok]", false},
    {HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", "!a bad Content-Length", false},
    {HEAD "Content-Length: +2\r\n\r\nok", "!a bad Content-Length", false},
    {HEAD "Content-Length: 1234567890123456789\r\n\r\n", "!a bad Content-Length", false},
    {HEAD "Connection: close\r\nContent-Length: 2\r\n\r\nok", "200c[ok]", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "200c[ok]", false},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", "200[ok]", false},
    {HEAD "\r\nall of it", "200c[all of it]", true},
    {"HTTP/1.1 204\r\n\r\n" HEAD "Content-Length: 1\r\n\r\nx", "204[]200[x]", false},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "304[]", false},
    {"HTTP/1.1 100 Continue\r\n\r\n"
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
     "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
     "202[]", false},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "!an upgrade that was not asked for", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\n\r\n",
     "200[hello world]", false},
    {HEAD "Transfer-Encoding: Chunked\r\n\r\nA \r\n0123456789\r\n0\r\nTrailer: a\r\nb: c\r\n\r\n"
          "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
     "200[0123456789]404[]", false},
    {HEAD "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200c[ok]",
     false},
    {HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n", "!a Transfer-Encoding other than chunked",
     false},
    {HEAD "Transfer-Encoding: chunked\n\n2 \nok\n1 ;a=\x01\r\n!\r\r\n0\nodd\n\r\n" HEAD
          "Content-Length: 0\r\n\r\n",
     "200[ok!]200[]", false},
    {HEAD "Odd Name : \x02\r\nContent-Length : 2\r\n\r\nok", "200[ok]", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\nx\r\n", "200[!a bad chunk", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n", "200[!a bad chunk", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "200[a!a bad chunk", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", "200[!a bad chunk", false},
    {HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc",
     "200[abc!the connection ended within a "
     "response",
     true},
    {HEAD "Content-Length: 5\r\n\r\nhell", "200[hell!the connection ended within a response", true},
    {HEAD "Content-Len", "!the connection ended within a response", true},
    {"", "", true},
    {"\r\n\r\n" HEAD "Content-Length: 1\r\n\r\nx\r\n", "200[x]", true},
    {"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "200[x]", false},
    {"HTTP/2 200 OK\r\n\r\n", "!no head of an HTTP/1.1 response", false},
    {"HTTP/1.1 20 OK\r\n\r\n", "!no head of an HTTP/1.1 response", false},
    {"HTTP/1.1 2000 OK\r\n\r\n", "!no head of an HTTP/1.1 response", false},
    {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "!no head of an HTTP/1.1 response", false},
    {HEAD "no field\r\n\r\n", "!no head of an HTTP/1.1 response", false},
    {HEAD "A: b\r\n c: folded\r\n\r\n", "!no head of an HTTP/1.1 response", false},
};

/* False: the connection cannot be used any more. */
static bool read_responses(struct http_response_reader *reader, struct slice bytes,
                           struct seen *seen)
{
    struct slice body;

    for (;;) {
        switch (http_response_next(reader, &bytes, &body)) {
        case HTTP_RESPONSE_MORE:
            ck_assert_uint_eq(bytes.len, 0);
            return true;
        case HTTP_RESPONSE_HEAD: {
            char text[16];

            snprintf(text, sizeof text, "%u%s[", reader->status, reader->keep_alive ? "" : "c");
            note_text(seen, text);
            break;
        }
        case HTTP_RESPONSE_BODY:
            ck_assert_uint_gt(body.len, 0);
            note(seen, body.data, body.len);
            break;
        case HTTP_RESPONSE_END:
            note_text(seen, "]");
            break;
        case HTTP_RESPONSE_MALFORMED:
            note_text(seen, "!");
            note_text(seen, reader->problem);
            return false;
        }
    }
}

static void check_response(const struct response_case *test, size_t piece)
{
    struct http_response_reader *reader = calloc(1, sizeof *reader);
    size_t len = strlen(test->sent);
    struct seen seen = {.len = 0};
    bool goes_on = true;

    for (size_t at = 0; at < len && goes_on; at += piece) {
        size_t part = len - at < piece ? len - at : piece;
        char *copy = malloc(part); /* so that a byte too many is found */

        memcpy(copy, test->sent + at, part);
        goes_on = read_responses(reader, slice_of(copy, part), &seen);
        free(copy);
    }
    if (goes_on && test->closes) {
        switch (http_response_close(reader)) {
        case HTTP_RESPONSE_END:
            note_text(&seen, "]");
            break;
        case HTTP_RESPONSE_MALFORMED:
            note_text(&seen, "!");
            note_text(&seen, reader->problem);
            break;
        default:
            break;
        }
    }
    note(&seen, "", 1);
    ck_assert_msg(strcmp(seen.text, test->seen) == 0, "\"%s\" in pieces of %zu: %s, not %s",
                  test->sent, piece, seen.text, test->seen);
    free(reader);
}

TEST_ROWS(responses_in_pieces_of_any_size, COUNT(responses))
{
    const struct response_case *test = &responses[row];
    size_t len = strlen(test->sent);

    for (size_t piece = 1; piece <= len + 1; piece++)
        check_response(test, piece);
}

static void expect_field(const struct http_response_reader *reader, const char *name,
                         const char *value)
{
    struct slice found = http_response_field(reader, name);

    ck_assert_msg(found.data != NULL && slice_equal(found, slice_of(value, strlen(value))),
                  "%s: \"%.*s\"", name, (int)found.len, found.data);
}

TEST(fields_of_a_head)
{
    static const char head[] = HEAD
        "content-TYPE:\tText/Event-Stream; charset=utf-8 \r\nMcp-Session-Id: a:b c\r\n"
        "Empty:\r\n\r\n";
    struct http_response_reader *reader = calloc(1, sizeof *reader);
    struct slice bytes = slice_of(head, sizeof head - 1), body;

    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_HEAD);
    ck_assert(http_response_is(reader, "text/event-stream"));
    ck_assert(!http_response_is(reader, "text/event"));
    ck_assert(slice_equal(reader->reason, slice_of("OK", 2)));
    expect_field(reader, "mcp-session-id", "a:b c");
    expect_field(reader, "empty", "");
    ck_assert_ptr_null(http_response_field(reader, "mcp-session").data);
    free(reader);
}

TEST(heads_have_a_limit)
{
    struct http_response_reader *reader = calloc(1, sizeof *reader);
    struct slice bytes = slice_of(HEAD "A: ", strlen(HEAD "A: ")), body;
    unsigned count = 0;

    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_MORE);
    do {
        bytes = slice_of("x", 1);
        count++;
    } while (http_response_next(reader, &bytes, &body) == HTTP_RESPONSE_MORE);
    ck_assert_uint_eq(count + strlen(HEAD "A: "), HTTP_RESPONSE_HEAD_MAX + 1);
    ck_assert_str_eq(reader->problem, "a head that is too long");
    free(reader);
}

/* A stream of events may have more chunks than CHUNKED_EXTRA_MAX. */
TEST(chunks_have_no_limit)
{
    struct http_response_reader *reader = calloc(1, sizeof *reader);
    static const char head[] = HEAD "Transfer-Encoding: chunked\r\n\r\n", chunk[] = "1 ;a\r\nx\r\n";
    struct slice bytes = slice_of(head, sizeof head - 1), body;

    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_HEAD);
    for (unsigned i = 0; i <= CHUNKED_EXTRA_MAX; i++) {
        bytes = slice_of(chunk, sizeof chunk - 1);
        ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_BODY);
        ck_assert(slice_equal(body, slice_of("x", 1)));
        ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_MORE);
    }
    bytes = slice_of("0\r\n\r\n", 5);
    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_END);
    free(reader);
}

TEST_ROWS(extensions_and_trailers_have_a_limit, 2)
{
    static const char *const heads[] = {"1;", "0\r\nA: "};
    struct http_response_reader *reader = calloc(1, sizeof *reader);
    static const char head[] = HEAD "Transfer-Encoding: chunked\r\n\r\n";
    struct slice bytes = slice_of(head, sizeof head - 1), body;
    unsigned count = 0;

    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_HEAD);
    bytes = slice_of(heads[row], strlen(heads[row]));
    ck_assert_int_eq(http_response_next(reader, &bytes, &body), HTTP_RESPONSE_MORE);
    do {
        bytes = slice_of("x", 1);
        count++;
    } while (http_response_next(reader, &bytes, &body) == HTTP_RESPONSE_MORE);
    ck_assert_uint_ge(count, CHUNKED_EXTRA_MAX - 4);
    ck_assert_uint_le(count, CHUNKED_EXTRA_MAX + 1);
    ck_assert_str_eq(reader->problem, "a bad chunk");
    free(reader);
}

/* --- events --- */

struct event_case {
    const char *sent, *seen; /* "{data}" or "(data)" of an event with a name, "#id" after it */
    uint32_t retry_ms;
};

#define MAX_DATA 20

static const struct event_case events[] = {
    {"data: one\n\ndata:two\n\n", "{one}#{two}#", 0},
    {"data: one\r\n\r\ndata:  two\r\n\r\n", "{one}#{ two}#", 0},
    {"data: one\r\rdata: two\r\r", "{one}#{two}#", 0},
    {"data: one\ndata: two\ndata\ndata:\n\n", "{one\ntwo\n\n}#", 0},
    {"event: message\nid: 7\ndata: {}\n\ndata: x\n\n", "{{}}#7{x}#7", 0},
    {"event: ping\ndata: x\n\nevent: other\nevent: message\ndata: y\n\n", "(x)#{y}#", 0},
    {"event: messages and more than that\ndata: x\n\n", "(x)#", 0},
    {": a comment\n\n:\n\ndata: x\n: more\n\n", "{x}#", 0},
    {"id: 4\ndata:\n\n", "{}#4", 0},
    {"id: 4\ndata\n\nid\ndata: x\n\n", "{}#4{x}#", 0},
    {"id: 5\nretry: 2500\n\n", "{}#5", 2500},
    {"retry: 99999999999\n\nretry: soon\n\n", "", HTTP_EVENT_RETRY_MAX},
    {"id: a\nid: b\ndata: x\n\n", "{x}#b", 0},
    {"\xEF\xBB\xBF"
     "data: x\n\n",
     "{x}#", 0},
    {"\xEF\xBB"
     "data: x\n\ndata: y\n\n",
     "{y}#", 0},
    {"data: x\n\xEF\xBB\xBF"
     "data: y\n\n",
     "{x}#", 0},
    {"dat: x\ndatas: y\nDATA: z\n\n", "", 0},
    {"data: 12345678901234567890\n\n", "{12345678901234567890}#", 0},
    {"data: 123456789012345678901\nid: 3\n\ndata: next\n\n", "!{next}#3", 0},
    {"data: not whole\n", "", 0},
    {"id: 1\ndata: whole\n\nid: 2\ndata: not whole\n", "{whole}#1", 0},
    {"\n\n\ndata: x\n\n\n\n", "{x}#", 0},
};

static void read_events(struct http_event_reader *reader, struct slice bytes, struct seen *seen)
{
    enum http_event_status status;

    while ((status = http_event_next(reader, &bytes)) != HTTP_EVENT_MORE) {
        if (status == HTTP_EVENT_TOO_LONG) {
            note_text(seen, "!");
            continue;
        }
        ck_assert_int_eq(status, HTTP_EVENT_WHOLE);
        note_text(seen, reader->is_message ? "{" : "(");
        note(seen, reader->data, reader->len);
        note_text(seen, reader->is_message ? "}#" : ")#");
        note_text(seen, reader->id);
    }
    ck_assert_uint_eq(bytes.len, 0);
}

TEST_ROWS(events_in_pieces_of_any_size, COUNT(events))
{
    const struct event_case *test = &events[row];
    size_t len = strlen(test->sent);

    for (size_t piece = 1; piece <= len; piece++) {
        struct http_event_reader reader = {.max_data = MAX_DATA};
        struct seen seen = {.len = 0};

        http_event_reset(&reader);
        for (size_t at = 0; at < len; at += piece) {
            size_t part = len - at < piece ? len - at : piece;
            char *copy = malloc(part);

            memcpy(copy, test->sent + at, part);
            read_events(&reader, slice_of(copy, part), &seen);
            free(copy);
        }
        note(&seen, "", 1);
        ck_assert_msg(strcmp(seen.text, test->seen) == 0, "\"%s\" in pieces of %zu: %s, not %s",
                      test->sent, piece, seen.text, test->seen);
        ck_assert_uint_eq(reader.retry_ms, test->retry_ms);
        http_event_free(&reader);
    }
}

TEST(ids_have_a_limit)
{
    struct http_event_reader reader = {.max_data = MAX_DATA};
    char line[HTTP_EVENT_ID_MAX + 32], id[HTTP_EVENT_ID_MAX + 2];
    struct seen seen = {.len = 0};

    http_event_reset(&reader);
    memset(id, 'i', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    snprintf(line, sizeof line, "id: %s\ndata: x\n\n", id);
    read_events(&reader, slice_of(line, strlen(line)), &seen);
    ck_assert_str_eq(reader.id, "");
    snprintf(line, sizeof line, "id: %s\ndata: x\n\n", id + 1);
    read_events(&reader, slice_of(line, strlen(line)), &seen);
    ck_assert_str_eq(reader.id, id + 1);
    http_event_free(&reader);
}
