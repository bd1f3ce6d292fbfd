/* Plain JSON-RPC over HTTP (protocol.md, "HTTP"). */
#include "build_config.h"

#include "harness.h"

#define POOLS                                                                                      \
    .mode = SETUP_HTTP, .pools = POOL("a", 2, "'--name','a'") "," POOL("b", 1, "'--name','b'")

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

static void post(struct http *http, const char *target, const char *body)
{
    http_send(http, "POST", target, HTTP_JSON, body);
}

static struct span ask(struct http *http, const char *target, const char *body, const char *id)
{
    post(http, target, body);
    return message_result(http_expect(http, 200), id);
}

TEST(http_rpc_request_has_its_answer)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    for (int i = 0; i < 3; i++)
        ck_assert(span_is(json_get(ask(http, "/rpc/b", ECHO("1"), "1"), "worker"), "\"b\""));
    ck_assert(span_is(http_field(http, "Content-Type"), "application/json"));
    ck_assert(span_is(json_get(ask(http, "/rpc/a/", ECHO("'x'"), "\"x\""), "worker"), "\"a\""));
    http_send(http, "POST", "/rpc/a", "", ECHO("1")); /* curl -d sends another type, or none */
    message_result(http_expect(http, 200), "1");
}

TEST(http_rpc_notification_is_accepted)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    post(http, "/rpc/b", "{'jsonrpc':'2.0','method':'note','params':5}");
    ck_assert_uint_eq(http_expect(http, 202).len, 0);
    ck_assert(span_is(json_get(ask(http, "/rpc/b", "{'id':1,'method':'last_note'}", "1"), "params"),
                      "5"));
}

/* A worker's notices and questions have no reader here. */
TEST(http_rpc_client_is_asked_nothing)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    ask(http, "/rpc/b",
        "{'id':1,'method':'say','sessionId':'s','params':{'message':{'method':'n',"
        "'sessionId':'s'}}}",
        "1");
    struct span reply = ask(http, "/rpc/b",
                            "{'id':2,'method':'ask','sessionId':'s','params':{'id':'q'}}", "2");
    expect_word(test_format("%.*s", (int)reply.len, reply.data), "cannot answer");
}

static const struct {
    const char *method, *target, *body;
    int status, code;
    const char *word;
} wrongs[] = {
    {"GET", "/rpc/a", NULL, 405, 0, "POST"},
    {"POST", "/rpc/a", "", 400, -32600, "without a body"},
    {"POST", "/rpc/a", "{'id':1,'method'", 400, -32700, ""},
    {"POST", "/rpc/a", "[]", 400, -32700, ""},
    {"POST", "/rpc/a", "[1]", 400, -32700, ""},
    {"POST", "/rpc/a", "7", 400, -32700, ""},
    {"POST", "/rpc/a?timeout=0", ECHO("1"), 400, -32600, "timeout"},
    {"POST", "/rpc/a?timeout=3601", ECHO("1"), 400, -32600, "timeout"},
    {"POST", "/rpc/a?timeout=x", ECHO("1"), 400, -32600, "timeout"},
    {"POST", "/rpc/c", ECHO("1"), 404, -32000, "no such pool; there are a, b"},
    {"POST", "/mcp/c", ECHO("1"), 404, -32000, "no such pool; there are a, b"},
    {"POST", "/c", ECHO("1"), 404, -32000, "there is /mcp, /mcp/POOL"},
    {"POST", "/rpc/a", "{'id':1,'pool':'b','method':'echo'}", 200, -32602, "pool"},
};

TEST_ROWS(http_rpc_wrong_request_gets_its_status, COUNT(wrongs))
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    http_send(http, wrongs[row].method, wrongs[row].target, HTTP_JSON, wrongs[row].body);
    struct span body = http_expect(http, wrongs[row].status);
    if (wrongs[row].code != 0)
        ck_assert_int_eq(json_number(body, "error.code"), wrongs[row].code);
    expect_word(test_format("%.*s", (int)body.len, body.data), wrongs[row].word);
    ask(http, "/rpc/a", ECHO("1"), "1"); /* the connection continues */
}

static const struct {
    const char *id, *answered; /* the member of the message; the id of the error */
} longs[] = {{"'id':7,", "7"}, {"", "null"}};

/* No worker gets it: nothing says that it was accepted. */
TEST_ROWS(http_rpc_message_over_max_message_gets_413, COUNT(longs))
{
    struct daemon *daemon =
        START(.mode = SETUP_HTTP, .limits = "'max_message':100000,'max_input_buffer':50000",
              .pools = "{'id':'a','command':'@WORKER@','instances':1,'protocol':'mcp'}");
    struct http *http = http_connect(daemon);
    post(http, "/rpc/a",
         test_format("{'jsonrpc':'2.0',%s'method':'echo','params':'%s'}", longs[row].id,
                     test_fill('x', 150000)));
    message_error(http_expect(http, 413), longs[row].answered, -32600,
                  "longer than max_message (100000 bytes)");
    ask(http, "/rpc/a", ECHO("1"), "1");
}

/* The answers of a batch come in any order. */
TEST(http_rpc_array_has_an_array)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    struct json_cursor cursor;
    struct span key, value;
    long sum = 0;
    int count = 0;
    post(http, "/rpc/a",
         "[" ECHO("1") ",{'method':'n'}, " ECHO("2") "," ECHO("4") ",{'id':8,'method':'fail'}]");
    json_open(&cursor, http_expect(http, 200));
    for (; json_next(&cursor, &key, &value); count++)
        sum += json_number(value, "id");
    ck_assert_int_eq(count, 4);
    ck_assert_int_eq(sum, 15);
    post(http, "/rpc/a", "[{'method':'n'},{'method':'n'}]");
    ck_assert_uint_eq(http_expect(http, 202).len, 0);
    ask(http, "/rpc/a", ECHO("1"), "1");
}

TEST(http_rpc_timeout_gets_504)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    post(http, "/rpc/b?timeout=1", "{'id':1,'method':'no_answer'}");
    message_error(http_expect(http, 504), "1", -32001, "timed out");
    post(http, "/rpc/b?timeout=4", "[{'id':2,'method':'no_answer'}," ECHO("3") "]");
    struct span answers = http_expect(http, 200);
    ck_assert_int_eq(json_number(answers, "0.id"), 3);
    ck_assert_int_eq(json_number(answers, "1.error.code"), -32001);
    post(http, "/rpc/b?timeout=1", ECHO("2")); /* its id is not free: another worker has none */
    message_error(http_expect(http, 504), "2", -32001, "timed out");
}

TEST(http_rpc_request_gets_an_error_when_its_worker_dies)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon);
    post(http, "/rpc/b", "{'id':1,'method':'die','params':{'code':1}}");
    message_error(http_expect(http, 200), "1", -32000, DIED);
    ask(http, "/rpc/b", ECHO("1"), "1");
}

/* Its id is taken until the late answer has come. */
TEST(http_rpc_client_that_leaves_gives_its_request_up)
{
    struct daemon *daemon = START(POOLS);
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    post(a, "/rpc/b", "{'id':1,'method':'hold'}");
    http_expect(a, 200);
    post(a, "/rpc/b", ECHO("2"));
    client_abort(a->client);
    daemon_wait_log(daemon, "disconnected");
    post(b, "/rpc/b", "{'id':3,'method':'release'}");
    message_result(http_expect(b, 200), "3");
    ask(b, "/rpc/b", ECHO("2"), "2");
}

/* The same where its next request waits behind that one, unread. */
TEST(http_rpc_client_that_leaves_with_two_requests_gives_them_up)
{
    struct daemon *daemon = START(POOLS);
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    post(a, "/rpc/b", "{'id':1,'method':'no_answer'}");
    post(a, "/rpc/b", ECHO("2"));
    ask(b, "/rpc/b", ECHO("3"), "3");
    client_abort(a->client);
    daemon_wait_log(daemon, "disconnected");
}

/* Its other members are in flight: their answers are for no later request. */
TEST(http_rpc_member_that_is_unacceptable_ends_the_connection)
{
    struct daemon *daemon = START(POOLS);
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    ask(other, "/rpc/b", "{'jsonrpc':'2.0','id':1,'method':'hold'}", "1");
    post(http, "/rpc/b", "[" ECHO("2") ",{'jsonrpc':'2.0','id':[3],'method':'echo'}]");
    message_error(http_expect(http, 400), "null", -32600, "id");
    ck_assert(span_is(http_field(http, "Connection"), "close"));
    ask(other, "/rpc/b", "{'jsonrpc':'2.0','id':4,'method':'release'}", "4");
    client_expect_eof(http->client);
}
