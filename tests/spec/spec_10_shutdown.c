/* Specification, chapter 10: graceful shutdown; and Appendix C, where the log goes. */
#include "build_config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void check_signal(int signo)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 3);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_signal(&daemon, signo);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}

START_TEST(spec_10_1_sigterm)
{
    check_signal(SIGTERM);
}
END_TEST

START_TEST(spec_10_1_sigint)
{
    check_signal(SIGINT);
}
END_TEST

START_TEST(spec_10_1_sigterm_in_stdio_mode)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2);
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    daemon_signal(&daemon, SIGTERM);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* A daemon with one worker that stays until it is killed, and a client. */
static void start_stubborn(struct daemon *daemon, struct client *client, enum setup_mode mode,
                           const char *limits)
{
    START(daemon, .mode = mode, .instances = 1, .limits = limits,
          .args = "'--on-sigterm','ignore','--stay'");
    client_connect(client, daemon);
    client_expect_quiet(client);
}

static void wait_refused(const struct daemon *daemon)
{
    struct client late;
    int64_t deadline = deadline_usual();
    for (;;) {
        if (client_try_connect(&late, daemon))
            client_close(&late);
        else if (errno == ECONNREFUSED || errno == ENOENT)
            return;
        /* else it was reset: the listener went while the connection was being made */
        ck_assert_msg(!deadline_over(deadline), "connections are still taken");
        nap();
    }
}

static void check_listener_closes_first(enum setup_mode mode)
{
    struct daemon daemon;
    struct client client;
    start_stubborn(&daemon, &client, mode, NULL);
    daemon_signal(&daemon, SIGTERM);
    wait_refused(&daemon);
    ck_assert(proc_alive(daemon.pid));
    daemon_signal(&daemon, SIGTERM); /* enough waited */
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}

START_TEST(spec_10_2_1_unix_listener_is_closed_first)
{
    check_listener_closes_first(SETUP_UNIX);
}
END_TEST

START_TEST(spec_10_2_1_tcp_listener_is_closed_first)
{
    check_listener_closes_first(SETUP_TCP);
}
END_TEST

/* SIGTERM reaches all of them, so nothing waits for the drain timeout of thirty seconds. */
START_TEST(spec_10_2_2_workers_get_sigterm)
{
    struct daemon daemon;
    int64_t start;
    START(&daemon, .instances = 5, .args = "'--stay'");
    daemon_wait_workers(&daemon, 5);
    start = now_ms();
    daemon_signal(&daemon, SIGTERM);
    daemon_wait_log(&daemon, " INFO  *stopped$");
    ck_assert_uint_eq(daemon_count_log(&daemon, "\\[worker=.* was killed by signal 15 "), 5);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert_int_lt(now_ms() - start, (int64_t)(25000 * timeout_factor()));
}
END_TEST

/* The worker's handler runs; what it still says is delivered. */
START_TEST(spec_10_2_3_answers_while_draining_are_delivered)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .args = "'--on-sigterm','release'");
    client_connect(&client, &daemon);
    client_ask(&client, "'h'", "s", "hold", NULL);
    for (int i = 0; i < 20; i++)
        client_send(&client, "{'id':%d,'sessionId':'s','method':'plain','params':%d}", i, i);
    client_request(&client, NULL, "s", "notify", "{'n':1}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    daemon_signal(&daemon, SIGTERM);
    for (int i = 0; i < 20; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'sessionId':'s','result':%d}", i, i);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

/* Megabytes that wait for a client that begins to read only then. */
START_TEST(spec_10_2_3_client_queues_are_flushed)
{
    struct daemon daemon;
    struct client client, other;
    pid_t worker;
    START(&daemon, .instances = 1);
    client_connect_small(&client, &daemon);
    client_connect(&other, &daemon);
    daemon_wait_workers(&daemon, 1);
    ck_assert_uint_eq(daemon_workers(&daemon, &worker, 1), 1);
    for (int i = 0; i < 3; i++)
        client_send(&client, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    ck_assert(wait_fd(client.in, POLLIN, deadline_usual()));
    client_expect_quiet(&other);
    daemon_signal(&daemon, SIGTERM);
    wait_gone(worker);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_gt(client_line(&client).len, 1000000);
    client_expect_eof(&client);
    client_expect_eof(&other);
    client_close(&client);
    client_close(&other);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

START_TEST(spec_10_2_3_waits_for_drain_timeout_sec)
{
    struct daemon daemon;
    struct client client;
    start_stubborn(&daemon, &client, SETUP_UNIX, "'drain_timeout_sec':1");
    int64_t start = now_ms();
    daemon_signal(&daemon, SIGTERM);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert_int_ge(now_ms() - start, 1000);
}
END_TEST

/* Also a grandchild that ignores SIGTERM: it is in the worker's group. */
START_TEST(spec_10_2_4_the_rest_is_killed)
{
    struct daemon daemon;
    struct client client;
    start_stubborn(&daemon, &client, SETUP_UNIX, "'drain_timeout_sec':1");
    struct span result = client_ask(&client, "1", NULL, "grandchild",
                                    "{'hold':true,'ignore':true}");
    long grandchild = json_long(json_get(result, "pid"), -1);
    ck_assert(proc_alive((pid_t)grandchild));
    daemon_signal(&daemon, SIGTERM);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert(!proc_alive((pid_t)grandchild));
}
END_TEST

/* A client that reads nothing does not hold up the end for longer than the timeout. */
START_TEST(spec_10_2_3_stalled_client_does_not_hold_up_the_end)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_connect_small(&client, &daemon);
    for (int i = 0; i < 3; i++)
        client_send(&client, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    ck_assert(wait_fd(client.in, POLLIN, deadline_usual()));
    daemon_stop(&daemon);
    client_close(&client);
}
END_TEST

static void check_second_signal(int first, int second)
{
    struct daemon daemon;
    struct client client;
    int64_t start = now_ms();
    start_stubborn(&daemon, &client, SETUP_UNIX, NULL);
    daemon_signal(&daemon, first);
    wait_refused(&daemon);
    daemon_signal(&daemon, second);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert_int_lt(now_ms() - start, (int64_t)(25000 * timeout_factor()));
    client_close(&client);
}

START_TEST(design_second_signal_ends_the_wait)
{
    check_second_signal(SIGTERM, SIGTERM);
    check_second_signal(SIGINT, SIGINT);
    check_second_signal(SIGTERM, SIGINT);
}
END_TEST

/* The end of a session sends SIGHUP from several sides, and beside SIGTERM. */
START_TEST(design_hangup_does_not_end_the_wait)
{
    struct daemon daemon;
    struct client client;
    pid_t worker;
    start_stubborn(&daemon, &client, SETUP_UNIX, NULL);
    ck_assert_uint_eq(daemon_workers(&daemon, &worker, 1), 1);
    daemon_signal(&daemon, _i == 0 ? SIGHUP : SIGTERM);
    wait_refused(&daemon);
    for (int i = 0; i < 2; i++) { /* the second after all that the first has brought about */
        daemon_mark_log(&daemon);
        daemon_signal(&daemon, SIGHUP);
        daemon_wait_log(&daemon, "received Hangup");
    }
    ck_assert(proc_alive(worker));
    daemon_signal(&daemon, SIGTERM);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* While a worker waits for its restart, and while one crashes during the drain. */
START_TEST(spec_10_2_no_restart_while_draining)
{
    struct daemon daemon;
    struct client client;
    long pids[2];
    START(&daemon, .instances = 2, .limits = "'drain_timeout_sec':1",
          .args = "'--record','@DIR@/test-starts','--on-sigterm','ignore'");
    client_connect(&client, &daemon);
    client_meet_workers(&client, 2, pids);
    client_request(&client, "1", NULL, "die", NULL);
    client_error(&client, "1", -32000, "");
    daemon_signal(&daemon, SIGTERM);
    client_expect_eof(&client);
    client_close(&client);
    struct text starts = {0};
    char path[256];
    daemon_path(&daemon, path, "test-starts");
    size_t lines = 0;
    while (proc_alive(daemon.pid))
        nap();
    ck_assert(read_file(&starts, path));
    for (size_t i = 0; i < starts.len; i++)
        lines += starts.data[i] == '\n';
    ck_assert_uint_ge(lines, 2);
    ck_assert_uint_le(lines, 3);
    text_free(&starts);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

START_TEST(spec_appendix_c_log_lines_have_their_form)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .arguments = {"--log-level", "debug"});
    client_connect(&client, &daemon);
    client_ask(&client, "1", "s", "answer_twice", NULL);
    client_send(&client, "\x1b[31mnonsense");
    client_line(&client);
    client_expect_eof(&client);
    client_close(&client);
    daemon_wait_log(&daemon, " WARN .*JSON");
    size_t lines = daemon_count_log(&daemon, "");
    size_t formed = daemon_count_log(&daemon,
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
        "(DEBUG|INFO|WARN|ERROR) +[^ ]");
    ck_assert_uint_gt(lines, 3);
    ck_assert_uint_eq(lines, formed);
    ck_assert(!daemon_logged(&daemon, "\x1b"));
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_appendix_c_log_level)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .arguments = {"--log-level", "error"});
    client_stdio(&client, &daemon);
    client_ask(&client, "1", "s", "answer_twice", NULL);
    client_expect_quiet(&client);
    client_half_close(&client);
    client_expect_eof(&client);
    ck_assert_uint_eq(daemon_count_log(&daemon, "Z (DEBUG|INFO|WARN) "), 0);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 10: shutdown");
    TCase *trigger = harness_case(suite, "10.1 trigger");
    tcase_add_test(trigger, spec_10_1_sigterm);
    tcase_add_test(trigger, spec_10_1_sigint);
    tcase_add_test(trigger, spec_10_1_sigterm_in_stdio_mode);
    TCase *sequence = harness_case(suite, "10.2 sequence");
    tcase_add_test(sequence, spec_10_2_1_unix_listener_is_closed_first);
    tcase_add_test(sequence, spec_10_2_1_tcp_listener_is_closed_first);
    tcase_add_test(sequence, spec_10_2_2_workers_get_sigterm);
    tcase_add_test(sequence, spec_10_2_3_answers_while_draining_are_delivered);
    tcase_add_test(sequence, spec_10_2_3_client_queues_are_flushed);
    tcase_add_test(sequence, spec_10_2_3_waits_for_drain_timeout_sec);
    tcase_add_test(sequence, spec_10_2_4_the_rest_is_killed);
    tcase_add_test(sequence, spec_10_2_3_stalled_client_does_not_hold_up_the_end);
    tcase_add_test(sequence, design_second_signal_ends_the_wait);
    tcase_add_loop_test(sequence, design_hangup_does_not_end_the_wait, 0, 2);
    tcase_add_test(sequence, spec_10_2_no_restart_while_draining);
    TCase *log = harness_case(suite, "appendix C");
    tcase_add_test(log, spec_appendix_c_log_lines_have_their_form);
    tcase_add_test(log, spec_appendix_c_log_level);
    return harness_run(suite);
}
