/* MCP over HTTP, handshake era: sessions (protocol.md, "HTTP"). */
#include "build_config.h"

#include "harness.h"

#define MCP_POOL(keys)                                                                             \
    .mode = SETUP_HTTP,                                                                            \
    .pools = "{'id':'p','command':'@WORKER@','instances':4,'protocol':'mcp'" keys "}"

#define INITIALIZE "{'jsonrpc':'2.0','id':1,'method':'initialize'}"

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

static void expect_error(struct http *http, int status, const char *id, int code, const char *word)
{
    message_error(http_expect(http, status), id, code, word);
}

TEST(http_session_begins_with_initialize)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    http_post(http, NULL, INITIALIZE);
    message_result(http_expect(http, 200), "1");
    struct span id = http_field(http, "Mcp-Session-Id");
    ck_assert_uint_eq(id.len, 32);
    ck_assert(span_is(http_field(http, "Content-Type"), "application/json"));
    ck_assert_ptr_nonnull(http_field(http, "Date").data);
    const char *session = test_format("%.*s", (int)id.len, id.data);
    http_post(http, session, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    ck_assert_uint_eq(http_expect(http, 202).len, 0);
    http_post(http, session, ECHO("'a'"));
    message_result(http_expect(http, 200), "\"a\"");
    ck_assert_ptr_null(http_field(http, "Mcp-Session-Id").data);
}

/* Each session has a process of its own, whatever connection its requests come on. */
TEST(http_sessions_have_a_process_each)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *first = http_session(a), *second = http_session(a);
    long pids[2];
    ck_assert_str_ne(first, second);
    http_post(a, first, ECHO("1"));
    pids[0] = json_number(message_result(http_expect(a, 200), "1"), "pid");
    http_post(b, second, ECHO("1"));
    pids[1] = json_number(message_result(http_expect(b, 200), "1"), "pid");
    ck_assert_int_ne(pids[0], pids[1]);
    http_post(b, first, ECHO("1"));
    ck_assert_int_eq(json_number(message_result(http_expect(b, 200), "1"), "pid"), pids[0]);
}

TEST(http_session_that_is_refused_does_not_begin)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    http_post(http, NULL, "{'jsonrpc':'2.0','id':1,'method':'initialize','result':1}");
    expect_error(http, 200, "1", -32600, "");
    ck_assert_ptr_null(http_field(http, "Mcp-Session-Id").data);
    daemon_wait_log(daemon, "session ended: initialize was refused");
}

static const struct {
    const char *method, *fields, *body;
    int status;
    const char *word;
} wrongs[] = {
    {"POST", HTTP_POST_FIELDS, ECHO("1"), 400, "Mcp-Session-Id is missing"},
    {"POST", HTTP_POST_FIELDS "Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\n", ECHO("1"),
     404, "no such session"},
    {"POST", HTTP_POST_FIELDS "Mcp-Session-Id: short\r\n", ECHO("1"), 404, "no such session"},
    {"POST", HTTP_POST_FIELDS "MCP-Protocol-Version: 1999-01-01\r\n", INITIALIZE, 400,
     "not supported"},
    {"POST", HTTP_BOTH "Content-Type: text/plain\r\n", INITIALIZE, 415, "Content-Type"},
    {"POST", HTTP_BOTH, INITIALIZE, 415, "Content-Type"},
    {"POST", HTTP_JSON "Accept: text/html\r\n", INITIALIZE, 406, "Accept"},
    {"POST", HTTP_POST_FIELDS, "", 400, "without a body"},
    {"POST", HTTP_POST_FIELDS, "{'id':", 400, ""},
    {"POST", HTTP_POST_FIELDS, "[]", 400, ""},
    {"POST", HTTP_POST_FIELDS, "{'id':true,'method':'initialize'}", 400, "id must be"},
    {"GET", "Accept: text/event-stream\r\n", NULL, 405, ""},
    {"DELETE", "", NULL, 405, ""},
    {"DELETE", "Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\n", NULL, 404, ""},
    {"PUT", "", "{}", 405, ""},
};

/* A request that is refused does not end its connection. */
TEST_ROWS(http_wrong_request_gets_its_status, COUNT(wrongs))
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    http_send(http, wrongs[row].method, "/mcp", wrongs[row].fields, wrongs[row].body);
    struct span body = http_expect(http, wrongs[row].status);
    expect_word(test_format("%.*s", (int)body.len, body.data), wrongs[row].word);
    if (wrongs[row].status == 405)
        ck_assert_ptr_nonnull(http_field(http, "Allow").data);
    http_session(http);
}

TEST(http_session_ends_by_delete)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_send(http, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", session), NULL);
    http_expect(http, 204);
    ck_assert_ptr_null(http_field(http, "Content-Length").data);
    http_post(http, session, ECHO("1"));
    expect_error(http, 404, "null", -32000, "no such session");
    daemon_wait_log(daemon, "session ended: its client has deleted it");
}

TEST(http_session_ends_when_it_is_idle)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'session_idle_sec':1");
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    daemon_wait_log(daemon, "session ended: nothing came for session_idle_sec");
    http_post(http, session, ECHO("1"));
    expect_error(http, 404, "null", -32000, "no such session");
}

/* A stream, or a request in flight, keeps it. */
TEST_ROWS(http_session_in_use_is_not_idle, 2)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'session_idle_sec':2");
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    const char *session = http_session(http);
    int64_t start = now_ms();
    if (row == 0)
        http_send(http, "GET", "/mcp",
                  test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n", session),
                  NULL);
    else
        http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'no_answer'}");
    http_session(other);
    daemon_wait_log(daemon, "session ended: nothing came"); /* the other one */
    WAIT_UNTIL(now_ms() - start >= 4500, "time stands still");
    http_post(other, session, ECHO("2"));
    message_result(http_expect(other, 200), "2");
}

TEST(http_requests_of_a_session_are_answered_in_any_order)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon), *c = http_connect(daemon);
    const char *session = http_session(a);
    http_post(a, session, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
    message_result(http_expect(a, 200), "1");
    http_post(a, session, ECHO("2"));
    http_post(b, session, ECHO("3"));
    http_post(c, session, "{'jsonrpc':'2.0','id':4,'method':'release','params':{'reverse':true}}");
    message_result(http_expect(c, 200), "4");
    message_result(http_expect(b, 200), "3");
    message_result(http_expect(a, 200), "2");
}

TEST(http_id_in_flight_is_refused)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'max_session_requests':1");
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    http_post(a, session,
              "{'jsonrpc':'2.0','id':1,'method':'say_only','params':{'message':"
              "{'jsonrpc':'2.0','method':'notifications/message'}}}");
    ck_assert_int_eq(http_status(a), 200); /* it was said: the first one is in flight */
    http_post(b, session, ECHO("2"));
    expect_error(b, 429, "2", -32000, "too many requests");
    ck_assert(span_is(http_field(b, "Retry-After"), "5"));
    http_post(b, session, ECHO("1"));
    expect_error(b, 400, "1", -32600, "in flight");
}

/* A session counts as a connection does. */
TEST(http_session_over_the_limit_is_refused)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'max_connections':2");
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, NULL, INITIALIZE);
    expect_error(http, 503, "1", -32000, "max_connections");
    ck_assert(span_is(http_field(http, "Retry-After"), "5"));
    http_send(http, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", session), NULL);
    http_expect(http, 204);
    http_session(http);
}

/* The answers to requests that follow one another at once come in their order. */
TEST(http_pipelined_requests_are_answered_in_turn)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    for (int i = 0; i < 20; i++)
        http_post(http, session, ECHO("%d"), i);
    for (int i = 0; i < 20; i++)
        message_result(http_expect(http, 200), test_format("%d", i));
}

TEST(http_connection_closes_where_the_client_asks)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    http_send(http, "POST", "/mcp", HTTP_POST_FIELDS "Connection: close\r\n", INITIALIZE);
    message_result(http_expect(http, 200), "1");
    ck_assert(span_is(http_field(http, "Connection"), "close"));
    client_expect_eof(http->client);
}

TEST(http_long_messages_pass_both_ways)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http), *filling = test_fill('y', 3 << 20);
    http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'length','params':'%s'}", filling);
    ck_assert_int_gt(json_long(message_result(http_expect(http, 200), "1"), 0), 3 << 20);
    http_post(http, session, "{'jsonrpc':'2.0','id':2,'method':'big','params':{'size':5000000}}");
    ck_assert_uint_ge(message_result(http_expect(http, 200), "2").len, 5000000);
}

/* --- tokens --- */

static void write_tokens(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fchmod(fileno(file), 0600), 0);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static const char *fields_with(const char *token, const char *session)
{
    return test_format(HTTP_POST_FIELDS "Authorization: Bearer %s\r\n%s%s%s", token,
                       session != NULL ? "Mcp-Session-Id: " : "", session != NULL ? session : "",
                       session != NULL ? "\r\n" : "");
}

/* It ends with it, too. */
TEST(http_session_belongs_to_its_token)
{
    const char *path = test_format("%s/tokens", test_dir());
    write_tokens(path, "ann:one\nbob:two\n");
    struct daemon *daemon = START(MCP_POOL(""),
                                  .members = test_format("'listen':{'token_file':'%s'}", path));
    struct http *http = http_connect(daemon);
    http_send(http, "POST", "/mcp", fields_with("one", NULL), INITIALIZE);
    http_expect(http, 200);
    struct span id = http_field(http, "Mcp-Session-Id");
    const char *session = test_format("%.*s", (int)id.len, id.data);
    http_send(http, "POST", "/mcp", fields_with("two", session), ECHO("1"));
    expect_error(http, 404, "null", -32000, "no such session");
    http_send(http, "POST", "/mcp", fields_with("one", session), ECHO("1"));
    message_result(http_expect(http, 200), "1");
    write_tokens(path, "bob:two\ncarl:three\n");
    daemon_signal(daemon, SIGUSR1);
    daemon_wait_log(daemon, "session ended: its token is no longer valid");
}

/* --- workers that end --- */

TEST(http_request_gets_an_error_when_its_worker_dies)
{
    struct daemon *daemon = START(MCP_POOL(",'on_worker_exit':'close'"));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'die','params':{'code':1}}");
    expect_error(http, 200, "1", -32000, DIED);
    daemon_wait_log(daemon, "session ended");
    http_post(http, session, ECHO("2"));
    expect_error(http, 404, "null", -32000, "no such session");
}

/* The next process gets the handshake again. */
TEST(http_session_outlives_its_worker)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'die','params':{'code':1}}");
    expect_error(http, 200, "1", -32000, DIED);
    http_post(http, session, "{'jsonrpc':'2.0','id':2,'method':'heard'}");
    struct span heard = message_result(http_expect(http, 200), "2");
    expect_word(test_format("%.*s", (int)heard.len, heard.data),
                "initialize,notifications/initialized");
}

/* In strict mode, too, HTTP demands an answer. */
TEST(http_strict_daemon_answers_nevertheless)
{
    struct daemon *daemon = START(MCP_POOL(""), .members = "'strict':true");
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'die','params':{'code':1}}");
    expect_error(http, 200, "1", -32000, DIED);
}

TEST(http_shutdown_answers_what_is_open)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon), *c = http_connect(daemon);
    const char *session = http_session(a);
    http_send(b, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n", session), NULL);
    ck_assert_int_eq(http_status(b), 200);
    http_post(a, session, "{'jsonrpc':'2.0','id':1,'method':'no_answer'}");
    http_post(c, session, ECHO("2"));
    http_expect(c, 200);
    daemon_signal(daemon, SIGTERM);
    expect_error(a, 200, "1", -32000, "");
    while (!b->over)
        http_body(b);
    daemon_stop(daemon);
}

/* --- clients that leave --- */

TEST(http_clients_may_leave_at_any_moment)
{
    static const char request[] = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" HTTP_POST_FIELDS
                                  "Content-Length: 43\r\n\r\n"
                                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}";
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'session_idle_sec':1");
    for (size_t len = 0; len < sizeof request; len += 7) {
        struct client *client = client_connect(daemon);
        client_send_bytes(client, request, len);
        if (len % 2 == 0)
            client_abort(client);
        else
            client_close(client);
    }
    http_session(http_connect(daemon));
}

/* A request whose client leaves continues; the answer to it has no reader. */
TEST(http_answer_without_a_reader_is_dropped)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    http_post(a, session, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
    message_result(http_expect(a, 200), "1");
    http_post(a, session, ECHO("2"));
    client_abort(a->client);
    http_post(b, session, "{'jsonrpc':'2.0','id':3,'method':'release'}");
    message_result(http_expect(b, 200), "3");
    http_post(b, session, ECHO("2")); /* its id is free */
    message_result(http_expect(b, 200), "2");
}
