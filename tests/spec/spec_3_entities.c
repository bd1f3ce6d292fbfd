/* Specification, chapter 3: the daemon, its clients, workers, sessions and requests. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"

TEST(spec_3_1_1_reads_configuration_at_startup)
{
    struct client *client = client_connect(START(.args = "'--name','from-the-file'"));
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", "'from-the-file'");
}

TEST(spec_3_1_2_spawns_the_workers_of_every_pool)
{
    long pids[6];
    struct daemon *daemon =
        START(.pools = POOL("a", 2, "'--name','a'") "," POOL("b", 3, "'--name','b'"));
    daemon_wait_workers(daemon, 5);
    client_meet_workers(client_connect(daemon), 5, pids);
}

TEST(spec_3_1_2_monitors_workers)
{
    pid_t workers[2];
    struct daemon *daemon = START(.instances = 2);
    daemon_wait_workers(daemon, 2);
    ck_assert_uint_eq(daemon_workers(daemon, workers, 2), 2);
    kill(workers[0], SIGKILL);
    wait_gone(workers[0]);
    daemon_wait_workers(daemon, 2);
    ck_assert(proc_alive(workers[1]));
}

TEST(spec_3_1_4_routes_in_both_directions)
{
    struct client *client = client_connect(START(.instances = 2));
    client_request(client, "1", "s", "notify", "{'n':1}");
    client_expect_note(client, "s", 0);
    client_result(client, "1");
    client_request(client, "2", "s", "ask", "{'id':'q','params':[1]}");
    client_expect(client, "{'jsonrpc':'2.0','id':'q','sessionId':'s','method':'question',"
                          "'params':[1]}");
    client_send(client, "{'jsonrpc':'2.0','id':'q','result':'yes'}");
    client_expect(client, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':"
                          "{'jsonrpc':'2.0','id':'q','result':'yes'}}");
}

TEST(spec_3_1_5_runs_in_one_thread)
{
    const char *wrapper = getenv("TEST_WRAPPER_THREADS");
    long others = wrapper != NULL ? strtol(wrapper, NULL, 10) : 0;
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 2);
    client_expect_quiet(client_connect(daemon));
    ck_assert_int_eq(proc_status(daemon->pid, "Threads"), 1 + others);
}

/* One worker does not read its megabyte, and one client does not read its three: the others are
 * served. */
TEST(spec_3_1_5_nothing_blocks)
{
    struct daemon *daemon =
        START(.pools = POOL("deaf", 1, "") "," POOL("flood", 1, "") "," POOL("other", 1, ""));
    struct client *idle = client_connect_small(daemon), *other = client_connect(daemon);
    client_send(idle, "{'id':1,'pool':'deaf','sessionId':'d','method':'stop_reading'}");
    client_result(idle, "1");
    client_send(idle, "{'sessionId':'d','method':'echo','params':'%s'}", test_fill('x', 900000));
    for (int i = 0; i < 1000; i++) {
        if (i == 500) {
            client_send(idle, "{'id':2,'pool':'flood','sessionId':'f','method':'notify',"
                              "'params':{'n':3000,'size':1000}}");
            ck_assert(wait_fd(idle->in, POLLIN, deadline_usual()));
        }
        client_send(other, "{'id':%d,'pool':'other','method':'plain','params':%d}", i, i);
        client_expect(other, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    }
    client_abort(idle);
}

TEST(spec_3_2_3_client_has_many_sessions)
{
    struct client *client = client_connect(START(.instances = 3));
    for (int i = 0; i < 50; i++) {
        client_request(client, "1", test_format("s%d", i), "plain", "0");
        client_expect(client, "{'jsonrpc':'2.0','id':1,'sessionId':'s%d','result':0}", i);
    }
}

/* The second client gets the descriptor of the first, and none of its messages. */
TEST(spec_3_2_4_client_with_a_reused_descriptor_is_another_client)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    int fds = client_settled_fds(daemon, 1);
    struct client *first = client_connect(daemon);
    client_ask(first, "1", "s", "hold", NULL);
    client_request(first, "2", "s", "echo", "'secret'");
    client_abort(first);
    daemon_wait_fds(daemon, fds);
    struct client *second = client_connect(daemon);
    client_ask(second, "3", NULL, "release", NULL);
    client_ask(second, "4", NULL, "notify", "{'session':'s'}");
    expect_member(client_ask(second, "2", NULL, "echo", "'mine'"), "params", "'mine'");
}

TEST(spec_3_3_1_worker_has_pipes_and_is_a_child)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    struct span born = client_ask(client, "1", NULL, "environment", NULL);
    ck_assert_int_eq(json_number(born, "ppid"), daemon->pid);
    expect_member(born, "fds.0", "{'fd':0,'kind':'pipe'}");
    expect_member(born, "fds.1", "{'fd':1,'kind':'pipe'}");
}

TEST(spec_3_3_6_worker_ids_are_unique_integers)
{
    pid_t workers[4];
    long ids[4];
    struct daemon *daemon = START(.instances = 4);
    daemon_wait_workers(daemon, 4);
    ck_assert_uint_eq(daemon_workers(daemon, workers, 4), 4);
    for (int i = 0; i < 4; i++) {
        const char *line = daemon_wait_log(daemon, test_format("\\[worker=[0-9]+ pid=%ld pool=",
                                                               (long)workers[i]));
        ids[i] = strtol(strstr(line, "[worker=") + 8, NULL, 10);
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(ids[i], ids[j]);
    }
}

/* Two spellings of one string name one session; another string names another. */
TEST(spec_3_4_1_session_is_identified_by_its_string)
{
    long pids[3];
    struct client *client = client_connect(START(.instances = 3));
    client_meet_workers(client, 3, pids);
    long pid = client_pid(client, "1", "ab");
    ck_assert_int_eq(client_pid(client, "2", "a\\u0062"), pid);
    ck_assert_int_eq(client_pid(client, "3", "\\u0061b"), pid);
    ck_assert_int_ne(client_pid(client, "4", "AB"), pid);
    ck_assert_int_ne(client_pid(client, "5", "ab "), pid);
    ck_assert_int_eq(client_pid(client, "6", "ab"), pid);
}

TEST(spec_3_4_2_session_is_bound_to_one_worker)
{
    struct client *client = client_connect(START(.instances = 3));
    long pid = client_pid(client, "1", "s");
    for (int i = 0; i < 20; i++) {
        client_pid(client, "2", NULL);
        ck_assert_int_eq(client_pid(client, "1", "s"), pid);
    }
}

TEST(spec_3_4_3_session_is_owned_by_one_client)
{
    struct daemon *daemon = START(.instances = 2);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(owner, "1", "s");
    ck_assert_int_eq(client_pid(other, "1", "s"), pid);
    client_ask(other, "2", "s", "notify", "{'n':2}");
    client_expect_note(owner, "s", 0);
    client_expect_note(owner, "s", 1);
    client_expect_quiet(other);
}

/* The session's id begins a new session, which the next client owns. */
TEST(spec_3_4_4_session_ends_with_its_worker)
{
    struct daemon *daemon = START(.instances = 2);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(owner, "1", "s");
    kill((pid_t)pid, SIGKILL);
    wait_gone(pid);
    daemon_wait_workers(daemon, 2);
    ck_assert_int_ne(client_pid(other, "1", "s"), pid);
    client_request(other, "2", "s", "notify", "{'n':1}");
    client_expect_note(other, "s", 0);
    client_result(other, "2");
    client_expect_quiet(owner);
}

TEST(spec_3_4_5_session_ends_with_its_owner)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 2);
    int fds = client_settled_fds(daemon, 2) + 1;
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_expect_quiet(other);
    client_pid(owner, "1", "s");
    client_close(owner);
    daemon_wait_fds(daemon, fds);
    client_pid(other, "1", "s");
    client_request(other, "2", "s", "notify", "{'n':1}");
    client_expect_note(other, "s", 0);
    client_result(other, "2");
}

TEST(spec_3_5_requests_with_and_without_session_and_params)
{
    struct client *client = client_connect(START(.instances = 2));
    client_ask(client, "1", NULL, "echo", NULL);
    client_ask(client, "2", NULL, "echo", "{}");
    client_ask(client, "3", "s", "echo", NULL);
    client_ask(client, "4", "s", "echo", "[1,2]");
    client_ask(client, "'text'", "s", "echo", "[1,2]");
}
