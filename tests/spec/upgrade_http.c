/* Upgrade in place: what clients of HTTP and WebSocket have stays theirs. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "harness.h"
#include "proc.h"
#include "web_socket.h"

#define POOL_OF(keys)                                                                              \
    .mode = SETUP_HTTP,                                                                            \
    .pools = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp'," keys "}"

#define MCP POOL_OF("'clients':'sticky'")
#define RPC .mode = SETUP_HTTP, .instances = 1

#define REQUEST(id, method) "{'jsonrpc':'2.0','id':" id ",'method':'" method "'}"
#define NOTE(n) "{'jsonrpc':'2.0','method':'notifications/any','params':" n "}"
#define SAY(id, message)                                                                           \
    "{'jsonrpc':'2.0','id':" id ",'method':'say','params':{'message':" message "}}"

/* --- helpers --- */

static void ask(struct http *http, const char *session, const char *id)
{
    http_post(http, session, "{'jsonrpc':'2.0','id':%s,'method':'echo'}", id);
    message_result(http_expect(http, 200), id);
}

/* Its answers wait until it is let go. */
static void hold(struct http *http, const char *session)
{
    http_post(http, session, REQUEST("'h'", "hold"));
    http_expect(http, 200);
}

static void let_go(struct http *http, const char *session)
{
    http_post(http, session, REQUEST("'r'", "release"));
    http_expect(http, 200);
}

static void listen_to(struct http *http, const char *session, const char *last_event)
{
    http_send(http, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n%s%s%s", session,
                          last_event != NULL ? "Last-Event-ID: " : "",
                          last_event != NULL ? last_event : "", last_event != NULL ? "\r\n" : ""),
              NULL);
    ck_assert_int_eq(http_status(http), 200);
    ck_assert_uint_eq(http_event(http).len, 0);
}

static void expect_note(struct http *http, long n)
{
    ck_assert_int_eq(json_number(http_event(http), "params"), n);
}

/* A connection whose stream has begun with this note. */
static struct http *begin_stream(struct daemon *daemon, const char *session)
{
    struct http *http = http_connect(daemon);

    http_send(http, "POST", "/mcp", test_format(HTTP_POST_FIELDS "Mcp-Session-Id: %s\r\n", session),
              SAY("1", NOTE("1")));
    ck_assert_int_eq(http_status(http), 200);
    ck_assert_uint_eq(http_event(http).len, 0);
    expect_note(http, 1);
    return http;
}

/* --- sessions --- */

TEST(upgrade_http_keeps_sessions)
{
    struct daemon *daemon;
    struct http *http, *other;
    const char *session, *second;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    session = http_session(http);
    second = http_session(http_connect(daemon));
    ask(http, session, "1");
    daemon_upgrade(daemon);
    ask(http, session, "1");
    other = http_connect(daemon);
    ask(other, second, "1");
    http_send(other, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", second), NULL);
    http_expect(other, 204);
    daemon_upgrade(daemon);
    http_post(other, second, REQUEST("2", "echo"));
    http_expect(other, 404);
    ask(http, session, "2");
}

/* row 0: the answer comes as JSON; 1: on a stream. */
TEST_ROWS(upgrade_http_answers_requests_in_flight, 2)
{
    struct daemon *daemon;
    struct http *http, *other;
    const char *session;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    session = http_session(http);
    hold(http, session);
    if (row == 0)
        http_post(http, session, REQUEST("1", "echo"));
    else
        http = begin_stream(daemon, session);
    other = http_connect(daemon);
    daemon_upgrade(daemon);
    let_go(other, session);
    if (row == 0) {
        message_result(http_expect(http, 200), "1");
    } else {
        message_result(http_event(http), "1");
        http_expect_end(http);
    }
    ask(http, session, "1");
}

TEST(upgrade_http_keeps_the_stream_of_a_get)
{
    struct daemon *daemon;
    struct http *http, *listener;
    const char *session;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    session = http_session(http);
    listener = http_connect(daemon);
    listen_to(listener, session, NULL);
    for (long n = 1; n <= 3; n++) {
        daemon_upgrade(daemon);
        http_send(http, "POST", "/mcp",
                  test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n",
                              session),
                  test_format(SAY("%ld", NOTE("%ld")), n, n));
        http_expect(http, 200);
        expect_note(listener, n);
    }
}

/* Events that nobody has fetched, those of two streams, and an answer among them. */
TEST(upgrade_http_keeps_events_for_streams_that_were_cut)
{
    struct daemon *daemon;
    struct http *http, *cut;
    struct span id;
    const char *session, *last;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP, .arguments = {"--log-level", "debug"});
    http = http_connect(daemon);
    session = http_session(http);
    hold(http, session);
    cut = begin_stream(daemon, session);
    id = http_event_id(cut);
    last = test_format("%.*s", SHOWN(id));
    client_close(cut->client);
    daemon_wait_log(daemon, "ended: ");
    let_go(http, session);
    http_send(http, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n", session),
              SAY("2", NOTE("7")));
    http_expect(http, 200);
    daemon_upgrade(daemon);
    cut = http_connect(daemon);
    listen_to(cut, session, last);
    message_result(http_event(cut), "1");
    http_expect_end(cut);
    listen_to(cut, session, NULL);
    expect_note(cut, 7);
}

/* A question of the worker, and its answer after the upgrade. */
TEST(upgrade_http_keeps_questions_of_workers)
{
    struct daemon *daemon;
    struct http *http, *other;
    const char *session;
    struct span question;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':1,'method':'ask','params':{'id':9}}");
    ck_assert_int_eq(http_status(http), 200);
    ck_assert_uint_eq(http_event(http).len, 0);
    question = http_event(http);
    ck_assert_ptr_nonnull(json_get(question, "id").data);
    other = http_connect(daemon);
    daemon_upgrade(daemon);
    http_post(other, session, "{'jsonrpc':'2.0','id':%.*s,'result':{'yes':1}}",
              SHOWN(json_get(question, "id")));
    http_expect(other, 202);
    message_result(http_event(http), "1");
    http_expect_end(http);
}

static int living_children(const struct daemon *daemon)
{
    pid_t children[8];
    size_t count = proc_children(daemon->pid, children, 8);
    int living = 0;

    for (size_t i = 0; i < count; i++)
        living += proc_alive(children[i]);
    return living;
}

/* The check of the next program ends while the daemon is stopped, which then has the end of the
 * session and the upgrade in one round. */
static void upgrade_beside_end(struct daemon *daemon, struct http *http, const char *session)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, "received SIGUSR2");
    daemon_signal(daemon, SIGSTOP);
    http_send(http, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", session), NULL);
    WAIT_UNTIL(living_children(daemon) == 1, "the check goes on");
    daemon_signal(daemon, SIGCONT);
    daemon_wait_log(daemon, DAEMON_UPGRADED);
}

/* Its events, which nobody has fetched, end with it. */
TEST(upgrade_http_beside_the_end_of_a_session)
{
    struct daemon *daemon;
    struct http *http;
    const char *session;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    for (int i = 0; i < 40; i++) {
        session = http_session(http);
        http_send(http, "POST", "/mcp",
                  test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n",
                              session),
                  SAY("1", NOTE("7")));
        http_expect(http, 200);
        upgrade_beside_end(daemon, http, session);
        http_expect(http, 204);
    }
}

/* A session waits for a process; so does the one that its client began after it. */
TEST(upgrade_http_keeps_messages_that_wait)
{
    struct daemon *daemon;
    struct http *http, *waits[2];
    const char *session;

    if (!daemon_can_upgrade())
        return;
    daemon = START(POOL_OF("'clients':'exclusive'"));
    http = http_connect(daemon);
    session = http_session(http);
    for (size_t i = 0; i < COUNT(waits); i++) {
        waits[i] = http_connect(daemon);
        http_post(waits[i], NULL, REQUEST("1", "initialize"));
    }
    daemon_upgrade(daemon);
    daemon_upgrade(daemon);
    ask(http, session, "1");
    for (size_t i = 0; i < COUNT(waits); i++) {
        http_send(http, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", session), NULL);
        http_expect(http, 204);
        message_result(http_expect(waits[i], 200), "1");
        session = test_format("%.*s", SHOWN(http_field(waits[i], "Mcp-Session-Id")));
        daemon_upgrade(daemon);
    }
}

/* --- requests that stand alone --- */

#define STATELESS "2026-07-28"

#define ECHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"
#define BATCH "[" ECHO ", {\"id\":2,\"method\":\"echo\"} ,{\"method\":\"n\"} ]    "
#define POST_HEAD "POST /rpc/pool HTTP/1.1\r\nHost: 127.0.0.1\r\n"

static const char *request_of(size_t row)
{
    if (row == 0)
        return test_format(POST_HEAD "Content-Length: %zu\r\n\r\n" ECHO, sizeof ECHO - 1);
    if (row == 1)
        return test_format(POST_HEAD "Content-Length: %zu\r\n\r\n" BATCH, sizeof BATCH - 1);
    return test_format(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                                 "1\r\n{\r\n%zx;a=b\r\n%s\r\n0\r\nx: y\r\n\r\n",
                       sizeof ECHO - 2, &ECHO[1]);
}

TEST_ROWS(upgrade_http_within_a_request, 3)
{
    const char *request = request_of(row);
    size_t len = strlen(request);
    struct daemon *daemon;

    if (!daemon_can_upgrade())
        return;
    daemon = START(RPC);
    for (size_t i = 1; i < len; i++) {
        struct http *http = http_connect(daemon);

        client_send_bytes(http->client, request, i);
        daemon_upgrade(daemon);
        client_send_bytes(http->client, request + i, len - i);
        http_expect(http, 200);
        client_send_bytes(http->client, request, len); /* and the next one */
        http_expect(http, 200);
        client_close(http->client);
    }
}

/* A batch of which one answer is written; a request behind it waits. */
TEST(upgrade_http_within_the_answer_to_a_batch)
{
    struct daemon *daemon;
    struct http *http, *other;

    if (!daemon_can_upgrade())
        return;
    daemon = START(RPC);
    http = http_connect(daemon);
    other = http_connect(daemon);
    http_send(http, "POST", "/rpc/pool", HTTP_JSON,
              "[{'id':1,'method':'hold'},{'id':2,'method':'echo'}]");
    ck_assert_int_eq(http_status(http), 200);
    http_send(http, "POST", "/rpc/pool?timeout=600", HTTP_JSON, "{'id':3,'method':'echo'}");
    daemon_upgrade(daemon);
    http_send(other, "POST", "/rpc/pool", HTTP_JSON, "{'id':4,'method':'release'}");
    http_expect(other, 200);
    ck_assert_int_eq(json_number(json_get(http_body(http), "1"), "id"), 2);
    message_result(http_expect(http, 200), "3");
}

TEST(upgrade_http_keeps_the_time_of_a_request)
{
    struct daemon *daemon;
    struct http *http;

    if (!daemon_can_upgrade())
        return;
    daemon = START(RPC);
    http = http_connect(daemon);
    http_send(http, "POST", "/rpc/pool?timeout=1", HTTP_JSON, "{'id':3,'method':'no_answer'}");
    daemon_upgrade(daemon);
    http_expect(http, 504);
}

static void post_stateless(struct http *http, const char *method)
{
    http_send(http, "POST", "/mcp",
              test_format(HTTP_POST_FIELDS "MCP-Protocol-Version: " STATELESS
                                           "\r\nMcp-Method: %s\r\n",
                          method),
              test_format("{'jsonrpc':'2.0','id':1,'method':'%s','params':{'_meta':{"
                          "'io.modelcontextprotocol/protocolVersion':'" STATELESS "',"
                          "'io.modelcontextprotocol/clientCapabilities':{}}}}",
                          method));
}

TEST(upgrade_http_answers_the_stateless_era)
{
    struct daemon *daemon;
    struct http *http, *other;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP);
    http = http_connect(daemon);
    other = http_connect(daemon);
    post_stateless(http, "hold");
    message_result(http_expect(http, 200), "1");
    post_stateless(other, "echo");
    daemon_upgrade(daemon);
    post_stateless(http, "release");
    message_result(http_expect(http, 200), "1");
    message_result(http_expect(other, 200), "1");
}

/* --- WebSocket --- */

TEST(upgrade_http_within_a_message_of_a_web_socket)
{
    static const char message[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}";
    char frame[2 + 4 + sizeof message];
    struct daemon *daemon;
    struct web_socket *socket;
    size_t len = sizeof message - 1;

    if (!daemon_can_upgrade())
        return;
    daemon = START(RPC);
    socket = ws_open(daemon);
    frame[0] = (char)(WS_FIN | WS_TEXT);
    frame[1] = (char)(0x80 | len);
    for (size_t i = 0; i < 4; i++)
        frame[2 + i] = (char)(i + 1);
    for (size_t i = 0; i < len; i++)
        frame[6 + i] = (char)(message[i] ^ frame[2 + i % 4]);
    for (size_t i = 1; i < 6 + len; i++) {
        client_send_bytes(socket->client, frame, i);
        daemon_upgrade(daemon);
        client_send_bytes(socket->client, frame + i, 6 + len - i);
        ck_assert(ws_read(socket));
        ck_assert_ptr_nonnull(strstr(socket->payload.data, "\"result\""));
    }
    ws_frame(socket, WS_FIN | WS_PING, "x", 1);
    ws_expect_control(socket, WS_PONG, "x", 1);
    ws_frame(socket, WS_TEXT, message, 5);
    daemon_upgrade(daemon);
    ws_frame(socket, WS_FIN | WS_PING, "y", 1);
    ws_expect_control(socket, WS_PONG, "y", 1);
    ws_frame(socket, WS_FIN | WS_CONTINUATION, message + 5, len - 5);
    ck_assert(ws_read(socket));
    ck_assert_ptr_nonnull(strstr(socket->payload.data, "\"result\""));
}

/* --- connections whose last request had no pool --- */

#define GATE_LISTEN "'listen':{'health':true,'metrics':true,'origins':['https://app.example']%s}"

static const struct {
    const char *method, *target, *fields;
    int status;
    bool asks_token;
} poolless[] = {
    {"GET", "/healthz", NULL, 200, false},
    {"GET", "/metrics", NULL, 200, false},
    {"GET", "/nowhere", NULL, 404, false},
    {"GET", "/.well-known/nothing", NULL, 404, false},
    {"OPTIONS", "/mcp", NULL, 204, false},
    {"OPTIONS", "/mcp", "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n",
     204, false},
    {"GET", "/mcp", "Origin: https://evil.example\r\n", 403, false},
    {"GET", "/mcp", NULL, 401, true},
    {"GET", "/mcp", "Authorization: Bearer wrong\r\n", 401, true},
    {"HEAD", "/healthz", NULL, 200, true},
};

static const char *token_member(void)
{
    const char *path = test_format("%s/tokens", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("secret", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    return test_format(",'token_file':'%s'", path);
}

/* A reload and an upgrade look at the pool of each connection, also of one whose request was
 * answered by the gate. */
TEST_ROWS(upgrade_http_after_an_answer_of_the_gate, COUNT(poolless))
{
    struct daemon *daemon;
    struct http *http;

    if (!daemon_can_upgrade())
        return;
    daemon = START(MCP, .members = test_format(GATE_LISTEN,
                                               poolless[row].asks_token ? token_member() : ""));
    http = http_connect(daemon);
    http_send(http, poolless[row].method, poolless[row].target, poolless[row].fields, NULL);
    ck_assert_int_eq(http_status(http), poolless[row].status);
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reloaded: [0-9]+ pool");
    daemon_upgrade(daemon);
    http = http_connect(daemon);
    http_send(http, "GET", "/healthz", NULL, NULL);
    http_expect(http, 200);
    daemon_stop(daemon);
}

int main(void)
{
    return harness_main("upgrade in place, HTTP");
}
