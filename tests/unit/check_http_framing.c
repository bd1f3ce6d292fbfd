/* HTTP/1.1 as a framing: heads and bodies, however the stream is cut. */
#include "build_config.h"

#include "http/reader.h"
#include "http_stream.h"

#define MAX_BODY 200

static struct http_reader reader;
static enum { TAKE, SKIP, BATCH } policy;

static void note_whole(struct http_stream *stream, struct slice frame)
{
    if (reader.part == HTTP_PART_HEAD) {
        struct slice path = http_span_of(reader.head.path, frame);

        text_printf(&stream->notes, "%.*s %.*s", (int)reader.head.method_len, frame.data,
                    (int)path.len, path.data);
        if (policy == SKIP)
            http_reader_skip_body(&reader);
        else if (policy == BATCH)
            http_reader_take_batch(&reader);
        text_printf(&stream->notes, "%s;", reader.closes ? " closes" : "");
        return;
    }
    ck_assert_int_eq(reader.part, HTTP_PART_BODY);
    text_printf(&stream->notes, "%s%.*s%s;", reader.in_batch ? "member " : "", (int)frame.len,
                frame.data, stream->scanner.fields.oddities & SCAN_CUT ? " cut" : "");
}

static void note_noted(struct http_stream *stream)
{
    ck_assert_int_eq(reader.part, HTTP_PART_END);
    text_printf(&stream->notes, "end;");
}

static void note_bad(struct http_stream *stream, const struct frame *frame, bool malformed)
{
    (void)frame;
    text_printf(&stream->notes, "%c%d%s;", malformed ? '!' : '?', reader.status,
                reader.closes ? " closes" : "");
    ck_assert(reader.closes || !malformed);
}

static const char *read_stream(const char *bytes, size_t size, size_t max_long)
{
    static struct http_stream stream;

    stream.whole = note_whole;
    stream.noted = note_noted;
    stream.bad = note_bad;
    http_stream_start(&stream, &framing_http, &reader, MAX_BODY, max_long);
    http_stream_read(&stream, slice_of(bytes, strlen(bytes)), size);
    if (!stream.ended && (stream.len > 0 || (stream.state.begun && !stream.state.reported)))
        text_printf(&stream.notes, "more");
    http_stream_end(&stream);
    return stream.notes.data;
}

static void expect_notes(const char *bytes, size_t max_long, const char *notes)
{
    for (size_t size = 1; size <= strlen(bytes) + 1; size++) {
        const char *is = read_stream(bytes, size, max_long);

        ck_assert_msg(strcmp(is, notes) == 0, "in pieces of %zu: %s", size, is);
    }
}

#define HOST "Host: a\r\n"
#define GET "GET /a HTTP/1.1\r\n" HOST "\r\n"
#define POST(length) "POST /a HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n"
#define CHUNKED "POST /c HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *bytes, *notes;
} streams[] = {
    {"", ""},
    {GET, "GET /a;"},
    {GET GET GET, "GET /a;GET /a;GET /a;"},
    {"\r\n\r\n" GET "\r\n" GET, "GET /a;GET /a;"},
    {POST("8") "{\"id\":1}", "POST /a;{\"id\":1};"},
    {POST("8") "{\"id\":1}" GET, "POST /a;{\"id\":1};GET /a;"},
    {POST("12") "\n{\n\"id\":1\n}\n", "POST /a;\n{\n\"id\":1\n}\n;"},
    {POST("0") GET, "POST /a;GET /a;"},
    {POST("8") "{\"id\"", "POST /a;more"},
    {POST("3") "{a}" GET, "POST /a;?400;GET /a;"},
    {POST("2") "{}garbage", "POST /a;{};more"},
    {POST("4") "[{}]" GET, "POST /a;?400;GET /a;"},
    {POST("5") "{\"id\"" GET, "POST /a;?400;GET /a;"},
    {POST("300") "{", "POST /a;?413;"},
    {POST("70000") "{", "POST /a;?413 closes;"},
    {CHUNKED "8\r\n{\"id\":1}\r\n0\r\n\r\n", "POST /c;{\"id\":1};"},
    {CHUNKED "8\r\n{\"id\":1}\r\n0\r\n\r\n" GET, "POST /c;{\"id\":1};GET /a;"},
    {CHUNKED "1\r\n{\r\n1;a=b\r\n\"\r\n006\r\nid\":1}\r\n0\r\nA: b\r\nC:\r\n\r\n" GET,
     "POST /c;{\"id\":1};GET /a;"},
    {CHUNKED "2\r\n{}\r\n0\r\n\r\n" CHUNKED "2\r\n{}\r\n0\r\n\r\n", "POST /c;{};POST /c;{};"},
    {CHUNKED "2\r\n{a\r\n0\r\n\r\n" GET, "POST /c;?400 closes;"},
    {CHUNKED "0\r\n\r\n" GET, "POST /c;?400 closes;"},
    {CHUNKED "1\r\n{\r\n0\r\n\r\n" GET, "POST /c;?400 closes;"},
    {CHUNKED "2\r\n{}\r\n", "POST /c;more"},
    {CHUNKED "2\r\n{}\n", "POST /c;!400 closes;"},
    {CHUNKED "2\r\n{}  0\r\n", "POST /c;!400 closes;"},
    {CHUNKED "2 \r\n{}", "POST /c;!400 closes;"},
    {CHUNKED " 2\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "0x2\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "-2\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a=\"b;\\\"c\";d\r\n{}\r\n0;e=f\r\n\r\n", "POST /c;{};"},
    {CHUNKED "2;\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2; a\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a=\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a=b=c\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a=\"b\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a=\"b\"c\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2;a\x01\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "1000000000000000\r\n{}", "POST /c;!400 closes;"},
    {CHUNKED "2\r\n{}\r\n0\r\n A: b\r\n\r\n", "POST /c;!400 closes;"},
    {CHUNKED "2\r\n{}\r\n0\r\nA b\r\n\r\n", "POST /c;!400 closes;"},
    {CHUNKED "2\r\n{}\r\n0\r\nA: b\n\r\n", "POST /c;!400 closes;"},
    {CHUNKED "2\r\n{a\r\nbad", "POST /c;?400 closes;"},
    {"GET / HTTP/1.0\r\n\r\n" GET, "GET / closes;"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / closes;"},
    {"GET / HTTP/1.1\nHost: a\n\n", "!400 closes;"},
    {"GET / HTTP/1.1\r\nHost: a\n\r\n", "!400 closes;"},
    {"GET / HTTP/1.1\r\nHost: a\r\n\n", "!400 closes;"},
    {"\nGET / HTTP/1.1\r\n", "!400 closes;"},
    {"\r\r\nGET", "!400 closes;"},
    {" GET / HTTP/1.1\r\n", "!400 closes;"},
    {"{\"id\":1}\n", "!400 closes;"},
    {"\x16\x03\x01\x02", "!400 closes;"},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505 closes;"},
    {GET "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a;!501 closes;"},
};

TEST_ROWS(streams_at_all_chunk_sizes, COUNT(streams))
{
    expect_notes(streams[row].bytes, 0, streams[row].notes);
}

/* --- bodies that are not wanted --- */

static const struct {
    const char *bytes, *notes;
} skipped[] = {
    {GET GET, "GET /a;GET /a;"},
    {POST("3") "abc" GET, "POST /a;GET /a;"},
    {POST("0") GET, "POST /a;GET /a;"},
    {POST("65536") "abc", "POST /a;"},
    {POST("65537") "abc" GET, "POST /a closes;"},
    {CHUNKED "2\r\n{}\r\n0\r\n\r\n" GET, "POST /c closes;"},
    {"POST /a HTTP/1.1\r\n" HOST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n" GET,
     "POST /a closes;"},
};

TEST_ROWS(bodies_that_are_skipped, COUNT(skipped))
{
    policy = SKIP;
    expect_notes(skipped[row].bytes, 0, skipped[row].notes);
}

/* --- batches --- */

static const struct {
    const char *bytes, *notes;
} batches[] = {
    {POST("8") "{\"id\":1}" GET, "POST /a;{\"id\":1};GET /a;"},
    {POST("4") "[{}]" GET, "POST /a;member {};end;GET /a;"},
    {POST("9") " \n[ {} ]\n" GET, "POST /a;member {} ;end;GET /a;"},
    {POST("18") "[{},{\"a\":[{}]},{}]" GET,
     "POST /a;member {};member {\"a\":[{}]};member {};end;GET /a;"},
    {POST("11") "[{}\r\n,\n{\n}]" GET, "POST /a;member {}\r\n;member {\n};end;GET /a;"},
    {CHUNKED "1\r\n[\r\n4\r\n{},{\r\n2\r\n}]\r\n0\r\n\r\n" GET,
     "POST /c;member {};member {};end;GET /a;"},
    {POST("2") "[]" GET, "POST /a;?400;GET /a;"},
    {POST("5") "[{},]" GET, "POST /a;?400;GET /a;"},
    {POST("5") "[,{}]" GET, "POST /a;?400;GET /a;"},
    {POST("6") "[{}{}]" GET, "POST /a;?400;GET /a;"},
    {POST("6") "[{},1]" GET, "POST /a;?400;GET /a;"},
    {POST("6") "[{},[]" GET, "POST /a;?400;GET /a;"},
    {POST("5") "[{}]x" GET, "POST /a;?400;GET /a;"},
    {POST("5") "[{}}]" GET, "POST /a;?400;GET /a;"},
    {POST("3") "[{}" GET, "POST /a;?400;GET /a;"},
    {POST("1") "[" GET, "POST /a;?400;GET /a;"},
    {POST("3") "   " GET, "POST /a;?400;GET /a;"},
    {CHUNKED "3\r\n[{}\r\n0\r\n\r\n" GET, "POST /c;?400 closes;"},
    {CHUNKED "4\r\n[{}]\r\nx", "POST /c;!400 closes;"},
    {POST("9") "[{},{}", "POST /a;more"},
};

TEST_ROWS(batches_at_all_chunk_sizes, COUNT(batches))
{
    policy = BATCH;
    expect_notes(batches[row].bytes, 0, batches[row].notes);
    if (batches[row].bytes[0] == POST("1")[0]) /* the same where long messages are cut */
        expect_notes(batches[row].bytes, MAX_BODY, batches[row].notes);
}

/* --- long bodies --- */

static const char *long_body(size_t len)
{
    return test_format("{\"id\":7,\"a\":\"%s\"}", test_fill('x', len - 15));
}

static void expect_long(const char *bytes, size_t max_long, const char *notes)
{
    static const size_t sizes[] = {1, 2, 7, 50, 199, 200, 201, 300, 1000};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        const char *is = read_stream(bytes, sizes[i], max_long);

        ck_assert_msg(strncmp(is, notes, strlen(notes)) == 0, "in pieces of %zu: %s", sizes[i], is);
    }
}

static const char *chunked(const char *body, size_t size)
{
    struct text *text = test_text();
    size_t len = strlen(body);

    text_printf(text, "%s", CHUNKED);
    for (size_t at = 0; at < len; at += size)
        text_printf(text, "%zx\r\n%.*s\r\n", len - at < size ? len - at : size, (int)size,
                    body + at);
    text_printf(text, "0\r\n\r\n");
    return text->data;
}

TEST(longest_body)
{
    const char *fits = long_body(MAX_BODY), *long_one = long_body(MAX_BODY + 1);
    const char *end = test_format("POST /c;%s;", fits);

    for (size_t size = 1; size < 300; size += 37) {
        expect_long(chunked(fits, size), 0, end);
        expect_long(chunked(long_one, size), 0, "POST /c;!413 closes;");
    }
    expect_long(test_format(POST("%zu") "%s", strlen(fits), fits), 0,
                test_format("POST /a;%s;", fits));
    expect_long(test_format(POST("%zu") "%s" GET, strlen(long_one), long_one), 0,
                "POST /a;?413;GET /a;");
}

/* What is wrong before the limit is what the answer says. */
TEST(wrong_byte_before_the_limit)
{
    const char *body = test_format("{\"id\":7,%s", test_fill('x', MAX_BODY));

    expect_long(chunked(body, 11), 0, "POST /c;?400 closes;");
}

TEST(longest_batch)
{
    const char *fits = test_format("[%s]", long_body(MAX_BODY - 2));
    const char *long_one = test_format("[%s]", long_body(MAX_BODY - 1));

    policy = BATCH;
    for (size_t max_long = 0; max_long <= MAX_BODY; max_long += MAX_BODY) {
        expect_long(chunked(fits, 90), max_long, "POST /c;member {");
        expect_long(chunked(long_one, 90), max_long, "POST /c;!413 closes;");
        expect_long(test_format(POST("%zu") "%s" GET, strlen(fits), fits), max_long,
                    "POST /a;member {");
        expect_long(test_format(POST("%zu") "%s" GET, strlen(long_one), long_one), max_long,
                    "POST /a;?413;GET /a;");
    }
}

TEST(longer_bodies_are_cut)
{
    const char *body = long_body(1000);

    for (size_t size = 1; size < 300; size += 37)
        expect_long(test_format("%s%s", chunked(body, size), GET), 300, "POST /c;{\"id\":7");
    expect_long(test_format(POST("%zu") "%s" GET, strlen(body), body), 300, "POST /a;{\"id\":7");
}

/* --- limits of heads --- */

TEST(longest_head)
{
    static struct http_stream stream;
    const char *fits = test_format("GET / HTTP/1.1\r\n" HOST "A: %s\r\n\r\n",
                                   test_fill('x', HTTP_HEAD_MAX - 32));
    const char *over = test_format("GET / HTTP/1.1\r\n" HOST "A: %s\r\n\r\n",
                                   test_fill('x', HTTP_HEAD_MAX - 31));
    const char *target = test_format("GET /%s HTTP/1.1\r\n" HOST "\r\n",
                                     test_fill('x', HTTP_HEAD_MAX));
    const struct {
        const char *bytes, *notes;
    } heads[] = {{fits, "GET /;"}, {over, "!431 closes;"}, {target, "!414 closes;"}};

    stream.whole = note_whole;
    stream.bad = note_bad;
    for (size_t i = 0; i < COUNT(heads); i++) {
        for (size_t size = 1000; size <= 20000; size += 19000) {
            http_stream_start(&stream, &framing_http, &reader, 1 << 20, 0);
            http_stream_read(&stream, slice_of(heads[i].bytes, strlen(heads[i].bytes)), size);
            ck_assert_str_eq(stream.notes.data, heads[i].notes);
            http_stream_end(&stream);
        }
    }
}

/* However small the chunks are, each byte is moved once or twice. */
TEST(small_chunks_cost_what_they_are_long)
{
    static struct http_stream stream;
    const char *bytes = chunked(long_body(20000), 1);

    stream.whole = note_whole;
    http_stream_start(&stream, &framing_http, &reader, 1 << 20, 0);
    http_stream_read(&stream, slice_of(bytes, strlen(bytes)), 65536);
    ck_assert_uint_eq(stream.notes.len, strlen("POST /c;") + 20000 + 1);
    http_stream_end(&stream);
}

/* --- the time of a part --- */

TEST(time_of_heads_and_bodies)
{
    static struct http_stream stream;

    stream.whole = note_whole;
    http_stream_start(&stream, &framing_http, &reader, 1 << 20, 0);
    http_stream_read(&stream, slice_of("\r\n", 2), 2);
    ck_assert(!stream.state.begun);
    http_stream_read(&stream, slice_of("G", 1), 1);
    ck_assert(stream.state.begun && stream.state.frame_ms == HTTP_HEAD_MS);
    http_stream_read(&stream, slice_of("ET / HTTP/1.1\r\n" HOST "\r\n", 26), 26);
    ck_assert(!stream.state.begun);
    http_stream_read(&stream, slice_of(POST("200000"), sizeof POST("200000") - 1), 1000);
    ck_assert(stream.state.begun && stream.state.frame_ms == 0 && !stream.state.timed);
    ck_assert_int_eq(reader.status, 408);
    stream.state.timed = true; /* as the connection does */
    http_stream_read(&stream, slice_of("{\"a\":\"", 6), 6);
    ck_assert(stream.state.timed);
    http_stream_read(&stream, slice_of(test_fill('x', 65536), 65536), 65536);
    ck_assert(!stream.state.timed);
    http_stream_end(&stream);
}
