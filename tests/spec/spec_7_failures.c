/* Specification 7.1 and 7.2: workers that exit, clients that disconnect. */
#include "build_config.h"

#include <poll.h>
#include <time.h>

#include "control.h"
#include "harness.h"

/* The exit of an idle worker is detected without a message and before any timeout; no zombie
 * stays. */
TEST(spec_7_1_1_exit_is_detected_and_reaped)
{
    pid_t worker;
    struct daemon *daemon = START(.instances = 1, .limits = "'drain_timeout_sec':600");
    for (int i = 0; i < 2; i++) {
        daemon_wait_workers(daemon, 1);
        ck_assert_uint_eq(daemon_workers(daemon, &worker, 1), 1);
        kill(worker, SIGKILL);
        wait_gone(worker);
    }
    daemon_wait_workers(daemon, 1);
    /* An emulator loses a signal that comes between fork and exec. */
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
}

TEST(spec_7_1_2_descriptors_are_closed)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    int fds = proc_fd_count(daemon->pid);
    for (int i = 0; i < 2; i++) {
        client_crash(client, "1", NULL, NULL);
        client_expect_quiet(client);
        daemon_wait_fds(daemon, fds);
    }
}

TEST(spec_7_1_2_state_is_logged)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_crash(client, "1", NULL, "{'code':7}");
    daemon_wait_log(daemon, "\\[worker=[0-9]+ pid=[0-9]+ pool=[a-z]+\\].* 7");
    daemon_wait_log(daemon, " WARN .*(discard|pending|request|unanswered)");
    client_expect_quiet(client);
}

/* The third restart comes after 1600 ms. */
TEST(spec_7_1_2_state_becomes_stopped)
{
    if (!daemon_has("control"))
        return; /* the state is not to be seen */
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    control_wait(control, "workers", "workers.0.state", "'running'");
    for (int i = 0; i < 3; i++)
        client_crash(client, "1", NULL, NULL);
    control_wait(control, "workers", "workers.0.state", "'stopped'");
    control_wait(control, "workers", "workers.0.state", "'running'");
    client_expect_quiet(client);
}

/* Each client gets one error for each of its ids; the session moves to another worker. */
TEST(spec_7_1_2_requests_in_flight_are_discarded)
{
    struct daemon *daemon = START(.instances = 2);
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    long pid = client_pid(first, "0", "s");
    client_request(first, "1", "s", "no_answer", NULL);
    client_request(first, "'two'", "s", "no_answer", NULL);
    client_pid(first, "0", "s");
    client_request(second, "3", "s", "no_answer", NULL);
    ck_assert_int_eq(client_pid(second, "0", "s"), pid);
    kill((pid_t)pid, SIGKILL);
    struct span line = client_line(first);
    const char *other = span_is(json_get(line, "id"), "1") ? "'two'" : "1";
    expect_member(line, "error.code", "-32000");
    client_error(first, other, -32000, DIED);
    client_error(second, "3", -32000, DIED);
    ck_assert_int_ne(client_pid(first, "1", "s"), pid);
    client_expect_quiet(second);
}

TEST(spec_7_1_2_strict_sends_no_error)
{
    struct client *client = client_connect(START(.instances = 1, .members = "'strict':true"));
    long pid = client_pid(client, "0", "s");
    client_request(client, "1", "s", "die", NULL);
    wait_gone(pid);
    ck_assert_int_ne(client_pid(client, "2", "s"), pid);
    ck_assert_int_ne(client_pid(client, "1", "s"), pid);
}

TEST(spec_7_1_2_last_answers_of_a_dying_worker_are_delivered)
{
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", "s", "no_answer", NULL);
    client_request(client, "2", "s", "big", "{'size':300000}");
    client_request(client, "3", "s", "die", "{'answer':true,'code':1}");
    ck_assert_uint_gt(client_result(client, "2").len, 300000);
    client_result(client, "3");
    client_error(client, "1", -32000, DIED);
    client_expect_quiet(client);
}

/* An incomplete answer is no answer. */
TEST(spec_7_1_2_cut_answer_is_dropped)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_crash(client, "1", "s", "{'answer':true,'cut':true,'code':0}");
    daemon_wait_log(daemon, " WARN .*in the middle of a message");
    client_expect_quiet(client);
}

TEST(spec_7_1_2_two_workers_killed_at_once)
{
    struct daemon *daemon = START(.instances = 2);
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    long pids[2];
    client_meet_workers(first, 2, pids);
    long one = client_pid(first, "1", "one"), two = client_pid(second, "1", "two");
    ck_assert_int_ne(one, two);
    client_request(first, "2", "one", "no_answer", NULL);
    client_pid(first, "1", "one");
    client_request(second, "2", "two", "no_answer", NULL);
    client_pid(second, "1", "two");
    kill(daemon->pid, SIGSTOP);
    kill((pid_t)one, SIGKILL);
    kill((pid_t)two, SIGKILL);
    kill(daemon->pid, SIGCONT);
    client_error(first, "2", -32000, DIED);
    client_error(second, "2", -32000, DIED);
    long again[2] = {client_pid(first, "3", "one"), client_pid(second, "3", "two")};
    ck_assert(again[0] != one && again[0] != two && again[1] != one && again[1] != two);
    wait_gone(one);
    wait_gone(two);
    daemon_wait_workers(daemon, 2);
}

TEST(spec_7_1_3_request_during_the_restart_is_answered_after_it)
{
    struct client *client = client_connect(START(.instances = 1));
    long pid = client_pid(client, "1", NULL);
    client_crash(client, "2", NULL, NULL);
    for (int i = 0; i < 20; i++)
        client_send(client, "{'id':%d,'method':'echo','sessionId':'s%d'}", i, i % 3);
    for (int i = 0; i < 20; i++) {
        struct span line = client_line(client);
        ck_assert_int_eq(json_number(line, "id"), i);
        ck_assert_int_ne(json_number(line, "result.pid"), pid);
    }
}

TEST(spec_7_1_3_exit_with_0_is_unexpected_too)
{
    struct client *client = client_connect(START(.instances = 1));
    long pid = client_pid(client, "1", NULL);
    client_crash(client, "2", NULL, "{'code':0}");
    ck_assert_int_ne(client_pid(client, "3", NULL), pid);
}

/* Reads recorded starts of workers, "PID MILLISECONDS" lines. Returns their number. */
static size_t read_record(const char *path, long long *starts, size_t max)
{
    struct text *text = test_text();
    size_t count = 0;
    if (!read_file(text, path))
        return 0;
    for (char *at = text->data, *end; at < text->data + text->len; at = end + 1) {
        end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        if (count < max)
            starts[count] = strtoll(strchr(at, ' '), NULL, 10);
        count++;
    }
    return count;
}

/* Each delay is longer than the one before it; then the worker is given up, and the daemon, which
 * has no other, exits. */
TEST(spec_7_1_3_crash_loop_backs_off_and_ends)
{
    const char *path = test_format("%s/record", test_dir());
    long long starts[8];
    struct daemon *daemon = START(.args = test_format("'--record','%s','--exit','1'", path),
                                  .no_wait = true, .limits = "'max_restarts':3");
    daemon_wait_log(daemon, " ERROR .*(FAILED|failed)");
    ck_assert_int_eq(daemon_wait(daemon), 69);
    ck_assert_uint_eq(read_record(path, starts, 8), 4);
    ck_assert_int_ge(starts[1] - starts[0], 100);
    ck_assert_int_ge(starts[2] - starts[1], 400);
    ck_assert_int_ge(starts[3] - starts[2], 1600);
}

TEST(spec_7_1_3_max_restarts_0_means_never)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_restarts':0");
    struct client *client = client_connect(daemon);
    client_crash(client, "1", NULL, NULL);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

/* The second process finds the file that the first one made, and runs. */
TEST(spec_7_1_3_single_crash_at_start_recovers)
{
    struct daemon *daemon = START(.args = "'--crash-once','@DIR@/test-crashed'");
    daemon_wait_log(daemon, " WARN .*exited with status 1");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", "s", "echo", NULL);
}

/* One crash per window is no crash loop. */
TEST(spec_7_1_3_restarts_count_within_the_window_only)
{
    struct span line;
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'max_restarts':1,'restart_window_sec':1"));
    for (int i = 0; i < 3; i++) {
        client_crash(client, "1", NULL, NULL);
        client_ask(client, "2", NULL, "echo", NULL);
        ck_assert(!client_line_before(client, now_ms() + 1300, &line));
    }
}

TEST(spec_7_1_3_too_many_restarts_within_the_window)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_restarts':1");
    struct client *client = client_connect(daemon);
    client_crash(client, "1", NULL, NULL);
    client_ask(client, "2", NULL, "echo", NULL);
    client_crash(client, "3", NULL, NULL);
    client_expect_eof(client);
    daemon_wait_log(daemon, " ERROR .*(FAILED|failed)");
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

/* Requests for the failed pool are refused at once. */
TEST(spec_7_1_3_failed_pool_is_refused_the_other_serves)
{
    struct client *client =
        client_connect(START(.pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
                             .limits = "'max_restarts':0"));
    client_send(client, "{'id':1,'pool':'a','sessionId':'s','method':'die'}");
    client_error(client, "1", -32000, DIED);
    client_send(client, "{'id':2,'pool':'a','method':'echo'}");
    client_error(client, "2", -32000, "");
    client_send(client, "{'pool':'a','method':'echo'}");
    for (int i = 0; i < 4; i++) {
        struct span result = client_ask(client, "3", i % 2 ? "s" : NULL, "echo", NULL);
        expect_member(result, "worker", "'b'");
    }
}

static const char *const on_sigterm[] = {"{'do':'default'}", "{'do':'ignore'}"};

/* A worker that cannot answer any more is terminated, by SIGKILL where needed. */
TEST_ROWS(design_worker_that_closes_stdout_is_replaced, COUNT(on_sigterm))
{
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'drain_timeout_sec':1"));
    long pid = client_pid(client, "1", "s");
    client_ask(client, "1", "s", "on_sigterm", on_sigterm[row]);
    client_ask(client, "2", "s", "close_stdout", "{'answer':true}");
    wait_gone(pid);
    ck_assert_int_ne(client_pid(client, "3", "s"), pid);
}

/* The worker has exited but a grandchild holds its pipes: the client still gets its error. */
TEST(design_grandchild_that_holds_the_pipe)
{
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'drain_timeout_sec':1"));
    struct span result = client_ask(client, "1", "s", "grandchild", "{'hold':true,'ignore':true}");
    long grandchild = json_number(result, "pid");
    long pid = client_pid(client, "1", "s");
    client_crash(client, "2", "s", NULL);
    ck_assert_int_ne(client_pid(client, "3", "s"), pid);
    client_close(client);
    WAIT_UNTIL(!proc_alive((pid_t)grandchild), "the grandchild is alive");
}

/* Three processes exit at once, one after the other, and each leaves a child that ignores
 * SIGTERM. */
TEST(design_grandchildren_of_processes_that_end_one_after_the_other)
{
    pid_t grandchildren[3];
    struct client *client = client_connect(START(.instances = 1));
    for (size_t i = 0; i < 3; i++) {
        struct span result = client_ask(client, "1", NULL, "grandchild", "{'ignore':true}");
        grandchildren[i] = (pid_t)json_number(result, "pid");
        client_crash(client, "2", NULL, NULL);
    }
    for (size_t i = 0; i < 3; i++)
        WAIT_UNTIL(!proc_alive(grandchildren[i]), "grandchild %zu is alive", i);
}

TEST(spec_7_2_sessions_of_a_gone_client_end)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 1, .limits = "'max_sessions':2");
    int fds = client_settled_fds(daemon, 1);
    for (int i = 0; i < 5; i++) {
        struct client *first = client_connect(daemon);
        client_pid(first, "1", "one");
        client_pid(first, "1", "two");
        client_close(first);
        daemon_wait_fds(daemon, fds);
    }
    struct client *second = client_connect(daemon);
    client_pid(second, "1", "three");
    client_ask(second, "2", "three", "notify", "{'session':'one','n':3}");
}

static const enum setup_mode socket_modes[] = {SETUP_UNIX, SETUP_TCP};

/* The late answers are discarded, and the other client gets its own. */
TEST_ROWS(spec_7_2_requests_of_a_gone_client_are_discarded, COUNT(socket_modes))
{
    struct daemon *daemon = START(.mode = socket_modes[row], .instances = 1,
                                  .limits = "'max_pending_requests':8");
    struct client *client = client_connect(daemon);
    client_ask(client, "'h'", "s", "hold", NULL);
    for (int round = 0; round < 4; round++) {
        struct client *gone = client_connect(daemon);
        client_send(gone, "{'id':%d,'method':'echo'}", round);
        client_send_bytes(gone, "{\"id\":9,\"meth", 13);
        client_abort(gone);
    }
    for (int i = 10; i < 13; i++)
        client_send(client, "{'id':%d,'method':'plain','params':%d}", i, i);
    client_request(client, "'r'", "s", "release", NULL);
    for (int i = 10; i < 13; i++)
        client_expect(client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    client_result(client, "'r'");
    client_expect_quiet(client);
}

/* The client disconnects with megabytes on their way to it. */
TEST(spec_7_2_client_gone_with_answers_on_the_way)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    struct client *client = client_connect(daemon);
    for (int i = 0; i < 5; i++) {
        struct client *gone = client_connect_small(daemon);
        for (int id = 0; id < 4; id++)
            client_send(gone, "{'id':%d,'method':'big','params':{'size':700000}}", id);
        ck_assert(wait_fd(gone->in, POLLIN, deadline_usual()));
        client_abort(gone);
        client_expect_quiet(client);
    }
}

TEST(spec_7_2_descriptor_of_a_gone_client_is_closed)
{
    struct client *clients[20];
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 1);
    int fds = client_settled_fds(daemon, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++)
            clients[i] = client_connect(daemon);
        for (int i = 0; i < 20; i++)
            client_pid(clients[i], "1", NULL);
        ck_assert_int_eq(proc_fd_count(daemon->pid), fds + 20);
        for (int i = 0; i < 20; i++) {
            client_send_bytes(clients[i], "{\"id\"", (size_t)(i % 5));
            client_close(clients[i]);
        }
        daemon_wait_fds(daemon, fds);
    }
}

/* A late answer for a client that is gone does not reach the next client with the same id. */
TEST(spec_7_2_late_answer_does_not_reach_the_next_client)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    struct client *helper = client_connect(daemon);
    client_ask(helper, "'h'", "hs", "hold", NULL);
    int fds = proc_fd_count(daemon->pid);
    struct client *gone = client_connect(daemon);
    client_request(gone, "1", NULL, "plain", "'secret'");
    client_request(gone, NULL, NULL, "notify", "{'session':'hs'}");
    expect_member(client_line(helper), "method", "'note'");
    client_abort(gone);
    daemon_wait_fds(daemon, fds);
    struct client *client = client_connect(daemon);
    client_request(client, "1", NULL, "plain", "'mine'");
    client_ask(helper, "'r'", NULL, "release", NULL);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':'mine'}");
}

/* The worker dies before it has read the request in its pipe. */
TEST(spec_7_1_2_worker_dies_with_unread_input)
{
    struct daemon *daemon = START(.pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'a','sessionId':'s','method':'environment'}");
    long pid = json_number(client_result(client, "1"), "pid");
    client_ask(client, "2", "s", "stop_reading", NULL);
    client_send(client, "{'id':3,'sessionId':'s','params':'%s'}", test_fill('x', 900000));
    client_send(client, "{'id':4,'pool':'b','method':'echo'}");
    client_result(client, "4"); /* the daemon has all of request 3 by now */
    kill((pid_t)pid, SIGKILL);
    client_error(client, "3", -32000, DIED);
    ck_assert_int_ne(client_pid(client, "4", "s"), pid);
}

/* The other connections wait for descriptors, without a busy loop. */
TEST(design_out_of_descriptors_for_accept)
{
    struct client *clients[40];
    struct span line;
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* a wrapper may need descriptors of its own */
    struct daemon *daemon = START(.instances = 1, .max_fds = 32);
    steps_without("they need a descriptor");
    for (int i = 0; i < 40; i++) {
        clients[i] = client_connect(daemon);
        client_send(clients[i], "{'id':%d,'method':'plain'}", i);
    }
    client_result(clients[0], "0");
    daemon_wait_log(daemon, "descriptor|Too many open files|EMFILE");
    long cpu_ms = proc_cpu_ms(daemon->pid);
    ck_assert(!client_line_before(clients[39], now_ms() + 300, &line));
    ck_assert_int_le(proc_cpu_ms(daemon->pid), cpu_ms + 100);
    ck_assert_uint_le(daemon_count_log(daemon, "descriptor|Too many open files|EMFILE"), 2);
    for (int i = 0; i < 40; i++) {
        if (i > 0)
            client_result(clients[i], test_format("%d", i));
        client_close(clients[i]);
    }
}

/* stderr is a full pipe without a reader: log lines are lost, messages are not. */
TEST(design_full_stderr_stalls_nothing)
{
    int fds[2];
    const char *filling = test_fill('#', 65536);
    ck_assert_int_eq(pipe(fds), 0);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2, .stderr_fd = fds[1],
                                  .arguments = {"--log-level", "debug"});
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    int flags = fcntl(fds[1], F_GETFL);
    fcntl(fds[1], F_SETFL, flags | O_NONBLOCK);
    while (write(fds[1], filling, 65536) > 0 || write(fds[1], "#", 1) > 0)
        continue;
    fcntl(fds[1], F_SETFL, flags);
    client_send_plain(client, "s", 2000);
    client_expect_plain(client, "s", 2000);
    while (getenv("STDIO_BUS_WRAPPER") != NULL && wait_fd(fds[0], POLLIN, now_ms() + 10)) {
        char bytes[4096]; /* a wrapper may write too, and wait */
        ck_assert_int_gt(read(fds[0], bytes, sizeof bytes), 0);
    }
    daemon_stop(daemon);
    close(fds[0]);
    close(fds[1]);
}

/* stderr is a pipe whose reading end is closed, from the first line of the log on. */
TEST(design_log_without_a_reader)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1, .stderr_fd = fds[1],
                                  .members = "'unknown':1");
    close(fds[1]);
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    client_finish(client, daemon);
}

#ifdef __linux__
static const char *const worker_args[] = {"", "'--stay'"};

/* The second worker does not exit at the end of its input. */
TEST_ROWS(design_sigkill_of_the_daemon_leaves_no_worker, COUNT(worker_args))
{
    struct daemon *daemon = START(.instances = 3, .args = worker_args[row]);
    daemon_wait_workers(daemon, 3);
    struct client *client = client_connect(daemon);
    client_pid(client, "1", NULL);
    daemon_kill(daemon);
    client_expect_eof(client);
}
#endif

/* SIGTERM at any moment of the start leaves nothing. */
TEST(design_sigterm_while_forking)
{
    for (int i = 0; i < 30; i++) {
        struct timespec moment = {.tv_sec = 0, .tv_nsec = i * 300000L};
        struct daemon *daemon = START(.instances = 12, .no_wait = true, .args = "'--stay'");
        nanosleep(&moment, NULL);
        daemon_interrupt(daemon);
    }
}
