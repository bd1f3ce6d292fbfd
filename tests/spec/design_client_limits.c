/* stdio_bus.conf(5), "limits": max_requests_per_client, max_message_rate, idle_timeout_sec. */
#include "build_config.h"

#include "harness.h"
#include "web_socket.h"

/* --- requests in flight --- */

/* A request that is in flight until the client answers the question of the worker. */
static void begin_request(struct client *client, int id)
{
    client_send(client,
                "{'id':%d,'sessionId':'a','method':'ask','params':{'id':%d,'params':{'x':1}}}", id,
                id + 100);
    expect_member(client_line(client), "id", test_format("%d", id + 100));
}

static void end_request(struct client *client, int id)
{
    client_send(client, "{'id':%d,'sessionId':'a','result':{}}", id + 100);
    client_result(client, test_format("%d", id));
}

TEST(design_requests_of_a_client_are_limited)
{
    struct daemon *daemon = START(.instances = 2, .limits = "'max_requests_per_client':2");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    begin_request(client, 1);
    begin_request(client, 2);
    client_send(client, "{'id':3,'sessionId':'a','method':'echo'}");
    client_error(client, "3", -32000, "max_requests_per_client 2");
    client_ask(other, "1", "b", "echo", NULL); /* others have their own */
    end_request(client, 1);
    client_ask(client, "3", "a", "echo", NULL);
    end_request(client, 2);
    daemon_stop(daemon);
}

/* What a worker asks is no request of the client, and its answer is never refused. */
TEST(design_limited_client_answers)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_requests_per_client':1");
    struct client *client = client_connect(daemon);
    begin_request(client, 1);
    end_request(client, 1);
    daemon_stop(daemon);
}

/* --- messages in a second --- */

/* Nothing is lost, the order stays, and the rest waits. */
TEST(design_rate_of_a_client_is_limited)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_message_rate':20");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    int64_t begin = now_ms();
    client_send_plain(client, "s", 50);
    client_ask(other, "1", NULL, "echo", NULL); /* it does not wait for the other one's turn */
    client_expect_plain(client, "s", 50);
    ck_assert_int_ge(now_ms() - begin, 1400); /* 50 at 20 a second, after 20 at once: 1500 */
    daemon_stop(daemon);
}

/* A message that waits for its id is not lost, and those after it keep their order. */
TEST(design_held_message_of_a_limited_client)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_message_rate':100");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    begin_request(other, 1);
    client_send(client, "{'id':1,'method':'echo'}");
    client_send(client, "{'id':2,'method':'echo'}");
    client_ask(other, "2", "a", "echo", NULL);
    end_request(other, 1);
    client_result(client, "1");
    client_result(client, "2");
    daemon_stop(daemon);
}

/* What waits for its turn when the daemon stops gets its error at once. */
TEST(design_rate_does_not_delay_the_shutdown)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_message_rate':1");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    client_ask(client, "2", NULL, "echo", NULL);
    client_send(client, "{'id':3,'method':'echo'}\n{'id':4,'method':'echo'}\n"
                        "{'id':5,'method':'echo'}");
    client_result(client, "3");
    daemon_signal(daemon, SIGTERM);
    client_error(client, "4", -32000, "shutting down");
    client_close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* A client that leaves while its messages wait is gone. */
TEST(design_client_leaves_while_its_messages_wait)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_message_rate':1");
    int fds = client_settled_fds(daemon, 1);
    for (int i = 0; i < 20; i++) {
        struct client *client = client_connect(daemon);
        client_send_plain(client, NULL, 5);
        client_abort(client);
    }
    daemon_wait_fds(daemon, fds);
    daemon_stop(daemon);
}

TEST(design_rate_in_stdio_mode)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .limits = "'max_message_rate':50");
    struct client *client = client_stdio(daemon);
    int64_t begin = now_ms();
    client_send_plain(client, "s", 75);
    client_expect_plain(client, "s", 75);
    ck_assert_int_ge(now_ms() - begin, 450);
    client_finish(client, daemon);
}

/* --- silence --- */

TEST(design_silent_client_is_disconnected)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'idle_timeout_sec':1");
    struct client *busy = client_connect(daemon), *silent;
    begin_request(busy, 1);
    silent = client_connect(daemon);
    int64_t begin = now_ms();
    client_ask(silent, "50", NULL, "echo", NULL);
    client_expect_eof(silent);
    ck_assert_int_ge(now_ms() - begin, 900);
    daemon_wait_log(daemon, "\\[client=[12]\\] disconnected: no message for idle_timeout_sec");
    end_request(busy, 1); /* it was asked, and waited for an answer itself */
    client_expect_eof(busy);
    daemon_stop(daemon);
}

/* Messages in either direction count. */
TEST(design_client_with_messages_is_not_silent)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'idle_timeout_sec':1");
    struct client *client = client_connect(daemon);
    for (int64_t end = now_ms() + 2500; now_ms() < end;) {
        struct span line;
        client_ask(client, "1", NULL, "echo", NULL);
        ck_assert(!client_line_before(client, now_ms() + 200, &line));
        ck_assert(!client->eof);
    }
    daemon_stop(daemon);
}

/* The client of stdin is the reason why the daemon runs. */
TEST(design_client_on_stdin_may_be_silent)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .limits = "'idle_timeout_sec':1");
    struct client *client = client_stdio(daemon);
    struct span line;
    client_ask(client, "1", NULL, "echo", NULL);
    ck_assert(!client_line_before(client, now_ms() + 1500, &line));
    client_ask(client, "2", NULL, "echo", NULL);
    client_finish(client, daemon);
}

/* --- clients of HTTP and WebSocket --- */

#define HTTP_MCP                                                                                   \
    .mode = SETUP_HTTP, .pools = "{'id':'p','command':'@WORKER@','instances':2,"                   \
                                 "'protocol':'mcp'}"

/* The rate is that of the session, whatever connections its requests come on. */
TEST(design_rate_of_an_http_session_is_limited)
{
    struct daemon *daemon = START(HTTP_MCP, .limits = "'max_message_rate':10");
    struct http *connections[] = {http_connect(daemon), http_connect(daemon)};
    int64_t begin = now_ms();
    const char *session = http_session(connections[0]); /* two messages */
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 2; j++)
            http_post(connections[j], session, "{'jsonrpc':'2.0','id':%d,'method':'echo'}",
                      2 * i + j + 2);
        for (int j = 0; j < 2; j++)
            message_result(http_expect(connections[j], 200), test_format("%d", 2 * i + j + 2));
    }
    ck_assert_int_ge(now_ms() - begin, 1100); /* 22 at 10 a second, after 10 at once: 1200 */
    daemon_stop(daemon);
}

/* A connection whose message waits for the turn of its session leaves: others continue. */
TEST(design_http_connection_leaves_while_its_message_waits)
{
    struct daemon *daemon = START(HTTP_MCP, .limits = "'max_message_rate':3");
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':2,'method':'echo'}");
    message_result(http_expect(http, 200), "2");
    for (int i = 3; i < 6; i++) {
        struct http *leaves = http_connect(daemon);
        http_post(leaves, session, "{'jsonrpc':'2.0','id':%d,'method':'echo'}", i);
        client_abort(leaves->client);
    }
    http_post(other, session, "{'jsonrpc':'2.0','id':6,'method':'echo'}");
    message_result(http_expect(other, 200), "6");
    daemon_stop(daemon);
}

/* A notification, too, and each member of a batch. */
TEST(design_rate_of_an_http_connection_is_limited)
{
    struct daemon *daemon = START(.mode = SETUP_HTTP, .pools = POOL("a", 1, ""),
                                  .limits = "'max_message_rate':10");
    struct http *http = http_connect(daemon);
    int64_t begin = now_ms();
    for (int i = 0; i < 8; i++) {
        http_send(http, "POST", "/rpc/a", HTTP_JSON, "{'method':'note','params':5}");
        http_expect(http, 202);
        http_send(http, "POST", "/rpc/a", HTTP_JSON,
                  "[{'id':1,'method':'echo'},{'id':2,'method':'echo'}]");
        http_expect(http, 200);
    }
    ck_assert_int_ge(now_ms() - begin, 1300); /* 24 at 10 a second, after 10 at once: 1400 */
    daemon_stop(daemon);
}

TEST(design_rate_of_a_websocket_is_limited)
{
    struct daemon *daemon = START(.mode = SETUP_HTTP, .limits = "'max_message_rate':20");
    struct web_socket *socket = ws_open(daemon);
    int64_t begin = now_ms();
    for (int i = 0; i < 40; i++)
        ws_expect_alive(socket);
    ck_assert_int_ge(now_ms() - begin, 900);
    daemon_stop(daemon);
}

TEST(design_requests_of_an_http_session_are_limited)
{
    struct daemon *daemon = START(HTTP_MCP, .limits = "'max_requests_per_client':1",
                                  .arguments = {"--log-level", "debug"});
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session, "{'jsonrpc':'2.0','id':2,'method':'no_answer'}");
    daemon_wait_log(daemon, "forwarding .*id 2");
    http_post(other, session, "{'jsonrpc':'2.0','id':3,'method':'echo'}");
    message_error(http_expect(other, 200), "3", -32000, "max_requests_per_client 1");
}

/* A connection of HTTP has times of its own, whatever idle_timeout_sec says; a WebSocket has it. */
TEST(design_silent_websocket_is_disconnected)
{
    struct daemon *daemon = START(.mode = SETUP_HTTP, .pools = POOL("a", 1, ""),
                                  .limits = "'idle_timeout_sec':1");
    struct http *http = http_connect(daemon);
    struct web_socket *socket = ws_open(daemon);
    ws_expect_alive(socket);
    ws_expect_close(socket, 1008);
    http_send(http, "POST", "/rpc/a", HTTP_JSON, "{'id':1,'method':'echo'}");
    message_result(http_expect(http, 200), "1");
    daemon_stop(daemon);
}
