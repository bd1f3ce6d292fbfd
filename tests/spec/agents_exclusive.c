/* Pools for MCP, ACP and LSP (protocol.md): a process for each client. */
#include "build_config.h"

#include "harness.h"

#define AGENTS(instances, keys)                                                                    \
    "{'id':'p','command':'@WORKER@','instances':" #instances ",'clients':'exclusive'" keys "}"

#define SAY(message) "{'method':'say_only','params':{'message':" message "}}"

TEST(agents_each_client_has_a_process)
{
    struct client *clients[3];
    long pids[3];
    struct daemon *daemon = START(.pools = AGENTS(3, ""));
    daemon_wait_workers(daemon, 0);
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(daemon);
        pids[i] = client_pid(clients[i], "1", NULL);
        daemon_wait_workers(daemon, (size_t)i + 1);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    for (int i = 0; i < 3; i++) { /* all its messages reach its client */
        client_send(clients[i], SAY("{'method':'n','params':%d}"), i);
        client_send(clients[i], SAY("{'id':'q','method':'n','params':{'sessionId':'any'}}"));
    }
    for (int i = 0; i < 3; i++) {
        client_expect(clients[i], "{'method':'n','params':%d}", i);
        client_expect(clients[i], "{'id':'q','method':'n','params':{'sessionId':'any'}}");
        client_expect_quiet(clients[i]);
        client_close(clients[i]);
    }
    daemon_wait_workers(daemon, 0);
}

TEST(agents_next_client_gets_a_fresh_process)
{
    long before = 0;
    struct daemon *daemon = START(.pools = AGENTS(1, ""), .limits = "'max_restarts':0");
    for (int i = 0; i < 4; i++) {
        struct client *client = client_connect(daemon);
        long pid = client_pid(client, "1", NULL);
        ck_assert_int_ne(pid, before);
        before = pid;
        client_close(client);
    }
    ck_assert(!daemon_logged(daemon, "restarting|failed"));
}

TEST(agents_spare_processes_are_kept)
{
    struct client *clients[3];
    struct daemon *daemon = START(.pools = AGENTS(4, ",'spare':2"));
    daemon_wait_workers(daemon, 2);
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(daemon);
        client_expect_quiet(clients[i]);
        daemon_wait_workers(daemon, i < 2 ? (size_t)i + 3 : 4);
    }
    client_close(clients[0]);
    daemon_wait_workers(daemon, 4);
    client_close(clients[1]);
    client_close(clients[2]);
    daemon_wait_workers(daemon, 2);
}

TEST(agents_protocol_mcp_has_one_spare)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':5,'protocol':'mcp'}");
    daemon_wait_workers(daemon, 1);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    daemon_wait_workers(daemon, 2);
    client_close(client);
    daemon_wait_workers(daemon, 1);
}

TEST(agents_client_waits_for_a_process)
{
    struct daemon *daemon = START(.pools = AGENTS(1, ",'busy_timeout_sec':600"));
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    long pid = client_pid(first, "1", NULL);
    client_request(second, "1", NULL, "echo", NULL);
    client_expect_quiet(first);
    client_close(first);
    ck_assert_int_ne(json_number(client_result(second, "1"), "pid"), pid);
}

TEST(agents_client_is_refused_in_the_end)
{
    struct daemon *daemon = START(.pools = AGENTS(1, ",'busy_timeout_sec':1"));
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_expect_quiet(first);
    int64_t start = now_ms();
    client_send(second, "{'method':'lost'}");
    client_request(second, "1", NULL, "echo", NULL);
    client_error(second, "1", -32000, "busy_timeout_sec");
    ck_assert_int_ge(now_ms() - start, 2000); /* one second for each message */
    client_close(first);
    client_expect_quiet(second);
}

/* The process gets the end of input, SIGTERM after two seconds, and then SIGKILL. */
TEST(agents_process_of_a_gone_client_is_ended)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':2,'clients':'exclusive',"
                       "'args':['--stay']}",
              .limits = "'drain_timeout_sec':1");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    int64_t start = now_ms();
    client_close(client);
    daemon_wait_log(daemon, "killed by SIGTERM");
    ck_assert_int_ge(now_ms() - start, 2000);
    client = client_connect(daemon);
    client_ask(client, "1", NULL, "on_sigterm", "{'do':'ignore'}");
    start = now_ms();
    client_close(client);
    daemon_wait_log(daemon, "killed by SIGKILL");
    ck_assert_int_ge(now_ms() - start, 3000);
    daemon_wait_workers(daemon, 0);
}

/* All messages of the client arrive before the end of input. */
TEST(agents_last_messages_of_a_client_arrive)
{
    struct daemon *daemon = START(.pools = AGENTS(1, ""), .limits = "'max_input_buffer':4000000");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    client_send(client, "{'method':'no_answer','params':'%s'}", test_fill('x', 3000000));
    client_send(client, "{'method':'write_stderr','params':{'text':'the last word'}}");
    client_close(client);
    daemon_wait_log(daemon, "the last word");
    daemon_wait_workers(daemon, 0);
}

TEST(agents_crashed_process_is_replaced)
{
    struct daemon *daemon = START(.pools = AGENTS(2, ""), .limits = "'max_restarts':2");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(client, "1", NULL), of_other = client_pid(other, "1", NULL);
    client_crash(client, "2", NULL, NULL);
    long again = client_pid(client, "3", NULL);
    ck_assert(again != pid && again != of_other);
    ck_assert_int_eq(client_pid(other, "2", NULL), of_other);
}

/* Language servers exit on a client's request. */
TEST(agents_process_that_ends_with_its_client_is_no_crash)
{
    struct daemon *daemon = START(.pools = AGENTS(1, ""), .limits = "'max_restarts':1");
    for (int i = 0; i < 3; i++) {
        struct client *client = client_connect(daemon);
        client_crash(client, "1", NULL, "{'code':0}");
        client_close(client);
        client = client_connect(daemon);
        client_pid(client, "2", NULL);
        client_close(client);
    }
    ck_assert(!daemon_logged(daemon, "failed"));
}

TEST(agents_command_that_fails_later)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':1,'clients':'exclusive',"
                       "'args':['--exit','3']}",
              .limits = "'max_restarts':0");
    struct client *client = client_connect(daemon);
    client_request(client, "1", NULL, "echo", NULL);
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

TEST(agents_shutdown_with_clients_and_spares)
{
    struct daemon *daemon = START(.pools = AGENTS(2, ",'spare':1"));
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    daemon_wait_workers(daemon, 2);
    struct client *waiting = client_connect(daemon);
    client_expect_quiet(waiting);
    daemon_stop(daemon);
    client_expect_eof(client);
    client_expect_eof(waiting);
}

/* --- many at random --- */

/* No process ever serves two clients, and none is left. */
TEST(agents_clients_come_and_go)
{
    enum { SLOTS = 100, ROUNDS = 600 };
    struct client *clients[SLOTS];
    long pids[SLOTS] = {0};
    unsigned random = 1;
    struct daemon *daemon = START(.pools = AGENTS(104, ",'spare':2"), .limits = "'max_restarts':0");
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1664525u + 1013904223u;
        unsigned i = (random >> 16) % SLOTS;
        if (pids[i] == 0) {
            clients[i] = client_connect(daemon);
            pids[i] = client_pid(clients[i], "1", NULL);
            for (unsigned j = 0; j < SLOTS; j++)
                ck_assert(j == i || pids[j] != pids[i]);
        } else if (random >> 30 == 0) {
            client_send(clients[i], "{'id':2,'method':'no_answer'}");
            client_abort(clients[i]);
            pids[i] = 0;
        } else {
            ck_assert_int_eq(client_pid(clients[i], "3", NULL), pids[i]);
            client_close(clients[i]);
            pids[i] = 0;
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (pids[i] != 0)
            client_close(clients[i]);
    }
    daemon_wait_workers(daemon, 2);
    daemon_check_memory(daemon, 8192);
}

#define SERVERS(keys)                                                                              \
    "{'id':'p','command':'@WORKER@','instances':4,'protocol':'lsp','framing':'ndjson','spare'"     \
    ":" keys "}"

/* The exit that an editor asks for by "exit" (LSP) ends its connection, as on a pipe. No process is
 * started in place of its own. */
TEST_ROWS(agents_lsp_exit_is_the_end, 2)
{
    struct daemon *daemon = START(.pools = row == 0 ? SERVERS("0") : SERVERS("1"));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(client, "1", NULL), of_other = client_pid(other, "1", NULL);
    client_send(client, "{'jsonrpc':'2.0','method':'die','params':{'code':0}}");
    client_expect_eof(client);
    wait_gone(pid);
    ck_assert_int_eq(client_pid(other, "2", NULL), of_other);
    client_expect_quiet(client_connect(daemon));
    ck_assert(!daemon_logged(daemon, "restarting"));
    client_close(other);
    daemon_wait_workers(daemon, row == 0 ? 1 : 2);
}

/* A new process knows nothing of the editor's documents: the editor has to begin again. */
TEST(agents_lsp_crash_ends_the_connection)
{
    struct daemon *daemon = START(.pools = SERVERS("1"), .limits = "'max_restarts':2");
    for (int i = 0; i < 4; i++) { /* more than max_restarts */
        struct client *client = client_connect(daemon);
        client_request(client, "1", NULL, "no_answer", NULL);
        client_request(client, "2", NULL, "die", NULL);
        client_error(client, "1", -32000, DIED);
        client_error(client, "2", -32000, DIED);
        client_expect_eof(client);
        client_close(client);
    }
}

/* In stdio mode the daemon ends with the only server. */
TEST(agents_lsp_exit_ends_stdio_mode)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .pools = SERVERS("0"));
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    client_send(client, "{'jsonrpc':'2.0','method':'die','params':{'code':0}}");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* A request that took too long is cancelled as in LSP. */
TEST(agents_lsp_requests_are_cancelled)
{
    struct daemon *daemon = START(.pools = SERVERS("0,'request_timeout_sec':1"));
    struct client *client = client_connect(daemon);
    client_request(client, "4", NULL, "no_answer", NULL);
    client_error(client, "4", -32001, "timed out");
    struct span note = client_ask(client, "1", NULL, "last_note", NULL);
    ck_assert_msg(span_is(note, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\","
                                "\"params\":{\"id\":4}}"),
                  "%.*s", SHOWN(note));
}

/* Its place in the line is free at once, and no process is started for it. */
TEST(agents_client_that_leaves_while_it_waits_gets_no_process)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','args':['--record','@DIR@/test-record'],"
                       "'instances':1,'clients':'exclusive','busy_timeout_sec':600}");
    struct client *first = client_connect(daemon), *leaving = client_connect(daemon);
    struct client *half_closed = client_connect(daemon);
    struct text *record = test_text();
    client_pid(first, "1", NULL);
    client_request(leaving, "1", NULL, "echo", NULL);
    client_close(leaving);
    daemon_wait_log(daemon, "client=2.*disconnected: hung up");
    client_request(half_closed, "1", NULL, "echo", NULL);
    client_half_close(half_closed);
    client_close(first);
    client_result(half_closed, "1");
    client_expect_eof(half_closed);
    ck_assert(read_file(record, test_format("%s/test-record", daemon->dir)));
    ck_assert_ptr_eq(strchr(strchr(record->data, '\n') + 1, '\n') + 1, record->data + record->len);
}
