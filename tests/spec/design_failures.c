/* What else can go wrong, beyond the clauses of the specification: nothing spins, nothing hangs,
 * and whoever is not concerned does not notice. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static const char *const died = "worker exited before answering";

/* A client that has shut down its sending side, and one that is gone, with answers still due. */
static void check_asleep_with_gone_clients(enum setup_mode mode)
{
    struct daemon daemon;
    struct client half, whole, helper;
    START(&daemon, .mode = mode, .instances = 1);
    client_connect(&helper, &daemon);
    client_connect(&half, &daemon);
    client_connect(&whole, &daemon);
    client_ask(&helper, "'h'", NULL, "hold", NULL);
    client_request(&half, "1", NULL, "plain", "'late'");
    client_half_close(&half);
    client_request(&whole, "2", NULL, "plain", NULL);
    client_close(&whole);
    daemon_check_asleep(&daemon);
    client_ask(&helper, "'r'", NULL, "release", NULL);
    client_expect(&half, "{'jsonrpc':'2.0','id':1,'result':'late'}");
    client_expect_eof(&half);
    client_close(&half);
    client_expect_quiet(&helper);
    client_close(&helper);
    daemon_stop(&daemon);
}

START_TEST(design_asleep_with_half_closed_unix_clients)
{
    check_asleep_with_gone_clients(SETUP_UNIX);
}
END_TEST

START_TEST(design_asleep_with_half_closed_tcp_clients)
{
    check_asleep_with_gone_clients(SETUP_TCP);
}
END_TEST

/* Offers `text` until nothing more is taken; it must not be taken whole. */
static void fill_up(struct client *client, const struct text *text)
{
    size_t taken = client_offer(client, text->data, text->len);
    while (wait_fd(client->out, POLLOUT, now_ms() + 100) && taken < text->len)
        taken += client_offer(client, text->data + taken, text->len - taken);
    ck_assert_uint_lt(taken, text->len);
}

/* Paused on both sides: a client that does not read, a worker that does not read. */
START_TEST(design_asleep_under_backpressure)
{
    struct daemon daemon;
    struct client stalled, pushing;
    struct text line = {0};
    START(&daemon, .pools = POOL("a", 1, "") "," POOL("b", 1, ""),
          .limits = "'max_output_queue':10000");
    client_connect_small(&stalled, &daemon);
    client_connect(&pushing, &daemon);
    client_send(&stalled, "{'id':1,'pool':'a','sessionId':'s','method':'notify',"
                          "'params':{'n':500,'size':2000}}");
    client_send(&pushing, "{'id':2,'pool':'b','sessionId':'t','method':'stop_reading'}");
    client_result(&pushing, "2");
    for (int i = 0; i < 4; i++) {
        text_printf(&line, "{\"sessionId\":\"t\",\"x\":\"");
        text_fill(&line, 'x', 900000);
        text_printf(&line, "\"}\n");
    }
    ck_assert(wait_fd(stalled.in, POLLIN, deadline_usual()));
    fill_up(&pushing, &line);
    daemon_check_asleep(&daemon);
    text_free(&line);
    client_abort(&stalled);
    client_abort(&pushing);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_asleep_while_draining)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2, .args = "'--on-sigterm','ignore','--stay'");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_signal(&daemon, SIGTERM);
    daemon_wait_log(&daemon, "shutting down");
    daemon_check_asleep(&daemon);
    daemon_signal(&daemon, SIGTERM); /* enough waited */
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

/* Killed while it was not read from, for the sake of a client that does not read, and while its
 * own queue was full. The one that takes its place has nothing to do with all that. */
START_TEST(design_worker_killed_with_full_queues_on_both_sides)
{
    struct daemon daemon;
    struct client stalled, pushing, other;
    struct text lines = {0};
    struct span line;
    START(&daemon, .instances = 1,
          .limits = "'max_output_queue':10000,'backpressure_timeout_sec':2");
    client_connect_small(&stalled, &daemon);
    client_connect(&pushing, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&stalled, "1", "s");
    client_request(&stalled, "2", "s", "notify", "{'n':3000,'size':500}");
    ck_assert(wait_fd(stalled.in, POLLIN, deadline_usual()));
    for (int i = 0; i < 3000; i++)
        text_printf(&lines, "{\"method\":\"no_answer\",\"x\":\"%0400d\"}\n", i);
    fill_up(&pushing, &lines);
    kill((pid_t)pid, SIGKILL);
    client_abort(&pushing);
    while (client_line_before(&stalled, deadline_usual(), &line)) {
        if (json_get(line, "error").data != NULL)
            break;
    }
    wait_gone(pid);
    long next = client_pid(&other, "3", NULL);
    ck_assert_int_ne(next, pid);
    ck_assert(!client_line_before(&other, now_ms() + 2500, &line));
    ck_assert_int_eq(client_pid(&other, "4", NULL), next);
    daemon_check_asleep(&daemon);
    text_free(&lines);
    client_close(&stalled);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Nothing can be asked of it any more. Who asks is told, and a new one takes its place. */
START_TEST(design_worker_that_closes_stdin_is_replaced)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", "s", "close_stdin", NULL);
    long pid = json_long(json_get(result, "pid"), -1);
    daemon_check_asleep(&daemon);
    client_request(&client, "2", "s", "echo", NULL);
    struct span line = client_line(&client);
    ck_assert(span_is(json_get(line, "id"), "2"));
    ck_assert_int_ne(json_long(json_get(line, "result.pid"), -1), pid);
    ck_assert_int_ne(client_pid(&client, "3", "s"), pid);
    wait_gone(pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* One client pushes as much as it can; the other one is served all the same. */
START_TEST(design_flood_does_not_starve_others)
{
    struct daemon daemon;
    struct client flood, other;
    struct text lines = {0};
    START(&daemon, .pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    client_connect(&flood, &daemon);
    client_connect(&other, &daemon);
    while (lines.len < 500000)
        text_printf(&lines, "{\"pool\":\"a\",\"method\":\"no_answer\",\"params\":[1,2,3]}\n");
    size_t at = 0;
    for (int i = 0; i < 200; i++) {
        at += client_offer(&flood, lines.data + at, lines.len - at);
        at = at == lines.len ? 0 : at;
        client_send(&other, "{'id':%d,'pool':'b','method':'plain','params':%d}", i, i);
        client_expect(&other, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    }
    text_free(&lines);
    client_close(&flood);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

#define FLOODS 8

/* Processes that send into the session without a pause until they are killed. */
static void start_floods(const struct daemon *daemon, const char *session, pid_t pids[FLOODS])
{
    for (int i = 0; i < FLOODS; i++) {
        struct client client;
        struct text lines = {0};
        client_connect(&client, daemon);
        fcntl(client.out, F_SETFL, fcntl(client.out, F_GETFL) & ~O_NONBLOCK);
        while (lines.len < 100000)
            text_printf(&lines, "{\"sessionId\":\"%s\",\"method\":\"no_answer\"}\n", session);
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        while (pids[i] == 0) {
            if (write(client.out, lines.data, lines.len) < 0)
                _exit(0);
        }
        text_free(&lines);
        client_close(&client);
    }
}

static void end_floods(const pid_t pids[FLOODS])
{
    for (int i = 0; i < FLOODS; i++) {
        kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    }
}

/* Its id is taken at both workers, one of which fills up and drains all the time. */
START_TEST(design_flood_does_not_prolong_a_hold)
{
    struct daemon daemon;
    struct client first, second, held;
    pid_t floods[FLOODS];
    START(&daemon, .instances = 2,
          .limits = "'max_output_queue':65536,'backpressure_timeout_sec':1");
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_connect(&held, &daemon);
    client_request(&first, "7", "a", "no_answer", NULL);
    client_pid(&first, "1", "a");
    client_request(&second, "7", "b", "no_answer", NULL);
    client_pid(&second, "1", "b");
    start_floods(&daemon, "b", floods);
    client_send(&held, "{'id':7,'method':'plain'}");
    client_error(&held, "7", -32000, "still in use");
    end_floods(floods);
    client_close(&first);
    client_close(&second);
    client_close(&held);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_hundreds_of_short_connections)
{
    struct daemon daemon;
    struct client client;
    if (!proc_available())
        return;
    START(&daemon, .instances = 1);
    int fds = client_settled_fds(&daemon, 1);
    for (int i = 0; i < 400; i++) {
        client_connect(&client, &daemon);
        if (i % 3 == 0)
            client_send(&client, "{'id':1,'method':'echo'}");
        client_close(&client);
    }
    daemon_wait_fds(&daemon, fds);
    daemon_stop(&daemon);
}
END_TEST

/* What is in flight when the daemon is told to stop, and is not answered, is answered by the
 * daemon. */
START_TEST(design_requests_in_flight_at_the_end_are_told)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "no_answer", NULL);
    client_pid(&client, "2", "s");
    daemon_signal(&daemon, SIGTERM);
    client_error(&client, "1", -32000, died);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

/* The end of input comes while the worker is being restarted. */
START_TEST(design_end_of_stdin_during_a_restart)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 1);
    client_stdio(&client, &daemon);
    client_request(&client, "1", NULL, "die", NULL);
    client_error(&client, "1", -32000, died);
    client_request(&client, "2", NULL, "plain", "'after it'");
    client_half_close(&client);
    client_expect(&client, "{'jsonrpc':'2.0','id':2,'result':'after it'}");
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* A script whose interpreter is not there passes every look at the file; only exec finds out. */
START_TEST(design_command_that_exec_refuses)
{
    char dir[160], path[200];
    struct text config = {0}, err = {0};
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* under valgrind it is valgrind that fails, not exec */
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/script", dir);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fputs("#!/nowhere/interpreter\n", script);
    fclose(script);
    ck_assert_int_eq(chmod(path, 0700), 0);
    text_printf(&config, "{'pools':[{'id':'good','command':'@WORKER@','instances':2},"
                         "{'id':'bad','command':'%s','instances':2}]}", path);
    struct setup setup = {.mode = SETUP_UNIX, .config = config.data};
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 78);
    ck_assert_msg(strstr(err.data, path) != NULL && strstr(err.data, "No such file") != NULL,
                  "%s", err.data);
    text_free(&config);
    text_free(&err);
    harness_remove_dir(dir);
}
END_TEST

/* The program is removed while its worker runs: the restart fails like any other crash. */
START_TEST(design_command_that_is_gone_at_the_restart)
{
    struct daemon daemon;
    struct client client;
    char path[256];
    struct text worker = {0}, binary = {0}, config = {0};
    char dir[160];
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* under valgrind it is valgrind that fails, not exec */
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/worker", dir);
    memset(&daemon, 0, sizeof daemon);
    daemon_expand(&daemon, &worker, "@WORKER@");
    ck_assert(read_file(&binary, worker.data));
    FILE *copy = fopen(path, "w");
    ck_assert_ptr_nonnull(copy);
    ck_assert_uint_eq(fwrite(binary.data, 1, binary.len, copy), binary.len);
    fclose(copy);
    ck_assert_int_eq(chmod(path, 0700), 0);
    text_printf(&config, "{'pools':[{'id':'p','command':'%s','instances':1}],"
                         "'limits':{'max_restarts':2}}", path);
    START(&daemon, .config = config.data);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    ck_assert_int_eq(unlink(path), 0);
    client_request(&client, "1", NULL, "die", NULL);
    client_error(&client, "1", -32000, died);
    daemon_wait_log(&daemon, " ERROR .*No such file");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
    text_free(&worker);
    text_free(&binary);
    text_free(&config);
    harness_remove_dir(dir);
}
END_TEST

/* Started by a supervisor that closed stdin and stdout: no connection takes their place. */
START_TEST(design_started_with_closed_descriptors)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2, .closed = true);
    client_connect(&client, &daemon);
    struct span born = client_ask(&client, "1", NULL, "environment", NULL);
    ck_assert(span_is(json_get(born, "fds.0.kind"), "\"pipe\""));
    ck_assert(span_is(json_get(born, "fds.1.kind"), "\"pipe\""));
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Ten thousand messages that cannot be routed are no ten thousand lines in the log. */
START_TEST(design_log_is_not_flooded)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "garbage", "{'hex':'7b7d0a','times':10000}");
    client_expect_quiet(&client);
    daemon_wait_log(&daemon, " WARN .*\\[worker=");
    ck_assert_uint_le(daemon_count_log(&daemon, " WARN "), 50);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Who asks for one error after the other and reads none is not read any more, and gets each of them
 * once it reads. */
START_TEST(design_refusals_have_to_be_read)
{
    struct daemon daemon;
    struct client client;
    struct text lines = {0};
    size_t sent = 0, taken;
    long refused = 0;
    START(&daemon, .instances = 1, .limits = "'max_output_queue':65536");
    client_connect_small(&client, &daemon);
    for (int i = 0; i < 1000; i++)
        text_printf(&lines, "{\"id\":%d,\"pool\":\"none\",\"method\":\"m\"}\n", i);
    do { /* until the daemon sleeps with everything between us full */
        taken = client_offer(&client, lines.data + sent % lines.len, lines.len - sent % lines.len);
        sent += taken;
        if (taken == 0)
            daemon_check_asleep(&daemon);
        ck_assert_msg(sent < 50 * lines.len, "%zu bytes were taken, and there is no end", sent);
    } while (taken > 0 || wait_fd(client.out, POLLOUT, now_ms()));
    for (size_t whole = sent / lines.len * 1000; refused < (long)whole; refused++)
        ck_assert_int_eq(json_long(json_get(client_line(&client), "id"), -1), refused % 1000);
    text_free(&lines);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A worker that reads nothing while it writes, as single-threaded ones do: with a long message on
 * its way to it, all that it writes is taken nevertheless, the refused included. */
START_TEST(design_worker_with_a_full_queue_can_be_refused)
{
    struct daemon daemon;
    struct client client;
    struct text lines = {0}, refused = {0};
    START(&daemon, .instances = 1,
          .limits = "'max_output_queue':65536,'backpressure_timeout_sec':2");
    client_connect(&client, &daemon);
    pid_t worker = (pid_t)client_pid(&client, "1", NULL);
    client_request(&client, "2", NULL, "stop_reading", NULL);
    client_result(&client, "2");
    text_printf(&refused, "{\"id\":1,\"method\":\"m\",\"params\":\"%0400d\"}\n", 0);
    text_printf(&lines, "{\"id\":3,\"method\":\"garbage\",\"params\":{\"times\":500,\"hex\":\"");
    for (size_t i = 0; i < refused.len; i++)
        text_printf(&lines, "%02x", (unsigned char)refused.data[i]);
    text_printf(&lines, "\"}}\n{\"id\":4,\"method\":\"no_answer\",\"params\":\"");
    text_fill(&lines, 'x', 900000);
    text_printf(&lines, "\"}\n");
    client_send_bytes(&client, lines.data, lines.len);
    daemon_check_asleep(&daemon); /* with most of it in the worker's queue */
    kill(worker, SIGUSR1);
    ck_assert_int_eq(client_pid(&client, "5", NULL), worker);
    text_free(&lines);
    text_free(&refused);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("design: failures");
    TCase *asleep = harness_case(suite, "nothing spins");
    tcase_add_test(asleep, design_asleep_with_half_closed_unix_clients);
    tcase_add_test(asleep, design_asleep_with_half_closed_tcp_clients);
    tcase_add_test(asleep, design_asleep_under_backpressure);
    tcase_add_test(asleep, design_asleep_while_draining);
    TCase *workers = harness_case(suite, "workers");
    tcase_add_test(workers, design_worker_that_closes_stdin_is_replaced);
    tcase_add_test(workers, design_worker_killed_with_full_queues_on_both_sides);
    tcase_add_test(workers, design_command_that_exec_refuses);
    tcase_add_test(workers, design_command_that_is_gone_at_the_restart);
    tcase_add_test(workers, design_worker_with_a_full_queue_can_be_refused);
    TCase *clients = harness_case(suite, "clients");
    tcase_add_test(clients, design_flood_does_not_starve_others);
    tcase_add_test(clients, design_flood_does_not_prolong_a_hold);
    tcase_add_test(clients, design_refusals_have_to_be_read);
    tcase_add_test(clients, design_hundreds_of_short_connections);
    TCase *daemon = harness_case(suite, "the daemon");
    tcase_add_test(daemon, design_requests_in_flight_at_the_end_are_told);
    tcase_add_test(daemon, design_end_of_stdin_during_a_restart);
    tcase_add_test(daemon, design_started_with_closed_descriptors);
    tcase_add_test(daemon, design_log_is_not_flooded);
    return harness_run(suite);
}
