/* Upgrade in place: what clients of HTTP and WebSocket have stays theirs. */
#include "build_config.h"

#include "harness.h"
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

/* --- sessions --- */

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
    const char *session;
    struct daemon *daemon = START(MCP);
    struct http *http = http_connect(daemon);

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

/* A session waits for a process; so does the one that its client began after it. One with an open
 * stream does not give way to them, however long an upgrade takes. */
TEST(upgrade_http_keeps_messages_that_wait)
{
    struct http *http, *waits[2];
    const char *session;
    struct daemon *daemon = START(POOL_OF("'clients':'exclusive'"));

    http = http_connect(daemon);
    session = http_session(http);
    http_open_stream(http_connect(daemon), session);
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
        http_open_stream(http_connect(daemon), session);
        daemon_upgrade(daemon);
    }
}

/* --- requests that stand alone --- */

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
    struct daemon *daemon = START(RPC);

    for (size_t i = 1 + row; i < len; i += harness_fewer() ? 5 : 1) {
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

/* --- WebSocket --- */

TEST(upgrade_http_within_a_message_of_a_web_socket)
{
    static const char message[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}";
    char frame[2 + 4 + sizeof message];
    size_t len = sizeof message - 1;
    struct daemon *daemon = START(RPC);
    struct web_socket *socket = ws_open(daemon);

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
    struct daemon *daemon =
        START(MCP,
              .members = test_format(GATE_LISTEN, poolless[row].asks_token ? token_member() : ""));
    struct http *http = http_connect(daemon);

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
    return daemon_can_upgrade() ? harness_main("upgrade_http") : 0;
}
