/* stdio_bus(1), "Servers with a URL": --connect http://, the client side of Streamable HTTP. */
#include "build_config.h"

#include "harness.h"
#include "joined.h"
#include "setup.h"

static struct web_server *server;
static struct joined joined; /* to it */

static void join(void)
{
    server = web_start();
    joined = joined_to(server);
}

FIXTURE(join, NULL)

/* The handshake in a session of this name. The server has no stream of its own. */
static void shake_hands(const char *session)
{
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    web_answer(request, "200 OK", test_format("Mcp-Session-Id: %s\r\n", session), WELCOME);
    client_expect(joined.client, WELCOME);
    client_send(joined.client, INITIALIZED);
    web_answer(web_next(server, "POST /mcp", "initialized"), "202 Accepted", "", "%s", "");
    web_answer(web_next(server, "GET /mcp", NULL), "405 Method Not Allowed", "", "%s", "");
}

/* Ends the input: the session is ended, and the process. */
static void part(const char *session)
{
    struct web_request *request;
    client_half_close(joined.client);
    request = web_next(server, "DELETE /mcp", NULL);
    web_expect_field(request, "Mcp-Session-Id", session);
    web_answer(request, "204 No Content", "", "%s", "");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* --- the handshake era --- */

TEST(connect_http_speaks_for_a_session)
{
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    web_expect_field(request, "Host", test_format("127.0.0.1:%u", server->port));
    web_expect_field(request, "Content-Type", "application/json");
    web_expect_field(request, "Accept", "application/json, text/event-stream");
    web_expect_field(request, "Mcp-Session-Id", NULL);
    web_expect_field(request, "MCP-Protocol-Version", NULL);
    web_expect_field(request, "Authorization", NULL);
    web_answer(request, "200 OK", "mcp-session-id:  s:1 \r\n", WELCOME);
    client_expect(joined.client, WELCOME);
    client_send(joined.client, INITIALIZED);
    joined_ask(&joined, 1);
    request = web_next(server, "POST /mcp", "initialized"); /* before the request */
    web_expect_field(request, "Mcp-Session-Id", "s:1");
    web_expect_field(request, "MCP-Protocol-Version", "2025-11-25");
    web_expect_field(request, "Mcp-Method", NULL);
    web_answer(request, "202 Accepted", "", "%s", "");
    request = web_next(server, "GET /mcp", NULL);
    web_expect_field(request, "Accept", "text/event-stream");
    web_expect_field(request, "Mcp-Session-Id", "s:1");
    web_expect_field(request, "Last-Event-ID", NULL);
    web_answer(request, "405 Method Not Allowed", "", "%s", "");
    request = joined_asked(server, 1);
    web_expect_field(request, "Mcp-Session-Id", "s:1");
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    part("s:1");
}

/* A server without sessions. */
TEST(connect_http_without_a_session)
{
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    web_answer(web_next(server, "POST /mcp", NULL), "200 OK", "", WELCOME);
    client_expect(joined.client, WELCOME);
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_expect_field(request, "Mcp-Session-Id", NULL);
    web_expect_field(request, "MCP-Protocol-Version", "2025-11-25");
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client); /* nothing to be ended */
    joined_expect_status(&joined, 0);
}

/* A response is a stream: what belongs to the request comes before the answer. In chunks that end
 * anywhere. */
TEST_ROWS(connect_http_takes_streams, 4)
{
    static const char stream[] = ": hello\r\n\r\n"
                                 "event: message\r\ndata: {\"method\":\"a\"}\r\n\r\n"
                                 "event: other\r\ndata: no message\r\n\r\n"
                                 "data: {\"method\":\r\ndata: \"b\"}\r\n\r\n"
                                 "data: {\"id\":1,\"result\":{}}\r\n\r\n";
    static const size_t pieces[] = {1, 2, 7, 1000};
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_stream(request, "");
    for (size_t at = 0; at < sizeof stream - 1; at += pieces[row]) {
        size_t len = sizeof stream - 1 - at;
        if (len > pieces[row])
            len = pieces[row];
        /* The end comes with the last piece: the connection is free before the answer is read. */
        web_send(request, "%zx;x=y\r\n%.*s\r\n%s", len, (int)len, stream + at,
                 at + len < sizeof stream - 1 ? "" : "0\r\n\r\n");
    }
    client_expect(joined.client, "{'method':'a'}");
    client_expect(joined.client, "{'method': 'b'}");
    client_expect(joined.client, "{'id':1,'result':{}}");
    joined_ask(&joined, 2);
    request = joined_asked(server, 2);
    ck_assert_uint_eq(request->peer, 0); /* the connection is kept */
    joined_answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

TEST(connect_http_has_a_stream_of_the_server)
{
    struct web_request *stream, *request;
    client_send(joined.client, INITIALIZE);
    web_answer(web_next(server, "POST /mcp", NULL), "200 OK", "Mcp-Session-Id: s\r\n", WELCOME);
    client_expect(joined.client, WELCOME);
    client_send(joined.client, INITIALIZED);
    web_answer(web_next(server, "POST /mcp", NULL), "202 Accepted", "", "%s", "");
    stream = web_next(server, "GET /mcp", NULL);
    web_stream(stream, "");
    web_event(stream, "1-1", "{'method':'changed'}");
    client_expect(joined.client, "{'method':'changed'}");
    web_event(stream, "1-2", "{'id':'q','method':'ping'}");
    client_expect(joined.client, "{'id':'q','method':'ping'}");
    client_send(joined.client, "{'id':'q','result':{}}");
    request = web_next(server, "POST /mcp", "{'id':'q','result':{}}");
    web_expect_field(request, "Mcp-Session-Id", "s");
    web_answer(request, "202 Accepted", "", "%s", "");
    web_cut(stream); /* and it is continued */
    stream = web_next(server, "GET /mcp", NULL);
    web_expect_field(stream, "Last-Event-ID", "1-2");
    web_stream(stream, "");
    web_event(stream, "1-3", "{'method':'missed'}");
    client_expect(joined.client, "{'method':'missed'}");
    part("s");
}

/* --- streams that are cut --- */

TEST_ROWS(connect_http_continues_a_stream, 2)
{
    struct web_request *request;
    shake_hands("s");
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_stream(request, "");
    web_send(request, "1f\r\nid: 1-1\nretry: 10\ndata: \n\nid: \n\r\n"); /* the last is no event */
    web_event(request, "1-2", "{'method':'before'}");
    client_expect(joined.client, "{'method':'before'}");
    if (row == 0)
        web_cut(request);
    else
        web_stream_end(request);
    request = web_next(server, "GET /mcp", NULL);
    web_expect_field(request, "Last-Event-ID", "1-2");
    web_expect_field(request, "Mcp-Session-Id", "s");
    web_cut(request); /* once more */
    request = web_next(server, "GET /mcp", NULL);
    web_expect_field(request, "Last-Event-ID", "1-2");
    web_stream(request, "");
    web_event(request, "1-3", "{'method':'after'}");
    web_event(request, "1-4", "{'id':1,'result':{}}");
    client_expect(joined.client, "{'method':'after'}");
    client_expect(joined.client, "{'id':1,'result':{}}");
    web_stream_end(request);
    part("s");
}

/* It is not sent again: the server may have done what it asks for. */
TEST_ROWS(connect_http_reports_a_cut, 4)
{
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    if (row == 1) {
        web_stream(request, "");
        web_event(request, NULL, "{'method':'before'}");
        client_expect(joined.client, "{'method':'before'}");
    } else if (row == 2) {
        web_send(request, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 50\r\n\r\n{\"id\":1");
    } else if (row == 3) {
        web_stream(request, "");
        web_stream_end(request);
        client_error(joined.client, "1", -32000, "has no answer to the request");
        return;
    }
    web_cut(request);
    client_error(joined.client, "1", -32000, "the server closed the connection");
    joined_ask(&joined, 2);
    request = joined_asked(server, 2);
    joined_answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

/* --- a session that the server has forgotten --- */

static const char *const forgotten[] = {"404 Not Found", "400 Bad Request"};

#define GONE "{'jsonrpc':'2.0','error':{'code':-32001,'message':'gone'},'id':null}"

TEST_ROWS(connect_http_begins_a_new_session, 2)
{
    struct web_request *one, *other;
    shake_hands("old");
    joined_ask(&joined, 1);
    one = joined_asked(server, 1);
    joined_ask(&joined, 2);
    other = joined_asked(server, 2);
    web_answer(one, forgotten[row], "", GONE);
    one = web_next(server, "POST /mcp", "'initialize'");
    web_expect_field(one, "Mcp-Session-Id", NULL);
    web_answer(other, forgotten[row], "", GONE);
    web_answer(one, "200 OK", "Mcp-Session-Id: new\r\n", WELCOME);
    one = web_next(server, "POST /mcp", "initialized");
    web_expect_field(one, "Mcp-Session-Id", "new");
    web_answer(one, "202 Accepted", "", "%s", "");
    for (int i = 0, id; i < 3; i++) { /* both requests and the stream, in any order */
        one = web_next_any(server);
        web_expect_field(one, "Mcp-Session-Id", "new");
        if (strncmp(one->head.data, "GET ", 4) == 0) {
            web_answer(one, "405 Method Not Allowed", "", "%s", "");
            continue;
        }
        id = (int)json_number(span_of(one->body.data), "id");
        joined_answer(one, id);
        client_expect(joined.client, ANSWER, id); /* and nothing of the handshake */
    }
    part("new");
}

TEST_ROWS(connect_http_without_a_new_session, 3)
{
    struct web_request *request;
    shake_hands("old");
    joined_ask(&joined, 1);
    web_answer(joined_asked(server, 1), "404 Not Found", "", "%s", "");
    request = web_next(server, "POST /mcp", "'initialize'");
    if (row == 0)
        web_answer(request, "200 OK", "", "{'id':0,'result':{'protocolVersion':'2025-06-18'}}");
    else if (row == 1)
        web_answer(request, "200 OK", "", "{'id':0,'error':{'code':1,'message':'no'}}");
    else
        web_answer(request, "503 Service Unavailable", "", "%s", "");
    client_error(joined.client, "1", -32000,
                 row == 0   ? "another protocol version"
                 : row == 1 ? "refuses a new one"
                            : "503 Service Unavailable");
}

/* --- order, and several at once --- */

enum { MANY = 100 };

TEST(connect_http_has_many_in_flight)
{
    struct web_request *requests[MANY];
    for (int id = 0; id < MANY; id++)
        joined_ask(&joined, id);
    for (int i = 0; i < MANY; i++)
        requests[i] = web_next(server, "POST /mcp", NULL);
    joined_ask(&joined, 1000);
    client_error(joined.client, "1000", -32000, "100 requests are in flight");
    client_send(joined.client, "{'id':5,'method':'twice'}");
    client_error(joined.client, "5", -32600, "in flight");
    for (int i = MANY - 1; i >= 0; i--) {
        int id = (int)json_number(span_of(requests[i]->body.data), "id");
        joined_answer(requests[i], id);
        client_expect(joined.client, ANSWER, id);
    }
    joined_ask(&joined, 1001);
    joined_answer(joined_asked(server, 1001), 1001);
    client_expect(joined.client, ANSWER, 1001);
}

TEST(connect_http_sends_notifications_in_order)
{
    struct web_request *request;
    for (int i = 0; i < 3; i++)
        client_send(joined.client, "{'method':'n%d'}", i);
    joined_ask(&joined, 1);
    for (int i = 0; i < 3; i++) {
        request = web_next(server, "POST /mcp", test_format("'n%d'", i));
        ck_assert_uint_eq(request->peer, 0); /* one after the other */
        web_answer(request, "202 Accepted", "", "%s", "");
    }
    joined_answer(joined_asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
}

/* Whatever comes for it, and whenever, the program gets none of it. */
TEST_ROWS(connect_http_cancels_in_the_session, 6)
{
    struct web_request *request, *notice;
    shake_hands("s");
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    client_send(joined.client,
                "{'method':'notifications/cancelled','params':{'requestId':1,'reason':'r'}}");
    notice = web_next(server, "POST /mcp", "cancelled");
    if (row == 0) /* before the server has taken it, too */
        web_answer(notice, "202 Accepted", "", "%s", "");
    switch (row / 2) {
    case 0:
        joined_answer(request, 1);
        break;
    case 1:
        web_answer(request, "500 Internal Server Error", "", "%s", "");
        break;
    default:
        web_cut(request);
        break;
    }
    client_send(joined.client, "{'jsonrpc':'2.0','id':1,'method':'ping'}"); /* its id is free */
    if (row != 0)
        web_answer(notice, "202 Accepted", "", "%s", "");
    joined_answer(web_next(server, "POST /mcp", "ping"), 1);
    client_expect(joined.client, ANSWER, 1);
    part("s");
}

/* Official clients leave the stream of such a request open; some servers take its end for that of
 * their client. */
TEST(connect_http_leaves_the_stream_of_a_cancelled_request_open)
{
    struct web_request *request;
    shake_hands("s");
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_stream(request, "");
    web_event(request, "e1", "{'method':'a'}");
    client_expect(joined.client, "{'method':'a'}");
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    web_answer(web_next(server, "POST /mcp", "cancelled"), "202 Accepted", "", "%s", "");
    joined_ask(&joined, 2);
    joined_answer(joined_asked(server, 2), 2);
    client_expect(joined.client, ANSWER, 2);
    web_event(request, "e2", "{'method':'b'}"); /* it is read still */
    client_expect(joined.client, "{'method':'b'}");
    web_event(request, "e3", "{'jsonrpc':'2.0','id':1,'result':{}}");
    web_stream_end(request);
    joined_ask(&joined, 3);
    joined_answer(joined_asked(server, 3), 3);
    client_expect(joined.client, ANSWER, 3); /* nothing in between, and no GET */
    part("s");
}

/* --- the stateless era --- */

#define META "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"

static const struct {
    const char *method, *params, *name;
} stateless[] = {
    {"tools/list", "", NULL},
    {"tools/call", "'name':'a tool','arguments':{'name':'other'},", "a tool"},
    {"tools/call", "'name':'\\u00e9',", "=?base64?w6k=?="},
    {"tools/call", "'name':' a',", "=?base64?IGE=?="},
    {"tools/call", "'name':'=?base64?YQ==?=',", "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
    {"tools/call", "'name':7,", NULL},
    {"prompts/get", "'name':'p',", "p"},
    {"resources/read", "'name':'n','uri':'file:///a',", "file:///a"},
    {"tasks/get", "'taskId':'t-1',", "t-1"},
    {"custom/call", "'name':'n',", NULL},
};

TEST_ROWS(connect_http_writes_stateless_headers, COUNT(stateless))
{
    struct web_request *request;
    client_send(joined.client, "{'id':1,'method':'%s','params':{%s" META "}}",
                stateless[row].method, stateless[row].params);
    request = web_next(server, "POST /mcp", "'id':1");
    web_expect_field(request, "MCP-Protocol-Version", "2026-07-28");
    web_expect_field(request, "Mcp-Method", stateless[row].method);
    web_expect_field(request, "Mcp-Name", stateless[row].name);
    web_expect_field(request, "Mcp-Session-Id", NULL);
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* The end of the stream is the cancellation: nothing is sent. */
TEST(connect_http_cancels_without_a_session)
{
    struct web_request *request;
    client_send(joined.client, "{'id':1,'method':'tools/call','params':{'name':'n'," META "}}");
    request = web_next(server, "POST /mcp", NULL);
    web_stream(request, "");
    web_event(request, NULL, "{'method':'before'}");
    client_expect(joined.client, "{'method':'before'}");
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    web_wait_gone(request);
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    joined_ask(&joined, 2);
    joined_answer(joined_asked(server, 2), 2);
    client_expect(joined.client, ANSWER, 2);
}

/* A subscription is open until the end of the input. */
TEST(connect_http_ends_subscriptions)
{
    struct web_request *request;
    client_send(joined.client,
                "{'id':'listen:0','method':'subscriptions/listen','params':{" META "}}");
    request = web_next(server, "POST /mcp", NULL);
    web_stream(request, "");
    web_event(request, NULL, "{'method':'changed'}");
    client_expect(joined.client, "{'method':'changed'}");
    client_half_close(joined.client);
    web_wait_gone(request);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* --- connections --- */

TEST(connect_http_keeps_connections)
{
    for (int id = 0; id < 4; id++) {
        struct web_request *request;
        joined_ask(&joined, id);
        request = joined_asked(server, id);
        ck_assert_uint_eq(request->peer, id < 3 ? 0 : 1);
        web_answer(request, "200 OK", id == 2 ? "Connection: close\r\n" : "", ANSWER, id);
        client_expect(joined.client, ANSWER, id);
    }
}

/* One that the server closes while nothing is asked is not used again. */
TEST(connect_http_leaves_closed_connections)
{
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    shutdown(server->peers[request->peer].fd, SHUT_WR);
    web_wait_gone(request);
    joined_ask(&joined, 2);
    request = joined_asked(server, 2);
    ck_assert_uint_eq(request->peer, 1);
    joined_answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

enum { LONG = 20000000 };

TEST(connect_http_carries_long_messages)
{
    struct web_request *request;
    struct span line;
    const char *fill = test_fill('x', LONG);
    pid_t writer = fork(); /* the pipe is shorter */
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        client_send(joined.client, "{'id':1,'method':'m','params':{'fill':'%s'}}", fill);
        _exit(0);
    }
    request = joined_asked(server, 1);
    ck_assert_uint_gt(request->body.len, LONG);
    waitpid(writer, NULL, 0);
    joined_ask(&joined, 2);
    joined_answer(joined_asked(server, 2), 2);
    client_expect(joined.client, ANSWER, 2);
    writer = fork();
    if (writer == 0) {
        web_answer(request, "200 OK", "", "{'id':1,'result':'%s'}", fill);
        _exit(0);
    }
    line = client_line(joined.client);
    ck_assert_uint_eq(line.len, LONG + strlen("{'id':1,'result':''}"));
    waitpid(writer, NULL, 0);
}

/* --- the ends --- */

TEST(connect_http_answers_what_is_in_flight)
{
    struct web_request *request;
    shake_hands("s");
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    client_half_close(joined.client);
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    web_answer(web_next(server, "DELETE /mcp", NULL), "405 Method Not Allowed", "", "%s", "");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

TEST(connect_http_ends_the_session_at_a_signal)
{
    shake_hands("s");
    joined_ask(&joined, 1);
    joined_asked(server, 1);
    ck_assert_int_eq(kill(joined.pid, SIGTERM), 0);
    web_answer(web_next(server, "DELETE /mcp", NULL), "204 No Content", "", "%s", "");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

TEST(connect_http_with_malformed_input)
{
    client_send(joined.client, "nonsense");
    client_error(joined.client, "null", -32700, "");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 65);
}

TEST(connect_http_with_a_closed_stdout)
{
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    close(joined.client->in);
    joined.client->in = -1;
    joined_answer(request, 1);
    joined_expect_status(&joined, 74);
}

/* The program has left: no answer is waited for. */
TEST(connect_http_with_both_pipes_closed)
{
    joined_ask(&joined, 1);
    joined_asked(server, 1);
    client_half_close(joined.client);
    close(joined.client->in);
    joined.client->in = -1;
    joined_expect_status(&joined, 74);
}

/* A program that does not read holds the server, not memory. */
TEST(connect_http_with_a_slow_program)
{
    struct web_request *request;
    const char *event = test_format("data: {\"method\":\"m\",\"params\":\"%s\"}\n\n",
                                    test_fill('x', 100000));
    size_t len = strlen(event), sent = 0, kept;
    int fd;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_send(request, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    fd = server->peers[request->peer].fd;
    for (int64_t quiet = now_ms() + 500; now_ms() < quiet && sent < 100000000;) {
        size_t at = sent % len;
        ssize_t n = send(fd, event + at, len - at, MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            quiet = now_ms() + 500;
        } else {
            nap();
        }
    }
    ck_assert_uint_lt(sent, 60000000);
    kept = sent / len;
    for (size_t i = 0; i < kept; i++)
        client_line(joined.client);
}
