/* Heads of requests: what RFC 9112 and RFC 9110 allow is read, the rest is refused. The cases are
 * those that the tests of other parsers have, and those by which requests are smuggled. */
#include "build_config.h"

#include "base/base64.h"
#include "http/event_log.h"
#include "http/head.h"
#include "http/response.h"
#include "suite.h"

static struct http_head head;
static struct slice bytes;

static int read_head(const char *text)
{
    const char *problem = NULL;
    int status;

    bytes = slice_of(text, strlen(text));
    status = http_head_read(&head, bytes, &problem);
    ck_assert((status == 0) == (problem == NULL));
    return status;
}

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define END "\r\n"

/* --- request lines --- */

static const struct {
    const char *line;
    int status;
    const char *path, *query;
} lines[] = {
    {"GET / HTTP/1.1", 0, "/", NULL},
    {"GET /a/b;c=1,2:@!$&'()*+~_-.%7E HTTP/1.1", 0, "/a/b;c=1,2:@!$&'()*+~_-.%7E", NULL},
    {"GET //a/../b HTTP/1.1", 0, "//a/../b", NULL},
    {"GET /a? HTTP/1.1", 0, "/a", ""},
    {"GET /a?b=c?d/e HTTP/1.1", 0, "/a", "b=c?d/e"},
    {"GET http://host.example HTTP/1.1", 0, "", NULL},
    {"GET http://host.example?a=b HTTP/1.1", 0, "", "a=b"},
    {"GET http://host.example:1234?a=b HTTP/1.1", 0, "", "a=b"},
    {"GET HTTP://[::1]:80/a HTTP/1.1", 0, "/a", NULL},
    {"GET https://b/a?c HTTP/1.1", 0, "/a", "c"},
    {"OPTIONS * HTTP/1.1", 0, "*", NULL},
    {"M-SEARCH / HTTP/1.1", 0, "/", NULL},
    {"!#$%&'*+-.^_`|~09azAZ / HTTP/1.1", 0, "/", NULL},
    {"get / HTTP/1.1", 0, "/", NULL},
    {"GET / HTTP/1.9", 0, "/", NULL},
    {"GET / HTTP/1.0", 0, "/", NULL},
    /* methods and spaces */
    {"", 400, NULL, NULL},
    {"GET", 400, NULL, NULL},
    {"GET ", 400, NULL, NULL},
    {"GET /", 400, NULL, NULL},
    {"GET / ", 400, NULL, NULL},
    {"GET HTTP/1.1", 400, NULL, NULL},
    {"GET  HTTP/1.1", 400, NULL, NULL},
    {" GET / HTTP/1.1", 400, NULL, NULL},
    {"/ HTTP/1.1", 400, NULL, NULL},
    {"GET  / HTTP/1.1", 400, NULL, NULL},
    {"GET /  HTTP/1.1", 400, NULL, NULL},
    {"GET\t/ HTTP/1.1", 400, NULL, NULL},
    {"GET /\tHTTP/1.1", 400, NULL, NULL},
    {"GET / HTTP/1.1 ", 400, NULL, NULL},
    {"GET / HTTP/1.1\t", 400, NULL, NULL},
    {"G\x01T / HTTP/1.1", 400, NULL, NULL},
    {"G\xc3\x89T / HTTP/1.1", 400, NULL, NULL},
    {"G:T / HTTP/1.1", 400, NULL, NULL},
    {"G@T / HTTP/1.1", 400, NULL, NULL},
    {"GET / HTTP/1.1\rHost: a", 400, NULL, NULL},
    {"CONNECT a:443 HTTP/1.1", 501, NULL, NULL},
    {"CONNECT a:443 HTTP/1.0", 501, NULL, NULL},
    /* targets */
    {"GET a HTTP/1.1", 400, NULL, NULL},
    {"GET * HTTP/1.1", 400, NULL, NULL},
    {"GET a:80 HTTP/1.1", 400, NULL, NULL},
    {"GET ?a HTTP/1.1", 400, NULL, NULL},
    {"GET /a b HTTP/1.1", 400, NULL, NULL},
    {"GET /a\"b HTTP/1.1", 400, NULL, NULL},
    {"GET /<a> HTTP/1.1", 400, NULL, NULL},
    {"GET /a\\b HTTP/1.1", 400, NULL, NULL},
    {"GET /a?b=| HTTP/1.1", 400, NULL, NULL},
    {"GET /a?b#c HTTP/1.1", 400, NULL, NULL},
    {"GET /a#c HTTP/1.1", 400, NULL, NULL},
    {"GET /\xce\xb4 HTTP/1.1", 400, NULL, NULL},
    {"GET /a\x7f HTTP/1.1", 400, NULL, NULL},
    {"GET /a\x01 HTTP/1.1", 400, NULL, NULL},
    {"GET /% HTTP/1.1", 400, NULL, NULL},
    {"GET /%4 HTTP/1.1", 400, NULL, NULL},
    {"GET /%4g HTTP/1.1", 400, NULL, NULL},
    {"GET /%00 HTTP/1.1", 400, NULL, NULL},
    {"GET /?%zz HTTP/1.1", 400, NULL, NULL},
    {"GET http:// HTTP/1.1", 400, NULL, NULL},
    {"GET http:///a HTTP/1.1", 400, NULL, NULL},
    {"GET http://:80/a HTTP/1.1", 400, NULL, NULL},
    {"GET http:/a HTTP/1.1", 400, NULL, NULL},
    {"GET ftp://a/b HTTP/1.1", 400, NULL, NULL},
    {"GET http://user@a/b HTTP/1.1", 400, NULL, NULL},
    {"GET http://user:pass@a:80/b HTTP/1.1", 400, NULL, NULL},
    {"GET http://a:b/c HTTP/1.1", 400, NULL, NULL},
    {"GET http://a:123456/c HTTP/1.1", 400, NULL, NULL},
    {"GET http://[::1/c HTTP/1.1", 400, NULL, NULL},
    /* versions */
    {"GET / http/1.1", 400, NULL, NULL},
    {"GET / Http/1.1", 400, NULL, NULL},
    {"GET / HTTP/1", 400, NULL, NULL},
    {"GET / HTTP/11", 400, NULL, NULL},
    {"GET / HTTP/1.", 400, NULL, NULL},
    {"GET / HTTP/.1", 400, NULL, NULL},
    {"GET / HTTP/01.1", 400, NULL, NULL},
    {"GET / HTTP/1.10", 400, NULL, NULL},
    {"GET / HTTP/1.x", 400, NULL, NULL},
    {"GET / HTTPS/1.1", 400, NULL, NULL},
    {"GET / IHTTP/1.1", 400, NULL, NULL},
    {"GET / RTSP/1.0", 400, NULL, NULL},
    {"GET / ICE/1.0", 400, NULL, NULL},
    {"GET / HTTP 1.1", 400, NULL, NULL},
    {"GET / HTTP/0.9", 505, NULL, NULL},
    {"GET / HTTP/2.0", 505, NULL, NULL},
    {"GET / HTTP/5.6", 505, NULL, NULL},
    {"PRI * HTTP/2.0", 505, NULL, NULL},
};

static void expect_part(struct http_span span, const char *text)
{
    struct slice part = http_span_of(span, bytes);

    ck_assert((part.data == NULL) == (text == NULL));
    if (text != NULL)
        ck_assert(slice_equal(part, slice_of(text, strlen(text))));
}

TEST_ROWS(request_lines, COUNT(lines))
{
    ck_assert_int_eq(read_head(test_format("%s\r\n" HOST END, lines[row].line)), lines[row].status);
    if (lines[row].status != 0)
        return;
    expect_part(head.path, lines[row].path);
    expect_part(head.query, lines[row].query);
}

TEST(methods)
{
    static const struct {
        const char *name;
        enum http_method method;
    } rows[] = {
        {"GET", HTTP_GET},           {"HEAD", HTTP_HEAD},          {"POST", HTTP_POST},
        {"PUT", HTTP_PUT},           {"DELETE", HTTP_DELETE},      {"OPTIONS", HTTP_OPTIONS},
        {"PATCH", HTTP_PATCH},       {"TRACE", HTTP_OTHER_METHOD}, {"get", HTTP_OTHER_METHOD},
        {"GETS", HTTP_OTHER_METHOD}, {"GE", HTTP_OTHER_METHOD},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ck_assert_int_eq(read_head(test_format("%s / HTTP/1.1\r\n" HOST END, rows[i].name)), 0);
        ck_assert_int_eq(head.method, rows[i].method);
        ck_assert_uint_eq(head.method_len, strlen(rows[i].name));
    }
}

TEST(versions)
{
    ck_assert(read_head("GET / HTTP/1.0\r\n" END) == 0 && head.minor == 0);
    ck_assert(read_head("GET / HTTP/1.1\r\n" HOST END) == 0 && head.minor == 1);
    ck_assert(read_head("GET / HTTP/1.3\r\n" HOST END) == 0 && head.minor == 1);
}

/* --- fields --- */

static const struct {
    const char *fields;
    int status;
} fields[] = {
    {"", 0},
    {"A:\r\n", 0},
    {"A:b\r\n", 0},
    {"A: \t b \t \r\n", 0},
    {"!#$%&'*+-.^_`|~09azAZ: b\r\n", 0},
    {"A: b c,\"d\";{}[]()<>@\\/?=\r\n", 0},
    {"A: \x80\xff\xc3\xa9\r\n", 0},
    {"A: b\r\nA: c\r\n", 0},
    {"A: b: c\r\n", 0},
    /* names */
    {": b\r\n", 400},
    {"A\r\n", 400},
    {"A b: c\r\n", 400},
    {"A : b\r\n", 400},
    {"A\t: b\r\n", 400},
    {" A: b\r\n", 400},
    {"\tA: b\r\n", 400},
    {"A@: b\r\n", 400},
    {"A(: b\r\n", 400},
    {"A\": b\r\n", 400},
    {"A/: b\r\n", 400},
    {"A\x01: b\r\n", 400},
    {"A\x7f: b\r\n", 400},
    {"A\xc3\xa9: b\r\n", 400},
    {"Content-Length\x0b: 3\r\n", 400},
    {"\x01Transfer-Encoding: chunked\r\n", 400},
    {"Transfer-Encoding : chunked\r\n", 400},
    {"Transfer-Encoding\t: chunked\r\n", 400},
    {"Transfer\r-Encoding: chunked\r\n", 400},
    /* values */
    {"A: b\rC: d\r\n", 400},
    {"A: b\r\rC: d\r\n", 400},
    {"A:\rTransfer-Encoding: chunked\r\n", 400},
    {"A: b\r \r\n", 400},
    {"A: \x01\r\n", 400},
    {"A: \x1b\r\n", 400},
    {"A: \x7f\r\n", 400},
    {"A: b\x0b\r\n", 400},
    {"A: b\x0c\r\n", 400},
    /* folded lines */
    {"A: b\r\n c\r\n", 400},
    {"A: b\r\n\tc\r\n", 400},
    {"A:\r\n b\r\n", 400},
    {"A: b\r\n \r\n", 400},
    {"A\r\n : b\r\n", 400},
    {"Transfer-Encoding:\r\n chunked\r\n", 400},
    {"A: b\r\n Content-Length: 38\r\n", 400},
    /* those that may come once */
    {"Host: a\r\n", 400},
    {"host: b\r\n", 400},
    {"Origin: a\r\nOrigin: a\r\n", 400},
    {"Authorization: a\r\nauthorization: b\r\n", 400},
    {"Content-Type: a\r\nContent-Type: b\r\n", 400},
    {"Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n", 400},
    {"Accept: a\r\nAccept: b\r\n", 0},
    {"Connection: a\r\nConnection: b\r\n", 0},
    /* lengths */
    {"Content-Length: 0\r\n", 0},
    {"Content-Length: 003\r\n", 0},
    {"Content-Length: 999999999999999999\r\n", 0},
    {"Content-Length:\r\n", 400},
    {"Content-Length: 9223372036854775808\r\n", 400},
    {"Content-Length: 18446744073709551621\r\n", 400},
    {"Content-Length: 1000000000000000000000\r\n", 400},
    {"Content-Length: +3\r\n", 400},
    {"Content-Length: -3\r\n", 400},
    {"Content-Length: 3.0\r\n", 400},
    {"Content-Length: 0x3\r\n", 400},
    {"Content-Length: 3a\r\n", 400},
    {"Content-Length: 3 4\r\n", 400},
    {"Content-Length: 3, 3\r\n", 400},
    {"Content-Length: 3;3\r\n", 400},
    {"Content-Length: \"3\"\r\n", 400},
    {"Content-Length: \xc2\xb2\r\n", 400},
    {"Content-Length: 3\r\nContent-Length: 3\r\n", 400},
    {"Content-Length: 3\r\nContent-Length: 4\r\n", 400},
    {"Content_Length: 3\r\n", 0},
    /* codings */
    {"Transfer-Encoding: chunked\r\n", 0},
    {"Transfer-Encoding: CHUNKED\r\n", 0},
    {"Transfer-Encoding: \t chunked \t\r\n", 0},
    {"Transfer-Encoding:\r\n", 400},
    {"Transfer-Encoding: identity\r\n", 400},
    {"Transfer-Encoding: pigeons\r\n", 400},
    {"Transfer-Encoding: xchunked\r\n", 400},
    {"Transfer-Encoding: chunkedx\r\n", 400},
    {"Transfer-Encoding: chunked;a=b\r\n", 400},
    {"Transfer-Encoding: \"chunked\"\r\n", 400},
    {"Transfer-Encoding: chunked,\r\n", 400},
    {"Transfer-Encoding: chunked, gzip\r\n", 400},
    {"Transfer-Encoding: chun\tked\r\n", 400},
    {"Transfer-Encoding: \x01"
     "chunked\r\n",
     400},
    {"Transfer-Encoding: \xc2\xa0"
     "chunked\r\n",
     400},
    {"Transfer-Encoding: gzip, chunked\r\n", 501},
    {"Transfer-Encoding: ,chunked\r\n", 501},
    {"Transfer-Encoding: chunked, chunked\r\n", 501},
    {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
    {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400},
    {"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400},
    {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400},
    {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", 400},
    {"Transfer-Encoding:\r\nContent-Length: 5\r\n", 400},
    {"Transfer_Encoding: chunked\r\n", 0},
    {"TE: trailers\r\n", 0},
    /* expectations */
    {"Expect: 100-continue\r\n", 0},
    {"Expect: 100-Continue\r\n", 0},
    {"Expect: 200-ok\r\n", 417},
    {"Expect:\r\n", 417},
};

TEST_ROWS(fields_of_heads, COUNT(fields))
{
    ck_assert_int_eq(read_head(test_format(LINE HOST "%s" END, fields[row].fields)),
                     fields[row].status);
    ck_assert_int_eq(read_head(test_format(LINE "%s" HOST END, fields[row].fields)),
                     fields[row].status);
}

/* A NUL is no byte of a head, wherever it stands. */
TEST(nul_anywhere)
{
    char text[] = "GET /a?b HTTP/1.1\r\nHost: a\r\nC: d\r\n\r\n";
    const char *problem;

    for (size_t i = 0; i + 5 < sizeof text; i++) {
        char was = text[i];

        text[i] = '\0';
        ck_assert_int_eq(http_head_read(&head, slice_of(text, sizeof text - 1), &problem), 400);
        text[i] = was;
    }
    ck_assert_int_eq(http_head_read(&head, slice_of(text, sizeof text - 1), &problem), 0);
}

TEST(bodies)
{
    ck_assert(read_head(LINE HOST END) == 0 && head.body == HTTP_BODY_NONE);
    ck_assert(read_head(LINE HOST "Content-Length: 0\r\n" END) == 0);
    ck_assert_int_eq(head.body, HTTP_BODY_NONE);
    ck_assert(read_head(LINE HOST "content-length: 0123\r\n" END) == 0);
    ck_assert(head.body == HTTP_BODY_SIZED && head.length == 123 && !head.expects_continue);
    ck_assert(read_head(LINE HOST "Transfer-Encoding: Chunked\r\n" END) == 0);
    ck_assert_int_eq(head.body, HTTP_BODY_CHUNKED);
    ck_assert(read_head(LINE HOST "Expect: 100-continue\r\nContent-Length: 1\r\n" END) == 0);
    ck_assert(head.expects_continue);
    ck_assert(read_head(LINE HOST "Expect: 100-continue\r\n" END) == 0 && !head.expects_continue);
    ck_assert_int_eq(read_head("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" END), 400);
    ck_assert_int_eq(read_head("GET / HTTP/1.0\r\nContent-Length: 1\r\nExpect: a\r\n" END), 0);
    ck_assert(!head.expects_continue);
}

TEST(number_of_fields)
{
    struct text *text = test_text();

    text_printf(text, LINE HOST);
    for (size_t i = 1; i < HTTP_FIELDS_MAX; i++)
        text_printf(text, "A: b\r\n");
    ck_assert_int_eq(read_head(test_format("%s" END, text->data)), 0);
    ck_assert_int_eq(read_head(test_format("%sA: b\r\n" END, text->data)), 431);
}

/* --- Host --- */

static const struct {
    const char *host;
    bool good;
} hosts[] = {
    {"", true},
    {"a", true},
    {"a.example:80", true},
    {"A_b-c~d!$&'()*+,;=%41", true},
    {"127.0.0.1:8080", true},
    {"[::1]", true},
    {"[::1]:8080", true},
    {"[::ffff:127.0.0.1]", true},
    {"a:", true},
    {":80", false},
    {"a:b", false},
    {"a:80:90", false},
    {"a:-1", false},
    {"a: 80", false},
    {"a:999999", false},
    {"a b", false},
    {"a/b", false},
    {"a?b", false},
    {"a#b", false},
    {"user@a", false},
    {"http://a", false},
    {"a,b c", false},
    {"a%", false},
    {"a%4", false},
    {"a%00", false},
    {"a\\b", false},
    {"[::1", false},
    {"[]", false},
    {"::1", false},
    {"[::1]a", false},
    {"[::g]", false},
    {"a\xc3\xa9", false},
};

TEST_ROWS(hosts_of_heads, COUNT(hosts))
{
    ck_assert_int_eq(read_head(test_format(LINE "Host: %s\r\n" END, hosts[row].host)),
                     hosts[row].good ? 0 : 400);
    if (hosts[row].good)
        expect_part(head.host, hosts[row].host);
    ck_assert_int_eq(read_head(test_format("GET / HTTP/1.0\r\nHost: %s\r\n" END, hosts[row].host)),
                     hosts[row].good ? 0 : 400);
}

TEST(host_is_missing)
{
    ck_assert_int_eq(read_head(LINE END), 400);
    ck_assert_int_eq(read_head("GET http://a/ HTTP/1.1\r\n" END), 400);
    ck_assert_int_eq(read_head("GET / HTTP/1.0\r\n" END), 0);
    expect_part(head.host, NULL);
}

/* The target's host is the one that counts (RFC 9112, 3.2.2). */
TEST(host_of_the_target)
{
    ck_assert_int_eq(read_head("GET http://b:1/ HTTP/1.1\r\n" HOST END), 0);
    expect_part(head.host, "b:1");
    ck_assert_int_eq(read_head("GET http://b/ HTTP/1.1\r\nHost: c d\r\n" END), 400);
}

TEST(authorities)
{
    struct slice host, port;

    ck_assert(http_authority_read(slice_of("[::1]:80", 8), &host, &port));
    ck_assert(slice_equal(host, slice_of("[::1]", 5)) && slice_equal(port, slice_of("80", 2)));
    ck_assert(http_authority_read(slice_of("a", 1), &host, &port));
    ck_assert(slice_equal(host, slice_of("a", 1)) && port.data == NULL);
    ck_assert(http_authority_read(slice_of("a:", 2), &host, &port));
    ck_assert(port.data != NULL && port.len == 0);
}

/* --- values and lists --- */

TEST(values)
{
    struct slice name, value;
    size_t at = 0;

    ck_assert_int_eq(read_head(LINE "hOST:\t a \r\nX-Other:  b  c\t\r\nOrigin:\r\n" END), 0);
    ck_assert(slice_equal(http_head_value(&head, bytes, HTTP_HOST), slice_of("a", 1)));
    value = http_head_value(&head, bytes, HTTP_ORIGIN);
    ck_assert(value.data != NULL && value.len == 0);
    ck_assert_ptr_null(http_head_value(&head, bytes, HTTP_ACCEPT).data);
    ck_assert(http_head_next(&head, bytes, &at, &name, &value));
    ck_assert(http_head_next(&head, bytes, &at, &name, &value));
    ck_assert(slice_equal(name, slice_of("X-Other", 7)) && slice_equal(value, slice_of("b  c", 4)));
    ck_assert(http_head_next(&head, bytes, &at, &name, &value));
    ck_assert(!http_head_next(&head, bytes, &at, &name, &value));
}

/* Each field that is looked for is found by its name. */
TEST(names_of_fields)
{
    static const char *const names[] = {"accept",
                                        "access-control-request-headers",
                                        "connection",
                                        "sec-websocket-extensions",
                                        "sec-websocket-protocol",
                                        "upgrade",
                                        "access-control-request-method",
                                        "access-control-request-private-network",
                                        "authorization",
                                        "content-encoding",
                                        "content-length",
                                        "content-type",
                                        "expect",
                                        "host",
                                        "last-event-id",
                                        "mcp-method",
                                        "mcp-name",
                                        "mcp-protocol-version",
                                        "mcp-session-id",
                                        "origin",
                                        "sec-fetch-site",
                                        "sec-websocket-key",
                                        "sec-websocket-version",
                                        "transfer-encoding"};

    ck_assert_uint_eq(COUNT(names), HTTP_FIELD_COUNT);
    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_int_eq(http_field_of(slice_of(names[i], strlen(names[i]))), (enum http_field)i);
    ck_assert_int_eq(http_field_of(slice_of("accepts", 7)), HTTP_FIELD_COUNT);
}

TEST(members_of_lists)
{
    static const char *const expected[] = {"a", "b;c=\"d,e\\\",f\"", "g", "h", "i"};
    struct slice member;
    size_t at = 0, count = 0;

    ck_assert_int_eq(read_head(LINE HOST "Accept: , a ,,b;c=\"d,e\\\",f\"\t,\r\nOther: x\r\n"
                                         "accept:\r\nAccept: g,h\r\nAccept: \t, i\r\n" END),
                     0);
    for (; http_head_next_member(&head, bytes, HTTP_ACCEPT, &at, &member); count++)
        ck_assert(slice_equal(member, slice_of(expected[count], strlen(expected[count]))));
    ck_assert_uint_eq(count, COUNT(expected));
    at = 0;
    ck_assert(!http_head_next_member(&head, bytes, HTTP_UPGRADE, &at, &member));
    ck_assert(http_head_lists(&head, bytes, HTTP_ACCEPT, "b"));
    ck_assert(http_head_lists(&head, bytes, HTTP_ACCEPT, "i"));
    ck_assert(!http_head_lists(&head, bytes, HTTP_ACCEPT, "d"));
    ck_assert(!http_head_lists(&head, bytes, HTTP_ACCEPT, "x"));
}

static const struct {
    const char *accept;
    bool json, events;
} accepts[] = {
    {"application/json, text/event-stream", true, true},
    {"Application/JSON;charset=utf-8", true, false},
    {"*/*", true, true},
    {"text/*", false, true},
    {"application/*;q=0.5", true, false},
    {"text/event-stream;q=0, */*", true, false},
    {"*/*, text/event-stream;q=0.000", true, false},
    {"*/*;q=0, application/json", true, false},
    {"application/json;q=0.001", true, false},
    {"application/json; q=0", false, false},
    {"*", false, false},
    {"text/html", false, false},
    {"", false, false},
};

TEST_ROWS(media_types, COUNT(accepts))
{
    unsigned accepted;

    ck_assert_int_eq(read_head(test_format(LINE HOST "Accept: %s\r\n" END, accepts[row].accept)),
                     0);
    accepted = http_head_accepts(&head, bytes);
    ck_assert(((accepted & HTTP_ACCEPTS_JSON) != 0) == accepts[row].json);
    ck_assert(((accepted & HTTP_ACCEPTS_EVENTS) != 0) == accepts[row].events);
    ck_assert_int_eq(read_head(LINE HOST END), 0);
    ck_assert_uint_eq(http_head_accepts(&head, bytes), HTTP_ACCEPTS_ALL);
}

TEST(connections_that_go_on)
{
    static const struct {
        int minor;
        const char *fields;
        bool goes_on;
    } rows[] = {
        {1, "", true},
        {1, "Connection: close\r\n", false},
        {1, "Connection: Keep-Alive, CLOSE\r\n", false},
        {1, "Connection: Upgrade\r\nConnection: close\r\n", false},
        {1, "Connection: closed\r\n", true},
        {0, "", false},
        {0, "Connection: keep-alive\r\n", true},
        {0, "Connection: keep-alive, close\r\n", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ck_assert_int_eq(read_head(test_format("GET / HTTP/1.%d\r\n" HOST "%s" END, rows[i].minor,
                                               rows[i].fields)),
                         0);
        ck_assert(http_head_keeps_alive(&head, bytes) == rows[i].goes_on);
    }
}

TEST(queries)
{
    struct slice query = slice_of("a=1&timeout=20&b&timeout=3&c=", 29);
    char text[8];
    size_t len;

    ck_assert(slice_equal(http_query_value(query, "timeout"), slice_of("20", 2)));
    ck_assert(slice_equal(http_query_value(query, "a"), slice_of("1", 1)));
    ck_assert_uint_eq(http_query_value(query, "c").len, 0);
    ck_assert_ptr_nonnull(http_query_value(query, "c").data);
    ck_assert_ptr_null(http_query_value(query, "b").data);
    ck_assert_ptr_null(http_query_value(query, "time").data);
    ck_assert(http_percent_decode(text, sizeof text, slice_of("a%20%C3%a9", 10), &len));
    ck_assert(len == 4 && memcmp(text, "a \xc3\xa9", 4) == 0);
    ck_assert(!http_percent_decode(text, sizeof text, slice_of("a%2", 3), &len));
    ck_assert(!http_percent_decode(text, sizeof text, slice_of("%00", 3), &len));
    ck_assert(!http_percent_decode(text, 2, slice_of("abc", 3), &len));
}

/* --- what is written --- */

TEST(answers)
{
    char text[200];
    struct http_output out = {.to = text, .size = sizeof text};

    http_write_status(&out, 200);
    http_write_text(&out, "A", "b");
    http_write_field(&out, "B", slice_of("c\r\nd", 4));
    http_write_number(&out, "N", 18446744073709551615u);
    http_write_end(&out);
    ck_assert(!out.full);
    ck_assert(slice_equal(slice_of(text, out.len), slice_of("HTTP/1.1 200 OK\r\nA: b\r\nB: c  d\r\n"
                                                            "N: 18446744073709551615\r\n\r\n",
                                                            59)));
    out = (struct http_output){.to = text, .size = 10};
    http_write_request(&out, "POST", slice_of("/a", 2));
    ck_assert(out.full && out.len <= 10);
}

TEST(dates)
{
    static const struct {
        int64_t seconds;
        const char *date;
    } rows[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {1709164800, "Thu, 29 Feb 2024 00:00:00 GMT"},
        {4107542399, "Sun, 28 Feb 2100 23:59:59 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[64];
        struct http_output out = {.to = text, .size = sizeof text};

        http_write_date(&out, rows[i].seconds);
        ck_assert_uint_eq(out.len, 37);
        ck_assert_int_eq(memcmp(text + 6, rows[i].date, 29), 0);
    }
}

TEST(events)
{
    struct event_frame frame;

    event_frame_write(&frame, slice_of("s-1", 3), 0, 2, false);
    ck_assert(slice_equal(slice_of(frame.before, frame.before_len),
                          slice_of("id: s-1\ndata: ", 14)));
    ck_assert(slice_equal(frame.after, slice_of("\n\n", 2)));
    event_frame_write(&frame, slice_of(NULL, 0), 500, 20, true); /* 11 + 6 + 20 + 2 bytes */
    ck_assert(slice_equal(slice_of(frame.before, frame.before_len),
                          slice_of("27\r\nretry: 500\ndata: ", 21)));
    ck_assert(slice_equal(frame.after, slice_of("\n\n\r\n", 4)));
    event_frame_write_empty(&frame, slice_of("a", 1), 0, true);
    ck_assert(slice_equal(slice_of(frame.before, frame.before_len),
                          slice_of("e\r\nid: a\ndata: \n\n\r\n", 19)));
    ck_assert_uint_eq(frame.after.len, 0);
    ck_assert(slice_equal(event_comment(true), slice_of("3\r\n:\n\n\r\n", 8)));
    ck_assert(slice_equal(event_comment(false), slice_of(":\n\n", 3)));
}

TEST(base64)
{
    static const struct {
        const char *bytes, *text;
    } rows[] = {{"", ""},
                {"f", "Zg=="},
                {"fo", "Zm8="},
                {"foo", "Zm9v"},
                {"foob", "Zm9vYg=="},
                {"fooba", "Zm9vYmE="},
                {"\xff\xfe", "//4="}};
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Zm9v\n", "Zm-v", "Z===", "=m9v"};
    char text[16];
    size_t len;

    for (size_t i = 0; i < COUNT(rows); i++) {
        base64_encode(text, slice_of(rows[i].bytes, strlen(rows[i].bytes)));
        ck_assert_int_eq(memcmp(text, rows[i].text, strlen(rows[i].text)), 0);
        ck_assert(base64_decode(text, slice_of(rows[i].text, strlen(rows[i].text)), &len));
        ck_assert(slice_equal(slice_of(text, len), slice_of(rows[i].bytes, strlen(rows[i].bytes))));
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert(!base64_decode(text, slice_of(bad[i], strlen(bad[i])), &len));
}
