/* Specification, chapter 3: the daemon, its clients, workers, sessions and requests. */
#include "build_config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

START_TEST(spec_3_1_1_reads_configuration_at_startup)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .args = "'--name','from-the-file'");
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", NULL, "echo", NULL);
    ck_assert(span_is(json_get(result, "worker"), "\"from-the-file\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_1_2_spawns_the_workers_of_every_pool)
{
    struct daemon daemon;
    struct client client;
    long pids[6];
    START(&daemon, .pools = POOL("a", 2, "'--name','a'") "," POOL("b", 3, "'--name','b'"));
    daemon_wait_workers(&daemon, 5);
    client_connect(&client, &daemon);
    client_meet_workers(&client, 5, pids);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_1_2_monitors_workers)
{
    struct daemon daemon;
    pid_t workers[2];
    START(&daemon, .instances = 2);
    daemon_wait_workers(&daemon, 2);
    ck_assert_uint_eq(daemon_workers(&daemon, workers, 2), 2);
    kill(workers[0], SIGKILL);
    wait_gone(workers[0]);
    daemon_wait_workers(&daemon, 2);
    ck_assert(proc_alive(workers[1]));
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_1_4_routes_in_both_directions)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "notify", "{'n':1}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_result(&client, "1");
    client_request(&client, "2", "s", "ask", "{'id':'q','params':[1]}");
    client_expect(&client, "{'jsonrpc':'2.0','id':'q','sessionId':'s','method':'question',"
                           "'params':[1]}");
    client_send(&client, "{'jsonrpc':'2.0','id':'q','result':'yes'}");
    client_expect(&client, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':"
                           "{'jsonrpc':'2.0','id':'q','result':'yes'}}");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_1_5_runs_in_one_thread)
{
    struct daemon daemon;
    struct client client;
    const char *wrapper = getenv("TEST_WRAPPER_THREADS");
    long others = wrapper != NULL ? strtol(wrapper, NULL, 10) : 0;
    if (!proc_available())
        return;
    START(&daemon, .instances = 2);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    ck_assert_int_eq(proc_status(daemon.pid, "Threads"), 1 + others);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A worker that does not read its megabyte, and a client that does not read its three, hold up
 * nobody. */
START_TEST(spec_3_1_5_nothing_blocks)
{
    struct daemon daemon;
    struct client idle, other;
    struct text big = {0};
    START(&daemon, .pools = POOL("deaf", 1, "") "," POOL("flood", 1, "") "," POOL("other", 1, ""));
    client_connect_small(&idle, &daemon);
    client_connect(&other, &daemon);
    client_send(&idle, "{'id':1,'pool':'deaf','sessionId':'d','method':'stop_reading'}");
    client_result(&idle, "1");
    text_printf(&big, "{\"sessionId\":\"d\",\"method\":\"echo\",\"params\":\"");
    text_fill(&big, 'x', 900000);
    text_printf(&big, "\"}\n");
    client_send_bytes(&idle, big.data, big.len);
    for (int i = 0; i < 1000; i++) {
        if (i == 500) {
            client_send(&idle, "{'id':2,'pool':'flood','sessionId':'f','method':'notify',"
                               "'params':{'n':3000,'size':1000}}");
            ck_assert(wait_fd(idle.in, POLLIN, deadline_usual()));
        }
        client_send(&other, "{'id':%d,'pool':'other','method':'plain','params':%d}", i, i);
        client_expect(&other, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    }
    text_free(&big);
    client_abort(&idle);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_2_3_client_has_many_sessions)
{
    struct daemon daemon;
    struct client client;
    char session[16];
    START(&daemon, .instances = 3);
    client_connect(&client, &daemon);
    for (int i = 0; i < 50; i++) {
        snprintf(session, sizeof session, "s%d", i);
        client_request(&client, "1", session, "plain", "0");
        client_expect(&client, "{'jsonrpc':'2.0','id':1,'sessionId':'s%d','result':0}", i);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The next client gets the descriptor of the one before it, and nothing that was meant for it. */
START_TEST(spec_3_2_4_client_with_a_reused_descriptor_is_another_client)
{
    struct daemon daemon;
    struct client first, second;
    if (!proc_available())
        return;
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    int fds = client_settled_fds(&daemon, 1);
    client_connect(&first, &daemon);
    client_ask(&first, "1", "s", "hold", NULL);
    client_request(&first, "2", "s", "echo", "'secret'");
    client_abort(&first);
    daemon_wait_fds(&daemon, fds);
    client_connect(&second, &daemon);
    client_ask(&second, "3", NULL, "release", NULL);
    client_ask(&second, "4", NULL, "notify", "{'session':'s'}");
    struct span result = client_ask(&second, "2", NULL, "echo", "'mine'");
    ck_assert(span_is(json_get(result, "params"), "\"mine\""));
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_3_1_worker_has_pipes_and_is_a_child)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    struct span born = client_ask(&client, "1", NULL, "environment", NULL);
    ck_assert_int_eq(json_long(json_get(born, "ppid"), -1), daemon.pid);
    ck_assert(span_is(json_get(born, "fds.0"), "{\"fd\":0,\"kind\":\"pipe\"}"));
    ck_assert(span_is(json_get(born, "fds.1"), "{\"fd\":1,\"kind\":\"pipe\"}"));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_3_6_worker_ids_are_unique_integers)
{
    struct daemon daemon;
    pid_t workers[4];
    long ids[4];
    START(&daemon, .instances = 4);
    daemon_wait_workers(&daemon, 4);
    ck_assert_uint_eq(daemon_workers(&daemon, workers, 4), 4);
    for (int i = 0; i < 4; i++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "\\[worker=[0-9]+ pid=%ld\\]", (long)workers[i]);
        const char *line = daemon_wait_log(&daemon, pattern);
        ids[i] = strtol(strstr(line, "[worker=") + 8, NULL, 10);
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(ids[i], ids[j]);
    }
    daemon_stop(&daemon);
}
END_TEST

/* Found by two names of one string, not by another string; seen by who gets the notification. */
START_TEST(spec_3_4_1_session_is_identified_by_its_string)
{
    struct daemon daemon;
    struct client client;
    long pids[3];
    START(&daemon, .instances = 3);
    client_connect(&client, &daemon);
    client_meet_workers(&client, 3, pids);
    long pid = client_pid(&client, "1", "ab");
    ck_assert_int_eq(client_pid(&client, "2", "a\\u0062"), pid);
    ck_assert_int_eq(client_pid(&client, "3", "\\u0061b"), pid);
    ck_assert_int_ne(client_pid(&client, "4", "AB"), pid);
    ck_assert_int_ne(client_pid(&client, "5", "ab "), pid);
    ck_assert_int_eq(client_pid(&client, "6", "ab"), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_4_2_session_is_bound_to_one_worker)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 3);
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", "s");
    for (int i = 0; i < 20; i++) {
        client_pid(&client, "2", NULL);
        ck_assert_int_eq(client_pid(&client, "1", "s"), pid);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_4_3_session_is_owned_by_one_client)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .instances = 2);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&owner, "1", "s");
    ck_assert_int_eq(client_pid(&other, "1", "s"), pid);
    client_ask(&other, "2", "s", "notify", "{'n':2}");
    client_expect(&owner,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_expect(&owner,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':1,'pad':''}}");
    client_expect_quiet(&other);
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* The worker that starts in its place does not know the session; the other one gets it or it gets
 * the next: in any case the session's messages are answered, and notifications come again. */
START_TEST(spec_3_4_4_session_ends_with_its_worker)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .instances = 2);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&owner, "1", "s");
    kill((pid_t)pid, SIGKILL);
    wait_gone(pid);
    daemon_wait_workers(&daemon, 2);
    ck_assert_int_ne(client_pid(&other, "1", "s"), pid);
    client_request(&other, "2", "s", "notify", "{'n':1}");
    client_expect(&other,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_result(&other, "2");
    client_expect_quiet(&owner);
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_4_5_session_ends_with_its_owner)
{
    struct daemon daemon;
    struct client owner, other;
    if (!proc_available())
        return;
    START(&daemon, .instances = 2);
    int fds = client_settled_fds(&daemon, 2);
    client_connect(&owner, &daemon);
    client_pid(&owner, "1", "s");
    client_close(&owner);
    daemon_wait_fds(&daemon, fds);
    client_connect(&other, &daemon);
    client_pid(&other, "1", "s");
    client_request(&other, "2", "s", "notify", "{'n':1}");
    client_expect(&other,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_result(&other, "2");
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_3_5_requests_with_and_without_session_and_params)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2);
    client_connect(&client, &daemon);
    client_ask(&client, "1", NULL, "echo", NULL);
    client_ask(&client, "2", NULL, "echo", "{}");
    client_ask(&client, "3", "s", "echo", NULL);
    client_ask(&client, "4", "s", "echo", "[1,2]");
    client_ask(&client, "'text'", "s", "echo", "[1,2]");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 3: entities");
    TCase *daemon = harness_case(suite, "3.1 daemon");
    tcase_add_test(daemon, spec_3_1_1_reads_configuration_at_startup);
    tcase_add_test(daemon, spec_3_1_2_spawns_the_workers_of_every_pool);
    tcase_add_test(daemon, spec_3_1_2_monitors_workers);
    tcase_add_test(daemon, spec_3_1_4_routes_in_both_directions);
    tcase_add_test(daemon, spec_3_1_5_runs_in_one_thread);
    tcase_add_test(daemon, spec_3_1_5_nothing_blocks);
    TCase *client = harness_case(suite, "3.2 client");
    tcase_add_test(client, spec_3_2_3_client_has_many_sessions);
    tcase_add_test(client, spec_3_2_4_client_with_a_reused_descriptor_is_another_client);
    TCase *worker = harness_case(suite, "3.3 worker");
    tcase_add_test(worker, spec_3_3_1_worker_has_pipes_and_is_a_child);
    tcase_add_test(worker, spec_3_3_6_worker_ids_are_unique_integers);
    TCase *session = harness_case(suite, "3.4 session");
    tcase_add_test(session, spec_3_4_1_session_is_identified_by_its_string);
    tcase_add_test(session, spec_3_4_2_session_is_bound_to_one_worker);
    tcase_add_test(session, spec_3_4_3_session_is_owned_by_one_client);
    tcase_add_test(session, spec_3_4_4_session_ends_with_its_worker);
    tcase_add_test(session, spec_3_4_5_session_ends_with_its_owner);
    TCase *request = harness_case(suite, "3.5 request");
    tcase_add_test(request, spec_3_5_requests_with_and_without_session_and_params);
    return harness_run(suite);
}
