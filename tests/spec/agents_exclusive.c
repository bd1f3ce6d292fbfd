/* Clients and workers that know nothing of the bus (protocol.md, "Pools for MCP, ACP and LSP"): a
 * process for each client. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

#define AGENTS(instances, keys)                                                                    \
    "{'id':'p','command':'@WORKER@','instances':" #instances ",'clients':'exclusive'" keys "}"

#define SAY(message) "{'method':'say_only','params':{'message':" message "}}"

START_TEST(agents_each_client_has_a_process)
{
    struct daemon daemon;
    struct client clients[3];
    long pids[3];
    START(&daemon, .pools = AGENTS(3, ""));
    daemon_wait_workers(&daemon, 0);
    for (int i = 0; i < 3; i++) {
        client_connect(&clients[i], &daemon);
        pids[i] = client_pid(&clients[i], "1", NULL);
        daemon_wait_workers(&daemon, (size_t)i + 1);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    for (int i = 0; i < 3; i++) { /* whatever it says is its client's */
        client_send(&clients[i], SAY("{'method':'n','params':%d}"), i);
        client_send(&clients[i], SAY("{'id':'q','method':'n','params':{'sessionId':'any'}}"));
    }
    for (int i = 0; i < 3; i++) {
        client_expect(&clients[i], "{'method':'n','params':%d}", i);
        client_expect(&clients[i], "{'id':'q','method':'n','params':{'sessionId':'any'}}");
        client_expect_quiet(&clients[i]);
        client_close(&clients[i]);
    }
    daemon_wait_workers(&daemon, 0);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_next_client_gets_a_fresh_process)
{
    struct daemon daemon;
    struct client client;
    long before = 0;
    START(&daemon, .pools = AGENTS(1, ""), .limits = "'max_restarts':0");
    for (int i = 0; i < 4; i++) {
        client_connect(&client, &daemon);
        long pid = client_pid(&client, "1", NULL);
        ck_assert_int_ne(pid, before);
        before = pid;
        client_close(&client);
    }
    ck_assert(!daemon_logged(&daemon, "restarting|failed"));
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_spare_processes_are_kept)
{
    struct daemon daemon;
    struct client clients[3];
    START(&daemon, .pools = AGENTS(4, ",'spare':2"));
    daemon_wait_workers(&daemon, 2);
    for (int i = 0; i < 3; i++) {
        client_connect(&clients[i], &daemon);
        client_expect_quiet(&clients[i]);
        daemon_wait_workers(&daemon, i < 2 ? (size_t)i + 3 : 4);
    }
    client_close(&clients[0]);
    daemon_wait_workers(&daemon, 4);
    client_close(&clients[1]);
    client_close(&clients[2]);
    daemon_wait_workers(&daemon, 2);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_protocol_mcp_has_one_spare)
{
    struct daemon daemon;
    struct client client;
    START(&daemon,
          .pools = "{'id':'p','command':'@WORKER@','instances':5,'protocol':'mcp'}");
    daemon_wait_workers(&daemon, 1);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_wait_workers(&daemon, 2);
    client_close(&client);
    daemon_wait_workers(&daemon, 1);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_client_waits_for_a_process)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .pools = AGENTS(1, ",'busy_timeout_sec':600"));
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    long pid = client_pid(&first, "1", NULL);
    client_request(&second, "1", NULL, "echo", NULL);
    client_expect_quiet(&first);
    client_close(&first);
    ck_assert_int_ne(json_long(json_get(client_result(&second, "1"), "pid"), 0), pid);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_client_is_refused_in_the_end)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .pools = AGENTS(1, ",'busy_timeout_sec':1"));
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_expect_quiet(&first);
    int64_t start = now_ms();
    client_send(&second, "{'method':'lost'}");
    client_request(&second, "1", NULL, "echo", NULL);
    client_error(&second, "1", -32000, "busy_timeout_sec");
    ck_assert_int_ge(now_ms() - start, 2000); /* each message has its time */
    client_close(&first);
    client_expect_quiet(&second);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

/* End of input first, then two seconds, then SIGTERM, then SIGKILL. */
START_TEST(agents_process_of_a_gone_client_is_ended)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = "{'id':'p','command':'@WORKER@','instances':2,'clients':'exclusive',"
                            "'args':['--stay']}",
          .limits = "'drain_timeout_sec':1");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    int64_t start = now_ms();
    client_close(&client);
    daemon_wait_log(&daemon, "killed by signal 15");
    ck_assert_int_ge(now_ms() - start, 2000);
    client_connect(&client, &daemon);
    client_ask(&client, "1", NULL, "on_sigterm", "{'do':'ignore'}");
    start = now_ms();
    client_close(&client);
    daemon_wait_log(&daemon, "killed by signal 9");
    ck_assert_int_ge(now_ms() - start, 3000);
    daemon_wait_workers(&daemon, 0);
    daemon_stop(&daemon);
}
END_TEST

/* Everything that the client sent arrives before the end of input. */
START_TEST(agents_last_words_of_a_client_arrive)
{
    enum { SIZE = 3000000 };
    static char bulk[SIZE];
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = AGENTS(1, ""), .limits = "'max_input_buffer':4000000");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    memset(bulk, 'x', SIZE - 1);
    client_send(&client, "{'method':'no_answer','params':'%s'}", bulk);
    client_send(&client, "{'method':'write_stderr','params':{'text':'the last word'}}");
    client_close(&client);
    daemon_wait_log(&daemon, "the last word");
    daemon_wait_workers(&daemon, 0);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_crash_is_a_crash)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .pools = AGENTS(2, ""), .limits = "'max_restarts':2");
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&client, "1", NULL), of_other = client_pid(&other, "1", NULL);
    client_request(&client, "2", NULL, "die", NULL);
    client_error(&client, "2", -32000, "worker exited before answering");
    long again = client_pid(&client, "3", NULL);
    ck_assert(again != pid && again != of_other);
    ck_assert_int_eq(client_pid(&other, "2", NULL), of_other);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* As language servers do when they are told to. */
START_TEST(agents_process_that_ends_with_its_client_is_no_crash)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = AGENTS(1, ""), .limits = "'max_restarts':1");
    for (int i = 0; i < 4; i++) {
        client_connect(&client, &daemon);
        client_request(&client, "1", NULL, "die", "{'code':0}");
        client_error(&client, "1", -32000, "worker exited");
        client_close(&client);
        client_connect(&client, &daemon);
        client_pid(&client, "2", NULL);
        client_close(&client);
    }
    ck_assert(!daemon_logged(&daemon, "failed"));
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_command_that_fails_later)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = "{'id':'p','command':'@WORKER@','instances':1,'clients':'exclusive',"
                            "'args':['--exit','3']}",
          .limits = "'max_restarts':0");
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "echo", NULL);
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
}
END_TEST

START_TEST(agents_shutdown_with_clients_and_spares)
{
    struct daemon daemon;
    struct client client, waiting;
    START(&daemon, .pools = AGENTS(2, ",'spare':1"));
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_wait_workers(&daemon, 2);
    client_connect(&waiting, &daemon);
    client_expect_quiet(&waiting);
    daemon_stop(&daemon);
    client_expect_eof(&client);
    client_expect_eof(&waiting);
    client_close(&client);
    client_close(&waiting);
}
END_TEST

/* --- many at random --- */

/* Clients come and go; a process never has two, and nothing is left over. */
START_TEST(agents_clients_come_and_go)
{
    enum { SLOTS = 100, ROUNDS = 1200 };
    struct daemon daemon;
    struct client clients[SLOTS];
    long pids[SLOTS] = {0};
    unsigned random = 1;
    START(&daemon, .pools = AGENTS(104, ",'spare':2"), .limits = "'max_restarts':0");
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1664525u + 1013904223u;
        unsigned i = (random >> 16) % SLOTS;
        if (pids[i] == 0) {
            client_connect(&clients[i], &daemon);
            pids[i] = client_pid(&clients[i], "1", NULL);
            for (unsigned j = 0; j < SLOTS; j++)
                ck_assert(j == i || pids[j] != pids[i]);
        } else if (random >> 30 == 0) {
            client_send(&clients[i], "{'id':2,'method':'no_answer'}");
            client_abort(&clients[i]);
            pids[i] = 0;
        } else {
            ck_assert_int_eq(client_pid(&clients[i], "3", NULL), pids[i]);
            client_close(&clients[i]);
            pids[i] = 0;
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (pids[i] != 0)
            client_close(&clients[i]);
    }
    daemon_wait_workers(&daemon, 2);
    daemon_check_memory(&daemon, 8192);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agents: exclusive");
    TCase *tcase = harness_case(suite, "exclusive");
    tcase_add_test(tcase, agents_each_client_has_a_process);
    tcase_add_test(tcase, agents_next_client_gets_a_fresh_process);
    tcase_add_test(tcase, agents_spare_processes_are_kept);
    tcase_add_test(tcase, agents_protocol_mcp_has_one_spare);
    tcase_add_test(tcase, agents_client_waits_for_a_process);
    tcase_add_test(tcase, agents_client_is_refused_in_the_end);
    tcase_add_test(tcase, agents_process_of_a_gone_client_is_ended);
    tcase_add_test(tcase, agents_last_words_of_a_client_arrive);
    tcase_add_test(tcase, agents_crash_is_a_crash);
    tcase_add_test(tcase, agents_process_that_ends_with_its_client_is_no_crash);
    tcase_add_test(tcase, agents_command_that_fails_later);
    tcase_add_test(tcase, agents_shutdown_with_clients_and_spares);
    tcase_add_test(tcase, agents_clients_come_and_go);
    return harness_run(suite);
}
