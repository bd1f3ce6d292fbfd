/* Specification, chapter 10: graceful shutdown; and Appendix C, the log. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"

static const struct {
    int signo;
    enum setup_mode mode;
} triggers[] = {{SIGTERM, SETUP_UNIX}, {SIGINT, SETUP_UNIX}, {SIGTERM, SETUP_STDIO}};

TEST_ROWS(spec_10_1_signals_end_the_daemon, COUNT(triggers))
{
    struct daemon *daemon = START(.mode = triggers[row].mode, .instances = 3);
    struct client *client = triggers[row].mode == SETUP_STDIO ? client_stdio(daemon)
                                                              : client_connect(daemon);
    client_expect_quiet(client);
    daemon_signal(daemon, triggers[row].signo);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* A daemon with one worker that runs until it is killed. */
static struct daemon *start_stubborn(enum setup_mode mode, const char *limits)
{
    struct daemon *daemon = START(.mode = mode, .instances = 1, .limits = limits,
                                  .args = "'--on-sigterm','ignore','--stay'");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    client_close(client);
    return daemon;
}

/* A connection that is reset was made while the listener was being closed: the next one decides. */
static bool is_refused(const struct daemon *daemon)
{
    struct client *late = client_try_connect(daemon);
    if (late == NULL)
        return errno == ECONNREFUSED || errno == ENOENT;
    client_close(late);
    return false;
}

static void wait_refused(const struct daemon *daemon)
{
    WAIT_UNTIL(is_refused(daemon), "connections are still accepted");
}

static const enum setup_mode socket_modes[] = {SETUP_UNIX, SETUP_TCP};

TEST_ROWS(spec_10_2_1_listener_is_closed_first, COUNT(socket_modes))
{
    struct daemon *daemon = start_stubborn(socket_modes[row], NULL);
    daemon_signal(daemon, SIGTERM);
    wait_refused(daemon);
    ck_assert(proc_alive(daemon->pid));
    daemon_signal(daemon, SIGTERM); /* ends the drain */
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* SIGTERM reaches each worker, so the drain timeout of thirty seconds does not pass. */
TEST(spec_10_2_2_workers_get_sigterm)
{
    struct daemon *daemon = START(.instances = 5, .args = "'--stay'");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL); /* all are executed */
    daemon_wait_workers(daemon, 5);
    int64_t start = now_ms();
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, " INFO  *stopped$");
    ck_assert_uint_eq(daemon_count_log(daemon, "\\[worker=.* was killed by SIGTERM$"), 5);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_lt(now_ms() - start, (int64_t)(25000 * timeout_factor()));
}

/* A worker that ignores SIGTERM ends at the end of its input. */
TEST_ROWS(design_stdin_ends_with_sigterm, COUNT(triggers))
{
    long pids[3];
    struct daemon *daemon = START(.mode = triggers[row].mode, .instances = 3,
                                  .args = "'--on-sigterm','ignore'");
    client_meet_workers(triggers[row].mode == SETUP_STDIO ? client_stdio(daemon)
                                                          : client_connect(daemon),
                        3, pids);
    daemon_signal(daemon, triggers[row].signo);
    daemon_wait_log(daemon, " INFO  *stopped$");
    ck_assert_uint_eq(daemon_count_log(daemon, "worker=.* exited with status 0"), 3);
    ck_assert(!daemon_logged(daemon, "was killed by SIG|killing it"));
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The input ends only after the queue: the worker reads all of it. */
TEST(design_stdin_ends_after_the_queue)
{
    long pid;
    struct daemon *daemon = START(.instances = 1, .args = "'--on-sigterm','ignore'",
                                  .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    pid = client_pid(client, "1", NULL);
    client_ask(client, "2", NULL, "stop_reading", NULL);
    for (int i = 3; i < 6; i++)
        client_send(client, "{'id':%d,'method':'length','params':'%01000000d'}", i, 0);
    daemon_wait_log(daemon, "forwarding a message \\(id 5,");
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "shutting down");
    kill((pid_t)pid, SIGUSR1);
    for (int i = 3; i < 6; i++)
        client_result(client, test_format("%d", i));
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The daemon ends a worker that has closed its stdout. */
TEST(design_stdin_ends_after_stdout)
{
    struct daemon *daemon = START(.instances = 1, .args = "'--on-sigterm','ignore'");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "close_stdout", "{'answer':true}");
    daemon_wait_log(daemon, "worker=1 .*its stdout has ended");
    daemon_wait_log(daemon, "worker=1 .*exited with status 0");
    ck_assert(!daemon_logged(daemon, "killing it"));
}

/* A process that its parent, the worker, left behind: SIGTERM goes to the whole group. */
TEST(design_stdin_ends_for_the_group)
{
    struct daemon *daemon =
        START(.pools = "{'id':'a','command':'sh','instances':1,"
                       "'args':['-c','exec 3<&0; @WORKER@ --on-sigterm ignore <&3 3<&- & wait']}");
    struct client *client = client_connect(daemon);
    long parent = json_number(client_ask(client, "1", NULL, "environment", NULL), "ppid");
    kill((pid_t)parent, SIGKILL);
    daemon_wait_log(daemon, "was killed by SIGKILL");
    daemon_wait_log(daemon, "restarting in");
    ck_assert(!daemon_logged(daemon, "holds its stdout"));
}

/* The messages that the worker writes in its signal handler are delivered. */
TEST(spec_10_2_3_answers_while_draining_are_delivered)
{
    struct daemon *daemon = START(.instances = 1, .args = "'--on-sigterm','release','--stay'");
    struct client *client = client_connect(daemon);
    client_ask(client, "'h'", "s", "hold", NULL);
    client_send_plain(client, "s", 20);
    client_request(client, NULL, "s", "notify", "{'n':1}");
    client_expect_note(client, "s", 0);
    daemon_signal(daemon, SIGTERM);
    client_expect_plain(client, "s", 20);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The client begins to read megabytes only after the signal. */
TEST(spec_10_2_3_client_queues_are_flushed)
{
    pid_t worker;
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect_small(daemon), *other = client_connect(daemon);
    daemon_wait_workers(daemon, 1);
    ck_assert_uint_eq(daemon_workers(daemon, &worker, 1), 1);
    for (int i = 0; i < 3; i++)
        client_send(client, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    ck_assert(wait_fd(client->in, POLLIN, deadline_usual()));
    client_expect_quiet(other);
    daemon_signal(daemon, SIGTERM);
    wait_gone(worker);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_gt(client_line(client).len, 1000000);
    client_expect_eof(client);
    client_expect_eof(other);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(spec_10_2_3_waits_for_drain_timeout_sec)
{
    struct daemon *daemon = start_stubborn(SETUP_UNIX, "'drain_timeout_sec':1");
    int64_t start = now_ms();
    daemon_signal(daemon, SIGTERM);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_ge(now_ms() - start, 1000);
}

/* So is a grandchild that ignores SIGTERM: it belongs to the worker's process group. */
TEST(spec_10_2_4_remaining_processes_are_killed)
{
    struct daemon *daemon = start_stubborn(SETUP_UNIX, "'drain_timeout_sec':1");
    struct client *client = client_connect(daemon);
    struct span result = client_ask(client, "1", NULL, "grandchild", "{'hold':true,'ignore':true}");
    long grandchild = json_number(result, "pid");
    ck_assert(proc_alive((pid_t)grandchild));
    daemon_signal(daemon, SIGTERM);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert(!proc_alive((pid_t)grandchild));
}

/* A request waits for an id, for a worker of its own, or behind such a request. */
static const struct {
    const char *pool, *first, *held;
} holds[] = {
    {POOL("a", 1, ""), "{'id':1,'pool':'a','method':'no_answer'}", "{'id':1,'pool':'a'}\n"},
    {"{'id':'a','command':'@WORKER@','instances':1,'clients':'exclusive'}",
     "{'id':1,'pool':'a','method':'no_answer'}", "{'id':1,'pool':'a'}\n"},
};

TEST_ROWS(spec_10_2_held_requests_get_an_error, COUNT(holds))
{
    struct daemon *daemon = START(.pools = test_format("%s," POOL("b", 1, ""), holds[row].pool));
    struct client *first = client_connect(daemon), *held = client_connect(daemon),
                  *other = client_connect(daemon);
    client_send(first, "{'id':0,'pool':'a'}"); /* its worker runs then */
    client_result(first, "0");
    client_send(first, "%s", holds[row].first);
    client_send(other, "{'id':1,'pool':'b'}");
    client_result(other, "1");
    client_send(held, "%s%s", holds[row].held, "{'id':2,'pool':'a'}");
    for (int i = 2; i < 4; i++) { /* what was sent before is read by then */
        client_send(other, "{'id':%d,'pool':'b'}", i);
        client_result(other, test_format("%d", i));
    }
    daemon_signal(daemon, SIGTERM);
    client_error(held, "1", -32000, "the daemon is shutting down");
    client_error(held, "2", -32000, "the daemon is shutting down");
    client_expect_eof(held);
    client_error(first, "1", -32000, DIED);
    client_expect_eof(first);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* A client that does not read delays the exit by the timeout at most. */
TEST(spec_10_2_3_stalled_client_does_not_hold_up_the_end)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'drain_timeout_sec':1");
    struct client *client = client_connect_small(daemon);
    for (int i = 0; i < 3; i++)
        client_send(client, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    ck_assert(wait_fd(client->in, POLLIN, deadline_usual()));
    daemon_stop(daemon);
}

/* A client that does not read holds the worker, whose other client has a request in flight. After
 * drain_timeout_sec the former is disconnected, and the latter gets its answer or an error. The
 * worker exits at SIGTERM, or stays. */
static const char *const held_workers[] = {NULL, "'--on-sigterm','ignore','--stay'"};

TEST_ROWS(spec_10_2_stalled_client_costs_no_answer_of_others, COUNT(held_workers))
{
    steps_without("the requests have to be there at once");
    struct daemon *daemon = START(.instances = 1, .args = held_workers[row],
                                  .limits = "'drain_timeout_sec':1,'max_output_queue':65536",
                                  .arguments = {"--log-level", "debug"});
    struct client *stalled = client_connect_small(daemon), *other = client_connect(daemon);
    client_request(other, "'before'", NULL, "no_answer", NULL);
    for (int i = 0; i < 9; i++)
        client_send(stalled, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    daemon_wait_log(daemon, "client=1.*backpressure");
    client_request(other, "'after'", NULL, "plain", "{'result':1}");
    daemon_wait_log(daemon, "client=2.* forwarding a message .id after");
    daemon_signal(daemon, SIGTERM);
    client_error(other, "'before'", -32000, DIED);
    client_error(other, "'after'", -32000, DIED);
    client_expect_eof(other);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

static const int two_signals[][2] = {{SIGTERM, SIGTERM}, {SIGINT, SIGINT}, {SIGTERM, SIGINT}};

TEST_ROWS(design_second_signal_ends_the_wait, COUNT(two_signals))
{
    int64_t start = now_ms();
    struct daemon *daemon = start_stubborn(SETUP_UNIX, NULL);
    daemon_signal(daemon, two_signals[row][0]);
    wait_refused(daemon);
    daemon_signal(daemon, two_signals[row][1]);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_lt(now_ms() - start, (int64_t)(25000 * timeout_factor()));
}

/* A question whose id another question has in use waits for a client's reply. Clients are not read
 * any more, so it is refused, and the messages after it are delivered. */
TEST(spec_10_2_question_with_a_busy_id_does_not_hold_up_the_end)
{
#define AGENT(id)                                                                                  \
    "{'id':'" id "','command':'@WORKER@','args':['--on-sigterm','ignore'],'instances':1,"          \
    "'clients':'exclusive'}"
    struct daemon *daemon = START(.pools = AGENT("a") "," AGENT("b"),
                                  .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    client_send(client, "{'method':'say_only','params':{'message':{'id':1,'method':'q'}}}");
    client_expect(client, "{'id':1,'method':'q'}");
    client_send(client, "{'id':6,'pool':'b','method':'echo'}"); /* it ignores SIGTERM by now */
    client_result(client, "6");
    client_send(client, "{'id':7,'pool':'b','method':'say',"
                        "'params':{'message':{'id':1,'method':'q'}}}");
    daemon_wait_log(daemon, "forwarding a message .id 7.* to worker=2");
    daemon_signal(daemon, SIGTERM);
    client_result(client, "7");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The end of a login session sends several SIGHUPs, and SIGTERM beside them. */
TEST(design_hangup_does_not_end_the_wait)
{
    pid_t worker;
    struct daemon *daemon = start_stubborn(SETUP_UNIX, NULL);
    ck_assert_uint_eq(daemon_workers(daemon, &worker, 1), 1);
    daemon_signal(daemon, SIGTERM);
    wait_refused(daemon);
    for (int i = 0; i < 2; i++) { /* the second one after all effects of the first */
        daemon_mark_log(daemon);
        daemon_signal(daemon, SIGHUP);
        daemon_wait_log(daemon, "received SIGHUP");
    }
    ck_assert(proc_alive(worker));
    daemon_signal(daemon, SIGTERM);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* One worker waits for its restart, another crashes during the drain. */
TEST(spec_10_2_no_restart_while_draining)
{
    long pids[2];
    struct daemon *daemon = START(.instances = 2, .limits = "'drain_timeout_sec':1",
                                  .args = "'--record','@DIR@/test-starts','--on-sigterm','ignore'");
    struct client *client = client_connect(daemon);
    client_meet_workers(client, 2, pids);
    client_request(client, "1", NULL, "die", NULL);
    client_error(client, "1", -32000, "");
    daemon_signal(daemon, SIGTERM);
    client_expect_eof(client);
    struct text *starts = test_text();
    size_t lines = 0;
    while (proc_alive(daemon->pid))
        nap();
    ck_assert(read_file(starts, test_format("%s/test-starts", daemon->dir)));
    for (size_t i = 0; i < starts->len; i++)
        lines += starts->data[i] == '\n';
    ck_assert_uint_ge(lines, 2);
    ck_assert_uint_le(lines, 3);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(spec_appendix_c_log_lines_have_their_form)
{
    struct daemon *daemon = START(.instances = 1, .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    client_ask(client, "1", "s", "answer_twice", NULL);
    client_send(client, "\x1b[31mnonsense");
    client_line(client);
    client_expect_eof(client);
    client_close(client);
    daemon_wait_log(daemon, " WARN .*JSON");
    size_t lines, formed;
    do {
        lines = daemon_count_log(daemon, "");
        formed =
            daemon_count_log(daemon,
                             "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
                             "(DEBUG|INFO|WARN|ERROR) +[^ ]");
    } while (daemon_count_log(daemon, "") != lines); /* it logs meanwhile */
    ck_assert_uint_gt(lines, 3);
    ck_assert_uint_eq(lines, formed);
    ck_assert(!daemon_logged(daemon, "\x1b"));
}

TEST(spec_appendix_c_log_level)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1,
                                  .arguments = {"--log-level", "error"});
    struct client *client = client_stdio(daemon);
    client_ask(client, "1", "s", "answer_twice", NULL);
    client_expect_quiet(client);
    client_half_close(client);
    client_expect_eof(client);
    ck_assert_uint_eq(daemon_count_log(daemon, "Z (DEBUG|INFO|WARN) "), 0);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
