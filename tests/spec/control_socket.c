/* The control socket: what it reports, what it does, who may use it. */
#include "build_config.h"

#include "control.h"
#include "harness.h"

#define EXCLUSIVE "{'id':'p','command':'@WORKER@','instances':2,'clients':'exclusive'}"

/* --- the socket --- */

TEST(control_socket_is_for_its_user_alone)
{
    struct daemon *daemon = CONTROL_DAEMON(.members = "'listen':{'mode':'0666'}");
    struct stat status;

    ck_assert_int_eq(stat(control_path(daemon), &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    daemon_stop(daemon);
}

/* The key of the configuration; the option stands above it. */
TEST_ROWS(control_path_of_the_configuration, 2)
{
    struct daemon *daemon = START(.members = row == 0 ? "'control':'@DIR@/control.sock'"
                                                      : "'control':'/nowhere/at/all'",
                                  .arguments = {row == 0 ? NULL : "--control=@DIR@/control.sock"});

    daemon_wait_log(daemon, "listening on .*/control\\.sock");
    control_wait(control_connect(daemon), "status", "phase", "'serving'");
}

TEST(control_socket_in_stdio_mode)
{
    struct daemon *daemon = CONTROL_DAEMON(.mode = SETUP_STDIO);
    struct client *control = control_connect(daemon), *client = client_stdio(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    expect_member(control_ask(control, "clients", NULL), "clients.0.messages_in", "1");
    client_send(control, "{'id':1,'method':'disconnect','params':{'client':1}}");
    client_error(control, "1", -32602, "stdin");
    client_close(control);
    client_finish(client, daemon);
}

/* --- requests --- */

TEST(control_reports_its_errors)
{
    static const struct {
        const char *line;
        const char *id;
        int code;
        const char *word;
    } rows[] = {
        {"{'id':1,'method':'fly'}", "1", -32601, "no such method"},
        {"{'id':'a'}", "'a'", -32600, "a method"},
        {"{'id':2,'method':7}", "2", -32600, "a method"},
        {"{'id':3,'method':'status','params':[]}", "3", -32602, "an object"},
        {"{'id':4,'method':'restart','params':{'worker':0}}", "4", -32602, "from 1 on"},
        {"{'id':5,'method':'restart','params':{'worker':9}}", "5", -32602, "no such worker"},
        {"{'id':6,'method':'drain','params':{'pool':'none'}}", "6", -32602, "no such worker"},
        {"{'id':7,'method':'drain'}", "7", -32602, "no such worker"},
        {"{'id':8,'method':'disconnect','params':{'client':9}}", "8", -32602, "no such client"},
        {"{'id':9,'method':'log','params':{'level':'loud'}}", "9", -32602, "debug, info"},
        {"{'id':10,'method':'log'}", "10", -32602, "debug, info"},
        {"{'id':11,'method':'clients','params':{'limit':10001}}", "11", -32602, "limit"},
        {"{'id':13,'method':'status','method':'status'}", "13", -32600, "twice"},
    };
    struct client *control = control_connect(CONTROL_DAEMON(.instances = 1));

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text id = {0};

        text_printf(&id, "%s", rows[i].id);
        text_quote(&id, 0);
        client_send(control, "%s", rows[i].line);
        client_error(control, id.data, rows[i].code, rows[i].word);
        text_free(&id);
    }
    client_send(control, "{'method':'status'}"); /* no reply */
    control_wait(control, "status", "healthy", "true");
}

TEST_ROWS(control_closes_what_is_no_request, 3)
{
    static const char *const lines[] = {"[1]", "nonsense", "{'id':1"};
    struct client *control = control_connect(CONTROL_DAEMON(.instances = 1));

    client_send(control, "%s", lines[row]);
    client_error(control, "null", -32700, "");
    client_expect_eof(control);
}

TEST(control_request_of_endless_length_is_refused)
{
    struct client *control = control_connect(CONTROL_DAEMON(.instances = 1));
    const char *pad = test_fill('x', 20000);

    client_send_bytes(control, "{\"method\":\"", 11);
    client_send_bytes(control, pad, 20000);
    client_error(control, "null", -32700, "");
    client_expect_eof(control);
}

/* --- what there is --- */

TEST(control_reports_workers_clients_sessions_and_requests)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    struct span list;

    client_ask(client, "1", "s", "echo", NULL);
    client_request(client, "'x'", "s", "no_answer", NULL);
    control_wait(control, "requests", "total", "1");
    list = control_ask(control, "requests", NULL);
    expect_member(list, "requests.0.request", "'x'");
    expect_member(list, "requests.0.from", "'client=1'");
    expect_member(control_ask(control, "sessions", NULL), "sessions.0.session", "'s'");
    list = control_ask(control, "clients", NULL);
    expect_member(list, "clients.0.client", "1");
    expect_member(list, "clients.0.messages_in", "2");
    expect_member(list, "clients.0.messages_out", "1");
    expect_member(list, "clients.0.requests", "1");
    expect_member(list, "clients.0.sessions", "1");
    expect_member(list, "total", "1");
    list = control_ask(control, "workers", NULL);
    expect_member(list, "workers.0.state", "'running'");
    expect_member(list, "workers.0.requests", "1");
    expect_member(list, "workers.0.messages_out", "2");
    list = control_ask(control, "pools", NULL);
    expect_member(list, "pools.0.running", "1");
    expect_member(list, "pools.0.requests", "1");
}

TEST(control_list_ends_at_its_limit)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 3);
    struct span list = control_ask(control_connect(daemon), "workers", "{'limit':2}");

    expect_member(list, "total", "3");
    ck_assert_ptr_nonnull(json_get(list, "workers.1").data);
    ck_assert_ptr_null(json_get(list, "workers.2").data);
}

TEST(control_reports_what_a_client_is_held_for)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = EXCLUSIVE);
    struct client *control = control_connect(daemon), *clients[3];

    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(daemon);
        client_request(clients[i], "1", NULL, "echo", NULL);
        if (i < 2)
            client_result(clients[i], "1");
    }
    control_wait(control, "clients", "clients.2.held_for", "'a worker that is free'");
    ck_assert(control_metric(control, "stdio_bus_held{peer='client'}") == 1);
    client_close(clients[0]);
    client_result(clients[2], "1");
    expect_member(control_ask(control, "clients", NULL), "clients.1.held_for", "null");
    ck_assert(control_metric(control, "stdio_bus_held{peer='client'}") == 0);
    ck_assert(control_metric(control, "stdio_bus_holds_total{peer='client'}") >= 1);
}

/* --- what it does --- */

TEST(control_restarts_a_worker)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);

    control_ask(control, "restart", "{'worker':1}");
    ck_assert_int_ne(client_pid(client, "2", NULL), pid);
    control_wait(control, "workers", "workers.0.starts", "2");
    expect_member(control_ask(control, "workers", NULL), "workers.0.restarts", "0");
}

/* One that waits for its restart is started at once, and one that has failed is given a new chance:
 * the other one keeps the daemon alive. */
TEST(control_restarts_a_worker_that_has_failed)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = POOL("a", 1, "") "," POOL("b", 1, ""),
                                           .limits = "'max_restarts':0");
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'a','method':'die'}");
    client_error(client, "1", -32000, DIED);
    control_wait(control, "workers", "workers.0.state", "'failed'");
    expect_member(control_ask(control, "status", NULL), "healthy", "false");
    control_ask(control, "restart", "{'worker':1}");
    control_wait(control, "workers", "workers.0.state", "'running'");
    client_send(client, "{'id':2,'pool':'a','method':'echo'}");
    expect_member(client_result(client, "2"), "worker", "'worker'");
    control_wait(control, "status", "healthy", "true");
}

TEST(control_restart_loses_no_request_but_those_in_flight)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_request(client, "1", NULL, "no_answer", NULL);
    control_wait(control, "requests", "total", "1");
    control_ask(control, "restart", "{'worker':1}");
    client_request(client, "2", NULL, "echo", NULL);
    client_error(client, "1", -32000, DIED);
    client_result(client, "2");
}

/* The session, and the request in flight with the question that it leads to, continue; a new
 * request goes to the other worker, and waits once that is drained, too. */
TEST(control_drained_worker_gets_nothing_new)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 2);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    long pid = client_pid(client, "1", "s");
    const char *params;

    expect_member(control_ask(control, "sessions", NULL), "total", "1");
    client_request(client, "2", "s", "ask", "{'id':7,'params':{}}");
    client_expect(client,
                  "{'jsonrpc':'2.0','id':7,'sessionId':'s','method':'question','params':{}}");
    params = json_number(control_ask(control, "workers", NULL), "workers.0.sessions") == 1
                 ? "{'worker':1}"
                 : "{'worker':2}";
    control_ask(control, "drain", params);
    client_send(client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':{}}");
    client_result(client, "2");
    for (int i = 0; i < 4; i++)
        ck_assert_int_ne(client_pid(client, test_format("%d", 10 + i), NULL), pid);
    ck_assert_int_eq(client_pid(client, "20", "s"), pid);
    control_ask(control, "drain", "{'pool':'pool'}");
    expect_member(control_ask(control, "pools", NULL), "pools.0.drained", "2");
    client_request(client, "30", NULL, "echo", NULL);
    control_wait(control, "clients", "clients.0.held_for", "'a worker'");
    control_ask(control, "resume", NULL);
    client_result(client, "30");
}

/* Drained, restarted, resumed: nothing is lost. */
TEST(control_drain_outlives_the_restart_of_a_worker)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);

    control_ask(control, "drain", "{'worker':1}");
    control_ask(control, "restart", "{'worker':1}");
    control_wait(control, "workers", "workers.0.starts", "2");
    client_request(client, "2", NULL, "echo", NULL);
    control_wait(control, "clients", "clients.0.held_for", "'a worker'");
    control_ask(control, "resume", "{'worker':1}");
    ck_assert_int_ne(json_number(client_result(client, "2"), "pid"), pid);
}

TEST(control_drained_exclusive_pool_keeps_its_clients)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = EXCLUSIVE);
    struct client *control = control_connect(daemon), *old = client_connect(daemon), *young;
    long pid = client_pid(old, "1", NULL);

    control_ask(control, "drain", "{'pool':'p'}");
    ck_assert_int_eq(client_pid(old, "2", NULL), pid);
    young = client_connect(daemon);
    client_request(young, "1", NULL, "echo", NULL);
    control_wait(control, "clients", "clients.1.held_for", "'a worker that is free'");
    ck_assert_int_eq(client_pid(old, "3", NULL), pid);
    control_ask(control, "resume", "{'pool':'p'}");
    client_result(young, "1");
}

#define HTTP_MCP                                                                                   \
    .mode = SETUP_HTTP, .pools = "{'id':'p','command':'@WORKER@','instances':2,'protocol':'mcp'}"

/* A session is a client, beside the connections on which its requests come. */
TEST(control_lists_sessions_of_http_among_the_clients)
{
    struct daemon *daemon = CONTROL_DAEMON(HTTP_MCP);
    struct client *control = control_connect(daemon);
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    struct span clients;

    http_post(http, session, "{'jsonrpc':'2.0','id':7,'method':'no_answer'}");
    control_wait(control, "requests", "requests.0.request", "'7'");
    clients = control_ask(control, "clients", NULL);
    expect_member(clients, "total", "2");
    expect_member(clients, "clients.0.kind", "'http'");
    expect_member(clients, "clients.0.requests", "0");
    expect_member(clients, "clients.1.client", "2");
    expect_member(clients, "clients.1.kind", "'session'");
    expect_member(clients, "clients.1.requests", "1");
    expect_member(clients, "clients.1.messages_in", "3");
    expect_member(clients, "clients.1.messages_out", "1");
    expect_member(control_ask(control, "status", NULL), "clients", "2");
    ck_assert_double_eq(control_metric(control, "stdio_bus_http_sessions"), 1);
    control_ask(control, "disconnect", "{'client':2}");
    message_error(http_expect(http, 200), "7", -32000, "the session has ended");
    control_wait(control, "status", "clients", "1");
    ck_assert_double_eq(control_metric(control, "stdio_bus_http_sessions"), 0);
    ck_assert_double_eq(control_metric(control, "stdio_bus_http_sessions_total"), 1);
}

/* The status has each listener, with the port that the system has picked. */
TEST(control_status_has_the_listeners)
{
    struct daemon *daemon =
        CONTROL_DAEMON(.mode = SETUP_TCP, .pools = POOL("a", 1, ""),
                       .members = "'listen':[{'unix':'@DIR@/second','pool':'a','framing':'length'},"
                                  "{'http':'127.0.0.1:0'}]");
    struct span status = control_ask(control_connect(daemon), "status", NULL);

    expect_member(status, "listen.0.kind", "'tcp'");
    expect_member(status, "listen.0.port", test_format("%d", daemon->port));
    expect_member(status, "listen.0.framing", "'ndjson'");
    expect_member(status, "listen.1.kind", "'unix'");
    expect_member(status, "listen.1.pool", "'a'");
    expect_member(status, "listen.1.framing", "'length'");
    expect_member(status, "listen.2.kind", "'http'");
    expect_member(status, "listen.2.token", "false");
}

TEST(control_disconnects_a_client)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    control_ask(control, "disconnect", "{'client':1}");
    client_error(client, "null", -32000, "by the operator");
    client_expect_eof(client);
    control_wait(control, "status", "clients", "0");
}

TEST(control_sets_the_log_level)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    ck_assert(!daemon_logged(daemon, "forwarding a message"));
    control_ask(control, "log", "{'level':'debug'}");
    client_ask(client, "2", NULL, "echo", NULL);
    daemon_wait_log(daemon, "forwarding a message");
    expect_member(control_ask(control, "status", NULL), "log_level", "'debug'");
}

/* --- events --- */

static void expect_event(struct client *control, const char *name, const char *of)
{
    struct span line = client_line(control);

    expect_member(line, "method", "'event'");
    expect_member(line, "params.event", test_format("'%s'", name));
    ck_assert_msg(strncmp(json_text(json_get(line, "params.of")).data, of, strlen(of)) == 0, "%.*s",
                  SHOWN(line));
}

TEST(control_events_follow_one_another)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1, .limits = "'max_restarts':1");
    struct client *control = control_connect(daemon), *client;

    steps_without("they are events, too");
    control_wait(control, "status", "phase", "'serving'");
    control_ask(control, "events", NULL);
    client = client_connect(daemon);
    expect_event(control, "connected", "client=1");
    client_crash(client, "1", NULL, NULL);
    expect_event(control, "exited", "worker=1");
    expect_event(control, "started", "worker=1 pid=");
    client_close(client);
    expect_event(control, "disconnected", "client=1");
    client_send(control, "{'id':'d','method':'drain','params':{'worker':1}}");
    expect_event(control, "drained", "worker=1");
    client_result(control, "\"d\"");
}

/* A reader of events that does not read is cut; the daemon waits for nobody. */
TEST(control_client_that_does_not_read_is_cut)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1, .limits = "'max_output_queue':4096");
    struct client *control = control_connect(daemon), *lazy = control_connect(daemon), *client;

    control_ask(lazy, "events", NULL);
    control_ask(control, "log", "{'level':'debug'}");
    for (int i = 0; !daemon_logged(daemon, "control=2\\] disconnected: it does not read"); i++) {
        ck_assert_int_lt(i, 20000);
        client = client_connect(daemon);
        client_ask(client, "1", NULL, "echo", NULL);
        client_close(client);
    }
    expect_member(control_ask(control, "status", NULL), "control_clients", "1");
}

/* --- many --- */

TEST(control_clients_have_places_of_their_own)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1, .limits = "'max_connections':1");
    struct client *client = client_connect(daemon), *controls[16], *more;

    client_ask(client, "1", NULL, "echo", NULL);
    for (size_t i = 0; i < COUNT(controls); i++) {
        controls[i] = control_connect(daemon);
        control_ask(controls[i], "status", NULL);
    }
    more = control_connect(daemon);
    client_expect_eof(more);
    client_close(controls[0]);
    control_wait(controls[1], "status", "control_clients", "15");
    control_ask(control_connect(daemon), "status", NULL);
}

/* The shutdown reaches the events, and ends the connection. */
TEST(control_clients_end_with_the_daemon)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon);

    steps_without("they are events, too");
    control_wait(control, "status", "phase", "'serving'");
    control_ask(control, "events", NULL);
    daemon_signal(daemon, SIGTERM);
    expect_event(control, "exited", "worker=1");
    client_expect_eof(control);
    client_close(control);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
