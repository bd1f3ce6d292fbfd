/* Specification 7.1 and 7.2: workers that die, clients that go. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

static const char *const died = "worker exited before answering";

/* An idle worker's death is noticed without any message, and not only when its time is over; no
 * zombie stays. */
START_TEST(spec_7_1_1_exit_is_detected_and_reaped)
{
    struct daemon daemon;
    struct client client;
    pid_t worker;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':600");
    for (int i = 0; i < 2; i++) {
        daemon_wait_workers(&daemon, 1);
        ck_assert_uint_eq(daemon_workers(&daemon, &worker, 1), 1);
        kill(worker, SIGKILL);
        wait_gone(worker);
    }
    daemon_wait_workers(&daemon, 1);
    /* Between fork and exec a signal is lost in an emulator. */
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "echo", NULL);
    client_result(&client, "1");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_2_descriptors_are_closed)
{
    struct daemon daemon;
    struct client client;
    if (!proc_available())
        return;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    int fds = proc_fd_count(daemon.pid);
    for (int i = 0; i < 2; i++) {
        client_request(&client, "1", NULL, "die", NULL);
        client_error(&client, "1", -32000, died);
        client_expect_quiet(&client);
        daemon_wait_fds(&daemon, fds);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_2_state_is_logged)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "die", "{'code':7}");
    client_error(&client, "1", -32000, died);
    daemon_wait_log(&daemon, "\\[worker=[0-9]+ pid=[0-9]+\\].* 7");
    daemon_wait_log(&daemon, " WARN .*(discard|pending|request|unanswered)");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Each asker gets one error for each id; sessions begin anew elsewhere. */
START_TEST(spec_7_1_2_requests_in_flight_are_discarded)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 2);
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    long pid = client_pid(&first, "0", "s");
    client_request(&first, "1", "s", "no_answer", NULL);
    client_request(&first, "'two'", "s", "no_answer", NULL);
    client_pid(&first, "0", "s");
    client_request(&second, "3", "s", "no_answer", NULL);
    ck_assert_int_eq(client_pid(&second, "0", "s"), pid);
    kill((pid_t)pid, SIGKILL);
    struct span line = client_line(&first);
    const char *other = span_is(json_get(line, "id"), "1") ? "\"two\"" : "1";
    ck_assert_int_eq(json_long(json_get(line, "error.code"), 0), -32000);
    client_error(&first, other, -32000, died);
    client_error(&second, "3", -32000, died);
    ck_assert_int_ne(client_pid(&first, "1", "s"), pid);
    client_expect_quiet(&second);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_2_strict_makes_no_error_up)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .members = "'strict':true");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "0", "s");
    client_request(&client, "1", "s", "die", NULL);
    wait_gone(pid);
    ck_assert_int_ne(client_pid(&client, "2", "s"), pid);
    ck_assert_int_ne(client_pid(&client, "1", "s"), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_2_last_answers_of_a_dying_worker_are_delivered)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "no_answer", NULL);
    client_request(&client, "2", "s", "big", "{'size':300000}");
    client_request(&client, "3", "s", "die", "{'answer':true,'code':1}");
    ck_assert_uint_gt(client_result(&client, "2").len, 300000);
    client_result(&client, "3");
    client_error(&client, "1", -32000, died);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* An answer cut off by the end is no answer. */
START_TEST(spec_7_1_2_cut_answer_is_dropped)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "die", "{'answer':true,'cut':true,'code':0}");
    client_error(&client, "1", -32000, died);
    daemon_wait_log(&daemon, " WARN .*in the middle of a message");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_2_two_workers_killed_at_once)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 2);
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    long pids[2];
    client_meet_workers(&first, 2, pids);
    long one = client_pid(&first, "1", "one"), two = client_pid(&second, "1", "two");
    ck_assert_int_ne(one, two);
    client_request(&first, "2", "one", "no_answer", NULL);
    client_pid(&first, "1", "one");
    client_request(&second, "2", "two", "no_answer", NULL);
    client_pid(&second, "1", "two");
    kill(daemon.pid, SIGSTOP);
    kill((pid_t)one, SIGKILL);
    kill((pid_t)two, SIGKILL);
    kill(daemon.pid, SIGCONT);
    client_error(&first, "2", -32000, died);
    client_error(&second, "2", -32000, died);
    long again[2] = {client_pid(&first, "3", "one"), client_pid(&second, "3", "two")};
    ck_assert(again[0] != one && again[0] != two && again[1] != one && again[1] != two);
    wait_gone(one);
    wait_gone(two);
    daemon_wait_workers(&daemon, 2);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_3_request_during_the_restart_is_answered_after_it)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_request(&client, "2", NULL, "die", NULL);
    client_error(&client, "2", -32000, died);
    for (int i = 0; i < 20; i++)
        client_send(&client, "{'id':%d,'method':'echo','sessionId':'s%d'}", i, i % 3);
    for (int i = 0; i < 20; i++) {
        struct span line = client_line(&client);
        ck_assert_int_eq(json_long(json_get(line, "id"), -1), i);
        ck_assert_int_ne(json_long(json_get(line, "result.pid"), -1), pid);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_3_exit_with_0_is_unexpected_too)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_request(&client, "2", NULL, "die", "{'code':0}");
    client_error(&client, "2", -32000, died);
    ck_assert_int_ne(client_pid(&client, "3", NULL), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Starts of workers as they were recorded: "PID MILLISECONDS" lines. Returns how many. */
static size_t read_record(const char *path, long long *starts, size_t max)
{
    struct text text = {0};
    size_t count = 0;
    if (!read_file(&text, path))
        return 0;
    for (char *at = text.data, *end; at < text.data + text.len; at = end + 1) {
        end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        if (count < max)
            starts[count] = strtoll(strchr(at, ' '), NULL, 10);
        count++;
    }
    text_free(&text);
    return count;
}

/* Each delay is longer than the one before; in the end the worker is given up, and with it the
 * daemon, which has no other. */
START_TEST(spec_7_1_3_crash_loop_backs_off_and_ends)
{
    struct daemon daemon;
    char dir[160], path[200];
    long long starts[8];
    struct text args = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/test-record", dir);
    text_printf(&args, "'--record','%s','--exit','1'", path);
    START(&daemon, .args = args.data, .no_wait = true, .limits = "'max_restarts':3");
    daemon_wait_log(&daemon, " ERROR .*(FAILED|failed)");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    ck_assert_uint_eq(read_record(path, starts, 8), 4);
    ck_assert_int_ge(starts[1] - starts[0], 100);
    ck_assert_int_ge(starts[2] - starts[1], 400);
    ck_assert_int_ge(starts[3] - starts[2], 1600);
    harness_remove_dir(dir);
    text_free(&args);
}
END_TEST

START_TEST(spec_7_1_3_max_restarts_0_means_never)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_restarts':0");
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "die", NULL);
    client_error(&client, "1", -32000, died);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
}
END_TEST

/* A crash that recovers: the second start finds the file that the first one made. */
START_TEST(spec_7_1_3_single_crash_at_start_recovers)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .args = "'--crash-once','@DIR@/test-crashed'");
    daemon_wait_log(&daemon, " WARN .*exited with status 1");
    client_connect(&client, &daemon);
    client_ask(&client, "1", "s", "echo", NULL);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* One crash per window is no crash loop. */
START_TEST(spec_7_1_3_restarts_count_within_the_window_only)
{
    struct daemon daemon;
    struct client client;
    struct span line;
    START(&daemon, .instances = 1, .limits = "'max_restarts':1,'restart_window_sec':1");
    client_connect(&client, &daemon);
    for (int i = 0; i < 3; i++) {
        client_request(&client, "1", NULL, "die", NULL);
        client_error(&client, "1", -32000, died);
        client_ask(&client, "2", NULL, "echo", NULL);
        ck_assert(!client_line_before(&client, now_ms() + 1300, &line));
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_1_3_too_many_restarts_within_the_window)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_restarts':1");
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "die", NULL);
    client_error(&client, "1", -32000, died);
    client_ask(&client, "2", NULL, "echo", NULL);
    client_request(&client, "3", NULL, "die", NULL);
    client_error(&client, "3", -32000, died);
    client_expect_eof(&client);
    daemon_wait_log(&daemon, " ERROR .*(FAILED|failed)");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
}
END_TEST

/* A pool that is lost is refused at once; the other one serves on. */
START_TEST(spec_7_1_3_failed_pool_is_refused_the_other_serves)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
          .limits = "'max_restarts':0");
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'pool':'a','sessionId':'s','method':'die'}");
    client_error(&client, "1", -32000, died);
    client_send(&client, "{'id':2,'pool':'a','method':'echo'}");
    client_error(&client, "2", -32000, "");
    client_send(&client, "{'pool':'a','method':'echo'}");
    for (int i = 0; i < 4; i++) {
        struct span result = client_ask(&client, "3", i % 2 ? "s" : NULL, "echo", NULL);
        ck_assert(span_is(json_get(result, "worker"), "\"b\""));
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Its stdout is at its end, so nothing can be answered any more; the process is ended, by force
 * where needed, and replaced. */
static void check_closed_stdout(const char *on_sigterm)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", "s");
    client_ask(&client, "1", "s", "on_sigterm", on_sigterm);
    client_request(&client, "2", "s", "close_stdout", "{'answer':true}");
    client_result(&client, "2");
    wait_gone(pid);
    ck_assert_int_ne(client_pid(&client, "3", "s"), pid);
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(design_worker_that_closes_stdout_is_replaced)
{
    check_closed_stdout("{'do':'default'}");
}
END_TEST

START_TEST(design_worker_that_closes_stdout_and_ignores_sigterm_is_killed)
{
    check_closed_stdout("{'do':'ignore'}");
}
END_TEST

/* The worker is gone but a grandchild holds its pipes: the asker need not wait for it. */
START_TEST(design_grandchild_that_holds_the_pipe)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", "s", "grandchild",
                                    "{'hold':true,'ignore':true}");
    long grandchild = json_long(json_get(result, "pid"), -1);
    long pid = client_pid(&client, "1", "s");
    client_request(&client, "2", "s", "die", NULL);
    client_error(&client, "2", -32000, died);
    ck_assert_int_ne(client_pid(&client, "3", "s"), pid);
    client_close(&client);
    int64_t deadline = deadline_usual();
    while (proc_alive((pid_t)grandchild)) {
        ck_assert_msg(!deadline_over(deadline), "the grandchild lives on");
        nap();
    }
    daemon_stop(&daemon);
}
END_TEST

/* Its process and the next one end at once, each leaving a child that ignores SIGTERM. */
START_TEST(design_grandchildren_of_processes_that_end_one_after_the_other)
{
    struct daemon daemon;
    struct client client;
    pid_t grandchildren[3];
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < 3; i++) {
        struct span result = client_ask(&client, "1", NULL, "grandchild", "{'ignore':true}");
        grandchildren[i] = (pid_t)json_long(json_get(result, "pid"), -1);
        client_request(&client, "2", NULL, "die", NULL);
        client_error(&client, "2", -32000, died);
    }
    int64_t deadline = deadline_usual();
    for (size_t i = 0; i < 3; i++) {
        while (proc_alive(grandchildren[i])) {
            ck_assert_msg(!deadline_over(deadline), "grandchild %zu lives on", i);
            nap();
        }
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_2_sessions_of_a_gone_client_end)
{
    struct daemon daemon;
    struct client first, second;
    if (!proc_available())
        return;
    START(&daemon, .instances = 1, .limits = "'max_sessions':2");
    int fds = client_settled_fds(&daemon, 1);
    for (int i = 0; i < 5; i++) {
        client_connect(&first, &daemon);
        client_pid(&first, "1", "one");
        client_pid(&first, "1", "two");
        client_close(&first);
        daemon_wait_fds(&daemon, fds);
    }
    client_connect(&second, &daemon);
    client_pid(&second, "1", "three");
    client_request(&second, "2", "three", "notify", "{'session':'one','n':3}");
    client_result(&second, "2");
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

/* Its answers come too late, are discarded, and the others get theirs. */
static void check_client_vanishes(enum setup_mode mode)
{
    struct daemon daemon;
    struct client gone, client;
    START(&daemon, .mode = mode, .instances = 1, .limits = "'max_pending_requests':8");
    client_connect(&client, &daemon);
    client_ask(&client, "'h'", "s", "hold", NULL);
    for (int round = 0; round < 4; round++) {
        client_connect(&gone, &daemon);
        client_send(&gone, "{'id':%d,'method':'echo'}", round);
        client_send_bytes(&gone, "{\"id\":9,\"meth", 13);
        client_abort(&gone);
    }
    for (int i = 10; i < 13; i++)
        client_send(&client, "{'id':%d,'method':'plain','params':%d}", i, i);
    client_request(&client, "'r'", "s", "release", NULL);
    for (int i = 10; i < 13; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    client_result(&client, "'r'");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(spec_7_2_requests_of_a_gone_unix_client_are_discarded)
{
    check_client_vanishes(SETUP_UNIX);
}
END_TEST

START_TEST(spec_7_2_requests_of_a_gone_tcp_client_are_discarded)
{
    check_client_vanishes(SETUP_TCP);
}
END_TEST

/* Gone with megabytes on the way to it. */
START_TEST(spec_7_2_client_gone_with_answers_on_the_way)
{
    struct daemon daemon;
    struct client gone, client;
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    client_connect(&client, &daemon);
    for (int i = 0; i < 5; i++) {
        client_connect_small(&gone, &daemon);
        for (int id = 0; id < 4; id++)
            client_send(&gone, "{'id':%d,'method':'big','params':{'size':700000}}", id);
        ck_assert(wait_fd(gone.in, POLLIN, deadline_usual()));
        client_abort(&gone);
        client_expect_quiet(&client);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_2_descriptor_of_a_gone_client_is_closed)
{
    struct daemon daemon;
    struct client clients[20];
    if (!proc_available())
        return;
    START(&daemon, .instances = 1);
    int fds = client_settled_fds(&daemon, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++)
            client_connect(&clients[i], &daemon);
        for (int i = 0; i < 20; i++)
            client_pid(&clients[i], "1", NULL);
        ck_assert_int_eq(proc_fd_count(daemon.pid), fds + 20);
        for (int i = 0; i < 20; i++) {
            client_send_bytes(&clients[i], "{\"id\"", (size_t)(i % 5));
            client_close(&clients[i]);
        }
        daemon_wait_fds(&daemon, fds);
    }
    daemon_stop(&daemon);
}
END_TEST

/* A late answer to a client that is gone is not the answer to the next client with the same id. */
START_TEST(spec_7_2_late_answer_does_not_reach_the_next_client)
{
    struct daemon daemon;
    struct client gone, client, helper;
    if (!proc_available())
        return;
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    client_connect(&helper, &daemon);
    client_ask(&helper, "'h'", "hs", "hold", NULL);
    int fds = proc_fd_count(daemon.pid);
    client_connect(&gone, &daemon);
    client_request(&gone, "1", NULL, "plain", "'secret'");
    client_request(&gone, NULL, NULL, "notify", "{'session':'hs'}");
    ck_assert(span_is(json_get(client_line(&helper), "method"), "\"note\""));
    client_abort(&gone);
    daemon_wait_fds(&daemon, fds);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "'mine'");
    client_ask(&helper, "'r'", NULL, "release", NULL);
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'mine'}");
    client_close(&client);
    client_close(&helper);
    daemon_stop(&daemon);
}
END_TEST

/* The worker is dead before the request in its pipe was read: nothing breaks. */
START_TEST(spec_7_1_2_worker_dies_with_unread_input)
{
    struct daemon daemon;
    struct client client;
    struct text big = {0};
    START(&daemon, .pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'pool':'a','sessionId':'s','method':'environment'}");
    long pid = json_long(json_get(client_result(&client, "1"), "pid"), -1);
    client_request(&client, "2", "s", "stop_reading", NULL);
    client_result(&client, "2");
    text_printf(&big, "{\"id\":3,\"sessionId\":\"s\",\"params\":\"");
    text_fill(&big, 'x', 900000);
    text_printf(&big, "\"}\n");
    client_send_bytes(&client, big.data, big.len);
    client_send(&client, "{'id':4,'pool':'b','method':'echo'}");
    client_result(&client, "4"); /* by now the daemon has all of the third */
    kill((pid_t)pid, SIGKILL);
    client_error(&client, "3", -32000, died);
    ck_assert_int_ne(client_pid(&client, "4", "s"), pid);
    text_free(&big);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The extra connections wait until there are descriptors for them, without a busy loop. */
START_TEST(design_out_of_descriptors_for_accept)
{
    struct daemon daemon;
    struct client clients[40];
    struct span line;
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* a wrapper may need descriptors of its own */
    START(&daemon, .instances = 1, .max_fds = 32);
    for (int i = 0; i < 40; i++) {
        client_connect(&clients[i], &daemon);
        client_send(&clients[i], "{'id':%d,'method':'plain'}", i);
    }
    client_result(&clients[0], "0");
    daemon_wait_log(&daemon, "descriptor|Too many open files|EMFILE");
    long cpu_ms = proc_cpu_ms(daemon.pid);
    ck_assert(!client_line_before(&clients[39], now_ms() + 300, &line));
    ck_assert_int_le(proc_cpu_ms(daemon.pid), cpu_ms + 100);
    ck_assert_uint_le(daemon_count_log(&daemon, "descriptor|Too many open files|EMFILE"), 2);
    for (int i = 0; i < 40; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        if (i > 0)
            client_result(&clients[i], id);
        client_close(&clients[i]);
    }
    daemon_stop(&daemon);
}
END_TEST

/* A full stderr pipe that nobody reads: lines are lost, messages are not. */
START_TEST(design_full_stderr_stalls_nothing)
{
    struct daemon daemon;
    struct client client;
    int fds[2];
    struct text filling = {0};
    ck_assert_int_eq(pipe(fds), 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    START(&daemon, .mode = SETUP_STDIO, .instances = 2, .stderr_fd = fds[1],
          .arguments = {"--log-level", "debug"});
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    int flags = fcntl(fds[1], F_GETFL);
    fcntl(fds[1], F_SETFL, flags | O_NONBLOCK);
    text_fill(&filling, '#', 65536);
    while (write(fds[1], filling.data, filling.len) > 0 || write(fds[1], "#", 1) > 0)
        continue;
    fcntl(fds[1], F_SETFL, flags);
    for (int i = 0; i < 2000; i++)
        client_send(&client, "{'id':%d,'sessionId':'s','method':'plain','params':%d}", i, i);
    for (int i = 0; i < 2000; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'sessionId':'s','result':%d}", i, i);
    text_free(&filling);
    while (getenv("STDIO_BUS_WRAPPER") != NULL && wait_fd(fds[0], POLLIN, now_ms() + 10)) {
        char bytes[4096]; /* a wrapper may have words of its own to say, and wait */
        ck_assert_int_gt(read(fds[0], bytes, sizeof bytes), 0);
    }
    daemon_stop(&daemon);
    client_close(&client);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* A log that nobody will ever read is no reason to end, from the first line of it to the last. */
START_TEST(design_log_without_a_reader)
{
    struct daemon daemon;
    struct client client;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .stderr_fd = fds[1],
          .members = "'unknown':1");
    close(fds[1]);
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    client_half_close(&client);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

static void check_sigkill(const char *args)
{
#ifdef __linux__
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 3, .args = args);
    daemon_wait_workers(&daemon, 3);
    client_connect(&client, &daemon);
    client_pid(&client, "1", NULL);
    daemon_kill(&daemon);
    client_expect_eof(&client);
    client_close(&client);
#else
    (void)args;
#endif
}

START_TEST(design_sigkill_of_the_daemon_leaves_no_worker)
{
    check_sigkill("");
}
END_TEST

START_TEST(design_sigkill_of_the_daemon_leaves_no_worker_that_ignores_the_end_of_input)
{
    check_sigkill("'--stay'");
}
END_TEST

/* At whatever moment of its start the daemon is told to stop, nothing is left behind. */
START_TEST(design_sigterm_while_forking)
{
    for (int i = 0; i < 30; i++) {
        struct daemon daemon;
        struct timespec moment = {.tv_sec = 0, .tv_nsec = i * 300000L};
        int64_t deadline = deadline_usual();
        START(&daemon, .instances = 12, .no_wait = true, .args = "'--stay'");
        nanosleep(&moment, NULL);
        kill(daemon.pid, SIGTERM);
        while (waitpid(daemon.pid, &daemon.status, WNOHANG) == 0) {
            ck_assert_msg(!deadline_over(deadline), "the daemon does not exit");
            nap();
        }
        ck_assert(WIFEXITED(daemon.status) ? WEXITSTATUS(daemon.status) == 0
                                           : WTERMSIG(daemon.status) == SIGTERM);
        while (waitpid(-1, NULL, WNOHANG) >= 0) {
            ck_assert_msg(!deadline_over(deadline), "a worker is left");
            nap();
        }
        text_free(&daemon.log);
        text_free(&daemon.line);
        harness_remove_dir(daemon.dir);
    }
}
END_TEST

static void add_restart_tests(Suite *suite)
{
    TCase *restart = harness_case(suite, "7.1.3 restart");
    tcase_add_test(restart, spec_7_1_3_request_during_the_restart_is_answered_after_it);
    tcase_add_test(restart, spec_7_1_3_exit_with_0_is_unexpected_too);
    tcase_add_test(restart, spec_7_1_3_crash_loop_backs_off_and_ends);
    tcase_add_test(restart, spec_7_1_3_max_restarts_0_means_never);
    tcase_add_test(restart, spec_7_1_3_single_crash_at_start_recovers);
    tcase_add_test(restart, spec_7_1_3_restarts_count_within_the_window_only);
    tcase_add_test(restart, spec_7_1_3_too_many_restarts_within_the_window);
    tcase_add_test(restart, spec_7_1_3_failed_pool_is_refused_the_other_serves);
    tcase_add_test(restart, design_worker_that_closes_stdout_is_replaced);
    tcase_add_test(restart, design_worker_that_closes_stdout_and_ignores_sigterm_is_killed);
    tcase_add_test(restart, design_grandchild_that_holds_the_pipe);
    tcase_add_test(restart, design_grandchildren_of_processes_that_end_one_after_the_other);
}

static void add_client_tests(Suite *suite)
{
    TCase *client = harness_case(suite, "7.2 client disconnect");
    tcase_add_test(client, spec_7_2_sessions_of_a_gone_client_end);
    tcase_add_test(client, spec_7_2_requests_of_a_gone_unix_client_are_discarded);
    tcase_add_test(client, spec_7_2_requests_of_a_gone_tcp_client_are_discarded);
    tcase_add_test(client, spec_7_2_client_gone_with_answers_on_the_way);
    tcase_add_test(client, spec_7_2_descriptor_of_a_gone_client_is_closed);
    tcase_add_test(client, spec_7_2_late_answer_does_not_reach_the_next_client);
}

int main(void)
{
    Suite *suite = suite_create("spec 7: failures");
    TCase *exits = harness_case(suite, "7.1 worker exit");
    tcase_add_test(exits, spec_7_1_1_exit_is_detected_and_reaped);
    tcase_add_test(exits, spec_7_1_2_descriptors_are_closed);
    tcase_add_test(exits, spec_7_1_2_state_is_logged);
    tcase_add_test(exits, spec_7_1_2_requests_in_flight_are_discarded);
    tcase_add_test(exits, spec_7_1_2_strict_makes_no_error_up);
    tcase_add_test(exits, spec_7_1_2_last_answers_of_a_dying_worker_are_delivered);
    tcase_add_test(exits, spec_7_1_2_cut_answer_is_dropped);
    tcase_add_test(exits, spec_7_1_2_two_workers_killed_at_once);
    tcase_add_test(exits, spec_7_1_2_worker_dies_with_unread_input);
    add_restart_tests(suite);
    add_client_tests(suite);
    TCase *daemon = harness_case(suite, "the daemon itself");
    tcase_add_test(daemon, design_out_of_descriptors_for_accept);
    tcase_add_test(daemon, design_full_stderr_stalls_nothing);
    tcase_add_test(daemon, design_log_without_a_reader);
    tcase_add_test(daemon, design_sigkill_of_the_daemon_leaves_no_worker);
    tcase_add_test(daemon,
                   design_sigkill_of_the_daemon_leaves_no_worker_that_ignores_the_end_of_input);
    tcase_add_test(daemon, design_sigterm_while_forking);
    return harness_run(suite);
}
