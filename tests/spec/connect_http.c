/* stdio_bus(1), "Servers with a URL": --connect http://, the client side of Streamable HTTP. */
#include "build_config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "setup.h"
#include "web_server.h"

struct joined { /* a process of --connect, and the program on its stdin and stdout */
    pid_t pid;
    struct client *client;
    const char *log; /* the path of what it writes to stderr */
};

static struct joined join_with(const char *url, const char *const *words)
{
    struct joined joined;
    struct command command;
    int in[2], out[2], log;
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    joined.log = test_format("%s/log", test_dir());
    log = open(joined.log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    connect_command(url, words, &command);
    joined.pid = fork();
    ck_assert_int_ge(joined.pid, 0);
    if (joined.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        execvp(command.words[0], command.words);
        _exit(127);
    }
    command_free(&command);
    close(in[0]);
    close(out[1]);
    close(log);
    joined.client = client_adopt(out[0], in[1]);
    return joined;
}

/* With further words of the command line. */
#define JOIN(url, ...) join_with(url, (const char *const[]){__VA_ARGS__, NULL})

static struct joined join(const struct web_server *server)
{
    return JOIN(web_url(server, "/mcp"), NULL);
}

static void expect_status(const struct joined *joined, int expected)
{
    int status = 0;
    pid_t reaped;
    WAIT_UNTIL((reaped = waitpid(joined->pid, &status, WNOHANG)) != 0, "--connect does not exit");
    ck_assert_int_eq(reaped, joined->pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

static void expect_field(const struct web_request *request, const char *name, const char *value)
{
    const char *found = web_field(request, name);
    if (value == NULL)
        ck_assert_msg(found == NULL, "%s: %s", name, found);
    else
        ck_assert_msg(found != NULL && strcmp(found, value) == 0, "%s: %s, not %s", name,
                      found != NULL ? found : "(none)", value);
}

#define INITIALIZE                                                                                 \
    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'}}"
#define WELCOME "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-11-25'}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define JSON "Content-Type: application/json\r\n"

/* The handshake in a session of this name. The server has no stream of its own. */
static void shake_hands(struct web_server *server, const struct joined *joined, const char *session)
{
    struct web_request *request;
    client_send(joined->client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    web_answer(request, "200 OK", test_format("Mcp-Session-Id: %s\r\n", session), WELCOME);
    client_expect(joined->client, WELCOME);
    client_send(joined->client, INITIALIZED);
    web_answer(web_next(server, "POST /mcp", "initialized"), "202 Accepted", "", "%s", "");
    web_answer(web_next(server, "GET /mcp", NULL), "405 Method Not Allowed", "", "%s", "");
}

/* Ends the input: the session is ended, and the process. */
static void part(struct web_server *server, const struct joined *joined, const char *session)
{
    struct web_request *request;
    client_half_close(joined->client);
    request = web_next(server, "DELETE /mcp", NULL);
    expect_field(request, "Mcp-Session-Id", session);
    web_answer(request, "204 No Content", "", "%s", "");
    client_expect_eof(joined->client);
    expect_status(joined, 0);
}

static void ask(const struct joined *joined, int id)
{
    client_send(joined->client, "{'jsonrpc':'2.0','id':%d,'method':'tools/list'}", id);
}

static struct web_request *asked(struct web_server *server, int id)
{
    return web_next(server, "POST /mcp", test_format("'id':%d,", id));
}

#define ANSWER "{'jsonrpc':'2.0','id':%d,'result':{}}"

static void answer(const struct web_request *request, int id)
{
    web_answer(request, "200 OK", "", ANSWER, id);
}

/* --- the handshake era --- */

TEST(connect_http_speaks_for_a_session)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    expect_field(request, "Host", test_format("127.0.0.1:%u", server->port));
    expect_field(request, "Content-Type", "application/json");
    expect_field(request, "Accept", "application/json, text/event-stream");
    expect_field(request, "Mcp-Session-Id", NULL);
    expect_field(request, "MCP-Protocol-Version", NULL);
    expect_field(request, "Authorization", NULL);
    web_answer(request, "200 OK", "mcp-session-id:  s:1 \r\n", WELCOME);
    client_expect(joined.client, WELCOME);
    client_send(joined.client, INITIALIZED);
    ask(&joined, 1);
    request = web_next(server, "POST /mcp", "initialized"); /* before the request */
    expect_field(request, "Mcp-Session-Id", "s:1");
    expect_field(request, "MCP-Protocol-Version", "2025-11-25");
    expect_field(request, "Mcp-Method", NULL);
    web_answer(request, "202 Accepted", "", "%s", "");
    request = web_next(server, "GET /mcp", NULL);
    expect_field(request, "Accept", "text/event-stream");
    expect_field(request, "Mcp-Session-Id", "s:1");
    expect_field(request, "Last-Event-ID", NULL);
    web_answer(request, "405 Method Not Allowed", "", "%s", "");
    request = asked(server, 1);
    expect_field(request, "Mcp-Session-Id", "s:1");
    answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    part(server, &joined, "s:1");
}

/* A server without sessions. */
TEST(connect_http_without_a_session)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    web_answer(web_next(server, "POST /mcp", NULL), "200 OK", "", WELCOME);
    client_expect(joined.client, WELCOME);
    ask(&joined, 1);
    request = asked(server, 1);
    expect_field(request, "Mcp-Session-Id", NULL);
    expect_field(request, "MCP-Protocol-Version", "2025-11-25");
    answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client); /* nothing to be ended */
    expect_status(&joined, 0);
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
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    ask(&joined, 1);
    request = asked(server, 1);
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
    ask(&joined, 2);
    request = asked(server, 2);
    ck_assert_uint_eq(request->peer, 0); /* the connection is kept */
    answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

TEST(connect_http_has_a_stream_of_the_server)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
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
    expect_field(request, "Mcp-Session-Id", "s");
    web_answer(request, "202 Accepted", "", "%s", "");
    web_cut(stream); /* and it is continued */
    stream = web_next(server, "GET /mcp", NULL);
    expect_field(stream, "Last-Event-ID", "1-2");
    web_stream(stream, "");
    web_event(stream, "1-3", "{'method':'missed'}");
    client_expect(joined.client, "{'method':'missed'}");
    part(server, &joined, "s");
}

/* --- streams that are cut --- */

TEST_ROWS(connect_http_continues_a_stream, 2)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    shake_hands(server, &joined, "s");
    ask(&joined, 1);
    request = asked(server, 1);
    web_stream(request, "");
    web_send(request, "1f\r\nid: 1-1\nretry: 10\ndata: \n\nid: \n\r\n"); /* the last is no event */
    web_event(request, "1-2", "{'method':'before'}");
    client_expect(joined.client, "{'method':'before'}");
    if (row == 0)
        web_cut(request);
    else
        web_stream_end(request);
    request = web_next(server, "GET /mcp", NULL);
    expect_field(request, "Last-Event-ID", "1-2");
    expect_field(request, "Mcp-Session-Id", "s");
    web_cut(request); /* once more */
    request = web_next(server, "GET /mcp", NULL);
    expect_field(request, "Last-Event-ID", "1-2");
    web_stream(request, "");
    web_event(request, "1-3", "{'method':'after'}");
    web_event(request, "1-4", "{'id':1,'result':{}}");
    client_expect(joined.client, "{'method':'after'}");
    client_expect(joined.client, "{'id':1,'result':{}}");
    web_stream_end(request);
    part(server, &joined, "s");
}

/* It is not sent again: the server may have done what it asks for. */
TEST_ROWS(connect_http_reports_a_cut, 4)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    ask(&joined, 1);
    request = asked(server, 1);
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
    ask(&joined, 2);
    request = asked(server, 2);
    answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

/* --- a session that the server has forgotten --- */

static const char *const forgotten[] = {"404 Not Found", "400 Bad Request"};

#define GONE "{'jsonrpc':'2.0','error':{'code':-32001,'message':'gone'},'id':null}"

TEST_ROWS(connect_http_begins_a_new_session, 2)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *one, *other;
    shake_hands(server, &joined, "old");
    ask(&joined, 1);
    one = asked(server, 1);
    ask(&joined, 2);
    other = asked(server, 2);
    web_answer(one, forgotten[row], "", GONE);
    one = web_next(server, "POST /mcp", "'initialize'");
    expect_field(one, "Mcp-Session-Id", NULL);
    web_answer(other, forgotten[row], "", GONE);
    web_answer(one, "200 OK", "Mcp-Session-Id: new\r\n", WELCOME);
    one = web_next(server, "POST /mcp", "initialized");
    expect_field(one, "Mcp-Session-Id", "new");
    web_answer(one, "202 Accepted", "", "%s", "");
    for (int i = 0, id; i < 3; i++) { /* both requests and the stream, in any order */
        one = web_next_any(server);
        expect_field(one, "Mcp-Session-Id", "new");
        if (strncmp(one->head.data, "GET ", 4) == 0) {
            web_answer(one, "405 Method Not Allowed", "", "%s", "");
            continue;
        }
        id = (int)json_number(span_of(one->body.data), "id");
        answer(one, id);
        client_expect(joined.client, ANSWER, id); /* and nothing of the handshake */
    }
    part(server, &joined, "new");
}

TEST_ROWS(connect_http_without_a_new_session, 3)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    shake_hands(server, &joined, "old");
    ask(&joined, 1);
    web_answer(asked(server, 1), "404 Not Found", "", "%s", "");
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
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *requests[MANY];
    for (int id = 0; id < MANY; id++)
        ask(&joined, id);
    for (int i = 0; i < MANY; i++)
        requests[i] = web_next(server, "POST /mcp", NULL);
    ask(&joined, 1000);
    client_error(joined.client, "1000", -32000, "100 requests are in flight");
    client_send(joined.client, "{'id':5,'method':'twice'}");
    client_error(joined.client, "5", -32600, "in flight");
    for (int i = MANY - 1; i >= 0; i--) {
        int id = (int)json_number(span_of(requests[i]->body.data), "id");
        answer(requests[i], id);
        client_expect(joined.client, ANSWER, id);
    }
    ask(&joined, 1001);
    answer(asked(server, 1001), 1001);
    client_expect(joined.client, ANSWER, 1001);
}

TEST(connect_http_sends_notifications_in_order)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    for (int i = 0; i < 3; i++)
        client_send(joined.client, "{'method':'n%d'}", i);
    ask(&joined, 1);
    for (int i = 0; i < 3; i++) {
        request = web_next(server, "POST /mcp", test_format("'n%d'", i));
        ck_assert_uint_eq(request->peer, 0); /* one after the other */
        web_answer(request, "202 Accepted", "", "%s", "");
    }
    answer(asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
}

/* Whatever comes for it, and whenever, the program gets none of it. */
TEST_ROWS(connect_http_cancels_in_the_session, 6)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request, *notice;
    shake_hands(server, &joined, "s");
    ask(&joined, 1);
    request = asked(server, 1);
    client_send(joined.client,
                "{'method':'notifications/cancelled','params':{'requestId':1,'reason':'r'}}");
    notice = web_next(server, "POST /mcp", "cancelled");
    if (row == 0) /* before the server has taken it, too */
        web_answer(notice, "202 Accepted", "", "%s", "");
    switch (row / 2) {
    case 0:
        answer(request, 1);
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
    answer(web_next(server, "POST /mcp", "ping"), 1);
    client_expect(joined.client, ANSWER, 1);
    part(server, &joined, "s");
}

/* Official clients leave the stream of such a request open; some servers take its end for that of
 * their client. */
TEST(connect_http_leaves_the_stream_of_a_cancelled_request_open)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    shake_hands(server, &joined, "s");
    ask(&joined, 1);
    request = asked(server, 1);
    web_stream(request, "");
    web_event(request, "e1", "{'method':'a'}");
    client_expect(joined.client, "{'method':'a'}");
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    web_answer(web_next(server, "POST /mcp", "cancelled"), "202 Accepted", "", "%s", "");
    ask(&joined, 2);
    answer(asked(server, 2), 2);
    client_expect(joined.client, ANSWER, 2);
    web_event(request, "e2", "{'method':'b'}"); /* it is read still */
    client_expect(joined.client, "{'method':'b'}");
    web_event(request, "e3", "{'jsonrpc':'2.0','id':1,'result':{}}");
    web_stream_end(request);
    ask(&joined, 3);
    answer(asked(server, 3), 3);
    client_expect(joined.client, ANSWER, 3); /* nothing in between, and no GET */
    part(server, &joined, "s");
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
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    client_send(joined.client, "{'id':1,'method':'%s','params':{%s" META "}}",
                stateless[row].method, stateless[row].params);
    request = web_next(server, "POST /mcp", "'id':1");
    expect_field(request, "MCP-Protocol-Version", "2026-07-28");
    expect_field(request, "Mcp-Method", stateless[row].method);
    expect_field(request, "Mcp-Name", stateless[row].name);
    expect_field(request, "Mcp-Session-Id", NULL);
    answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

/* The end of the stream is the cancellation: nothing is sent. */
TEST(connect_http_cancels_without_a_session)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    client_send(joined.client, "{'id':1,'method':'tools/call','params':{'name':'n'," META "}}");
    request = web_next(server, "POST /mcp", NULL);
    web_stream(request, "");
    web_event(request, NULL, "{'method':'before'}");
    client_expect(joined.client, "{'method':'before'}");
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    web_wait_gone(request);
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    ask(&joined, 2);
    answer(asked(server, 2), 2);
    client_expect(joined.client, ANSWER, 2);
}

/* A subscription is open until the end of the input. */
TEST(connect_http_ends_subscriptions)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
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
    expect_status(&joined, 0);
}

/* --- refusals --- */

static const struct {
    const char *status, *fields, *body;
    const char *error; /* in the error of the program; it begins with { where it is the answer */
} refusals[] = {
#define HTML "Content-Type: text/html; charset=utf-8\r\n"
    {"401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "", "--token-file): Bearer"},
    {"401 Unauthorized", "WWW-Authenticate: Bearer error=\"invalid_token\", scope=\"all\"\r\n",
     "{'error':'invalid_token'}", "(the server asks for a token: --token-file): Bearer error="},
    {"401 Unauthorized", "", "{'id':1,'error':{'code':-32000,'message':'m'}}", "401 Unauthorized"},
    {"401 Unauthorized", "", "{'jsonrpc':'2.0','id':1,'error':'m'}", "401 Unauthorized"},
    {"403 Forbidden", "", "", "403 Forbidden (the server does not allow this"},
    {"403 Forbidden", "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n", "",
     "insufficient_scope"},
    {"404 Not Found", "", "", "is the path right"},
    {"405 Method Not Allowed", "", "", "is the path that of an MCP server"},
    {"500 Internal Server Error", "", "{'nonsense':true}", "500 Internal Server Error: {"},
    {"502 Bad Gateway", "", "<html>", "502 Bad Gateway: <html>"},
    {"502 Bad Gateway", HTML,
     "<html>\n<head><title>502 Bad Gateway</title><style>b{}</style></head>\n<body>\n"
     "<h1>It's &lt;gone&gt; &amp; away</h1><!-- <b>unseen</b> --><hr>nginx/1.22.1\n</body></html>",
     "s <gone> & away nginx/1.22.1"},
    {"200 OK", HTML, "<title>Log in</title>", "has no answer to the request: Log in"},
    {"429 Too Many Requests", "Retry-After: 5\r\n", "", "429 Too Many Requests"},
    {"302 Found", "Location: http://example.org/\r\n", "", "moved to http://example.org/"},
    {"202 Accepted", "", "", "has no answer"},
    {"200 OK", "", "", "has no answer"},
    {"200 OK", "", "<html>", "has no answer"},
    {"200 OK", "", "{'id':2,'result':{}}", "has no answer"},
    {"404 Not Found", "", "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'m'}}",
     "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'m'}}"},
    {"400 Bad Request", "", "{'jsonrpc':'2.0','error':{'code':-32020,'message':'m'},'id':null}",
     "{'jsonrpc':'2.0','error':{'code':-32020,'message':'m'},'id':1}"},
    {"400 Bad Request", "",
     "{ 'jsonrpc':'2.0','error':{'code':-32022,'message':'m','data':{'id':3}}}",
     "{'id':1, 'jsonrpc':'2.0','error':{'code':-32022,'message':'m','data':{'id':3}}}"},
    {"200 OK", "", "[{'method':'n'},{'id':1,'result':{}}]", "{'method':'n'}"},
    {"200 OK", "", "{\n 'id': 1,\n 'result': {}\n}\n", "{  'id': 1,  'result': {} }"},
};

TEST_ROWS(connect_http_reports_refusals, COUNT(refusals))
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    ask(&joined, 1);
    request = asked(server, 1);
    web_answer(request, refusals[row].status, refusals[row].fields, "%s", refusals[row].body);
    if (refusals[row].error[0] == '{')
        client_expect(joined.client, "%s", refusals[row].error);
    else
        client_error(joined.client, "1", -32000, refusals[row].error);
    if (strstr(refusals[row].body, "method") != NULL)
        client_expect(joined.client, "{'id':1,'result':{}}");
    ask(&joined, 3); /* and it goes on */
    answer(asked(server, 3), 3);
    client_expect(joined.client, ANSWER, 3);
}

static const struct {
    const char *refusal, *status, *fields, *event, *word;
} older[] = {
    {"405 Method Not Allowed", "200 OK", "Content-Type: text/event-stream\r\n",
     "event: endpoint\ndata: /messages?session=1\n\n", "only the older transport HTTP+SSE"},
    {"404 Not Found", "200 OK", "Content-Type: text/event-stream\r\n",
     "event: endpoint\ndata: /m\n\n", "only the older transport HTTP+SSE"},
    {"405 Method Not Allowed", "200 OK", "Content-Type: text/event-stream\r\n", "data: {}\n\n",
     "405 Method Not Allowed"},
    {"405 Method Not Allowed", "200 OK", "Content-Type: text/event-stream\r\n", ": nothing\n\n",
     "405 Method Not Allowed"}, /* and no end */
    {"404 Not Found", "404 Not Found", "", "", "404 Not Found (is the path right?)"},
    {"404 Not Found", "200 OK", "Content-Type: text/html\r\n", "<p>", "404 Not Found"},
};

/* A server of HTTP+SSE alone is named as such: GET has the event with which that begins. */
TEST_ROWS(connect_http_names_the_older_transport, COUNT(older))
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    web_answer(request, older[row].refusal, "", "%s", "");
    request = web_next(server, "GET /mcp", NULL);
    expect_field(request, "Accept", "text/event-stream");
    web_send(request, "HTTP/1.1 %s\r\n%sConnection: close\r\n\r\n%s", older[row].status,
             older[row].fields, older[row].event);
    if (row == 4)
        web_cut(request);
    client_error(joined.client, "0", -32000, older[row].word);
}

TEST(connect_http_reports_other_protocols)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    ask(&joined, 1);
    web_send(asked(server, 1), "SSH-2.0-OpenSSH_9.2\r\n\r\n");
    client_error(joined.client, "1", -32000, "does not speak HTTP");
}

static bool log_has(const struct joined *joined, const char *word)
{
    char text[4096];
    FILE *file = fopen(joined->log, "r");
    size_t len;

    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    return strstr(text, word) != NULL;
}

/* On stderr, which may be a terminal. */
TEST(connect_http_shows_no_control_character_of_a_reason)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);

    ask(&joined, 1);
    answer(asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
    client_send(joined.client, "{'method':'notifications/any'}");
    web_answer(web_next(server, "POST /mcp", "notifications/any"),
               "500 \xc3\xa9\xc2\x9b"
               "31m\xe2\x80\xae\x1b[2J\x7f\x9b"
               "x",
               "", "%s", "");
    WAIT_UNTIL(log_has(&joined, "500 \xc3\xa9\\u009b31m\\u202e\\x1b[2J\\x7f\\x9bx"),
               "the reason is not on stderr");
}

enum { LABEL_TOO_LONG = 64 }; /* no name server is asked for such a name */

TEST_ROWS(connect_http_without_a_server, 2)
{
    struct web_server *server = web_start_later();
    struct joined joined =
        JOIN(row == 0 ? web_url(server, "/mcp")
                      : test_format("http://%s.invalid/mcp", test_fill('x', LABEL_TOO_LONG)),
             NULL);
    ask(&joined, 1);
    client_error(joined.client, "1", -32000, "cannot connect");
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

TEST(connect_http_waits_for_a_server)
{
    struct web_server *server = web_start_later();
    struct joined joined = JOIN(web_url(server, "/mcp"), "--wait", "60");
    ask(&joined, 1);
    for (int64_t until = now_ms() + 200; now_ms() < until;)
        nap();
    web_listen(server);
    answer(asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
}

TEST(connect_http_shows_the_token)
{
    struct web_server *server = web_start();
    const char *path = test_format("%s/token", test_dir());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct joined joined;
    struct web_request *request;
    ck_assert_int_eq(write(fd, "s3cret\n", 7), 7);
    close(fd);
    joined = JOIN(web_url(server, "/mcp"), "--token-file", path);
    ask(&joined, 1);
    request = asked(server, 1);
    expect_field(request, "Authorization", "Bearer s3cret");
    web_answer(request, "401 Unauthorized", "", "%s", "");
    client_error(joined.client, "1", -32000, "does not accept the token");
}

/* Only within the server, which may have the token. */
TEST(connect_http_follows_a_redirect)
{
    struct web_server *server = web_start(), *other = web_start();
    struct joined joined = join(server);
    ask(&joined, 1);
    web_answer(asked(server, 1), "307 Temporary Redirect",
               test_format("Location: %s\r\n", web_url(server, "/mcp/")), "%s", "");
    answer(web_next(server, "POST /mcp/", "'id':1,"), 1);
    client_expect(joined.client, ANSWER, 1);
    ask(&joined, 2);
    web_answer(web_next(server, "POST /mcp/", "'id':2,"), "308 Permanent Redirect",
               "Location: /a?b\r\n", "%s", "");
    answer(web_next(server, "POST /a?b", "'id':2,"), 2);
    client_expect(joined.client, ANSWER, 2);
    ask(&joined, 3);
    web_answer(web_next(server, "POST /a?b", "'id':3,"), "307 Temporary Redirect",
               test_format("Location: %s\r\n", web_url(other, "/mcp")), "%s", "");
    client_error(joined.client, "3", -32000, "moved to");
}

/* row: a place that no request line can have, with a body or without. */
TEST_ROWS(connect_http_follows_no_redirect_into_a_head, 2)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    ask(&joined, 1);
    web_answer(asked(server, 1), "307 Temporary Redirect",
               row == 0 ? "Location: /a HTTP/1.1\r\n" : "Location: /a\rB: c\r\n", "%s",
               row == 0 ? "" : "{}");
    client_error(joined.client, "1", -32000, "moved to");
}

/* A stream that ends at once, each time after an event, is not asked for without a pause. */
TEST(connect_http_does_not_retry_at_once)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    ask(&joined, 1);
    struct web_request *request = asked(server, 1);
    for (int i = 0; i < 3; i++) {
        web_stream(request, "");
        web_send(request, "12\r\nid: 1-%d\nretry: 1\n\n\r\n", i);
        web_event(request, NULL, "{'jsonrpc':'2.0','method':'x'}");
        client_expect(joined.client, "{'jsonrpc':'2.0','method':'x'}");
        int64_t start = now_ms();
        web_cut(request);
        request = web_next(server, "GET /mcp", NULL);
        ck_assert_int_ge(now_ms() - start, 100);
    }
    web_stream(request, "");
    web_event(request, NULL, "{'jsonrpc':'2.0','id':1,'result':{'n':1}}");
    client_result(joined.client, "1");
}

/* --- connections --- */

TEST(connect_http_keeps_connections)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    for (int id = 0; id < 4; id++) {
        struct web_request *request;
        ask(&joined, id);
        request = asked(server, id);
        ck_assert_uint_eq(request->peer, id < 3 ? 0 : 1);
        web_answer(request, "200 OK", id == 2 ? "Connection: close\r\n" : "", ANSWER, id);
        client_expect(joined.client, ANSWER, id);
    }
}

/* One that the server closes while nothing is asked is not used again. */
TEST(connect_http_leaves_closed_connections)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    ask(&joined, 1);
    request = asked(server, 1);
    answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    shutdown(server->peers[request->peer].fd, SHUT_WR);
    web_wait_gone(request);
    ask(&joined, 2);
    request = asked(server, 2);
    ck_assert_uint_eq(request->peer, 1);
    answer(request, 2);
    client_expect(joined.client, ANSWER, 2);
}

enum { LONG = 20000000 };

TEST(connect_http_carries_long_messages)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    struct span line;
    const char *fill = test_fill('x', LONG);
    pid_t writer = fork(); /* the pipe is shorter */
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        client_send(joined.client, "{'id':1,'method':'m','params':{'fill':'%s'}}", fill);
        _exit(0);
    }
    request = asked(server, 1);
    ck_assert_uint_gt(request->body.len, LONG);
    waitpid(writer, NULL, 0);
    ask(&joined, 2);
    answer(asked(server, 2), 2);
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
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    shake_hands(server, &joined, "s");
    ask(&joined, 1);
    request = asked(server, 1);
    client_half_close(joined.client);
    answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    web_answer(web_next(server, "DELETE /mcp", NULL), "405 Method Not Allowed", "", "%s", "");
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

TEST(connect_http_ends_the_session_at_a_signal)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    shake_hands(server, &joined, "s");
    ask(&joined, 1);
    asked(server, 1);
    ck_assert_int_eq(kill(joined.pid, SIGTERM), 0);
    web_answer(web_next(server, "DELETE /mcp", NULL), "204 No Content", "", "%s", "");
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

TEST(connect_http_with_malformed_input)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    client_send(joined.client, "nonsense");
    client_error(joined.client, "null", -32700, "");
    client_expect_eof(joined.client);
    expect_status(&joined, 65);
}

TEST(connect_http_with_a_closed_stdout)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    ask(&joined, 1);
    request = asked(server, 1);
    close(joined.client->in);
    joined.client->in = -1;
    answer(request, 1);
    expect_status(&joined, 74);
}

/* The program has left: no answer is waited for. */
TEST(connect_http_with_both_pipes_closed)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    ask(&joined, 1);
    asked(server, 1);
    client_half_close(joined.client);
    close(joined.client->in);
    joined.client->in = -1;
    expect_status(&joined, 74);
}

/* A program that does not read holds the server, not memory. */
TEST(connect_http_with_a_slow_program)
{
    struct web_server *server = web_start();
    struct joined joined = join(server);
    struct web_request *request;
    const char *event = test_format("data: {\"method\":\"m\",\"params\":\"%s\"}\n\n",
                                    test_fill('x', 100000));
    size_t len = strlen(event), sent = 0, kept;
    int fd;
    ask(&joined, 1);
    request = asked(server, 1);
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

int main(void)
{
    return harness_main("connect_http");
}
