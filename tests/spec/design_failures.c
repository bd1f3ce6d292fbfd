/* Failures beyond the clauses of the specification: the daemon neither spins nor hangs, and serves
 * the other clients. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"

static const enum setup_mode socket_modes[] = {SETUP_UNIX, SETUP_TCP};

/* A client that has shut down its sending side, and a closed one, with answers due to both. */
TEST_ROWS(design_asleep_with_half_closed_clients, COUNT(socket_modes))
{
    struct daemon *daemon = START(.mode = socket_modes[row], .instances = 1);
    struct client *helper = client_connect(daemon), *half = client_connect(daemon);
    struct client *whole = client_connect(daemon);
    client_ask(helper, "'h'", NULL, "hold", NULL);
    client_request(half, "1", NULL, "plain", "'late'");
    client_half_close(half);
    client_request(whole, "2", NULL, "plain", NULL);
    client_close(whole);
    daemon_check_asleep(daemon);
    client_ask(helper, "'r'", NULL, "release", NULL);
    client_expect(half, "{'jsonrpc':'2.0','id':1,'result':'late'}");
    client_expect_eof(half);
    client_expect_quiet(helper);
}

/* Offers `text` until the daemon takes no more; it must not take all of it. */
static void fill_up(struct client *client, const struct text *text)
{
    size_t taken = client_offer(client, text->data, text->len);
    while (wait_fd(client->out, POLLOUT, now_ms() + 100) && taken < text->len)
        taken += client_offer(client, text->data + taken, text->len - taken);
    ck_assert_uint_lt(taken, text->len);
}

/* One client does not read, and one worker does not read. */
TEST(design_asleep_under_backpressure)
{
    struct text *line = test_text();
    struct daemon *daemon = START(.pools = POOL("a", 1, "") "," POOL("b", 1, ""),
                                  .limits = "'max_output_queue':10000");
    struct client *stalled = client_connect_small(daemon), *pushing = client_connect(daemon);
    client_send(stalled, "{'id':1,'pool':'a','sessionId':'s','method':'notify',"
                         "'params':{'n':500,'size':2000}}");
    client_send(pushing, "{'id':2,'pool':'b','sessionId':'t','method':'stop_reading'}");
    client_result(pushing, "2");
    for (int i = 0; i < 4; i++)
        text_printf(line, "{\"sessionId\":\"t\",\"x\":\"%s\"}\n", test_fill('x', 900000));
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    fill_up(pushing, line);
    daemon_check_asleep(daemon);
    client_abort(stalled);
    client_abort(pushing);
}

TEST(design_asleep_while_draining)
{
    struct daemon *daemon = START(.instances = 2, .args = "'--on-sigterm','ignore','--stay'");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "shutting down");
    daemon_check_asleep(daemon);
    daemon_signal(daemon, SIGTERM); /* ends the drain */
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The worker is killed while the daemon does not read from it, because a client does not read, and
 * while its own queue is full. Its successor starts with neither. */
TEST(design_worker_killed_with_full_queues_on_both_sides)
{
    struct text *lines = test_text();
    struct span line;
    struct daemon *daemon =
        START(.instances = 1, .limits = "'max_output_queue':10000,'backpressure_timeout_sec':2");
    struct client *stalled = client_connect_small(daemon), *pushing = client_connect(daemon);
    struct client *other = client_connect(daemon);
    long pid = client_pid(stalled, "1", "s");
    client_request(stalled, "2", "s", "notify", "{'n':3000,'size':500}");
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    for (int i = 0; i < 3000; i++)
        text_printf(lines, "{\"method\":\"no_answer\",\"x\":\"%0400d\"}\n", i);
    fill_up(pushing, lines);
    kill((pid_t)pid, SIGKILL);
    client_abort(pushing);
    while (client_line_before(stalled, deadline_usual(), &line)) {
        if (json_get(line, "error").data != NULL)
            break;
    }
    wait_gone(pid);
    long next = client_pid(other, "3", NULL);
    ck_assert_int_ne(next, pid);
    ck_assert(!client_line_before(other, now_ms() + 2500, &line));
    ck_assert_int_eq(client_pid(other, "4", NULL), next);
    daemon_check_asleep(daemon);
}

/* The next request finds the pipe closed and is served by a new process. */
TEST(design_worker_that_closes_stdin_is_replaced)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'drain_timeout_sec':1");
    struct client *client = client_connect(daemon);
    long pid = json_number(client_ask(client, "1", "s", "close_stdin", NULL), "pid");
    daemon_check_asleep(daemon);
    client_request(client, "2", "s", "echo", NULL);
    struct span line = client_line(client);
    expect_member(line, "id", "2");
    ck_assert_int_ne(json_number(line, "result.pid"), pid);
    ck_assert_int_ne(client_pid(client, "3", "s"), pid);
    wait_gone(pid);
}

/* One client sends as fast as it can; the other one is served all the same. */
TEST(design_flood_does_not_starve_others)
{
    struct text *lines = test_text();
    struct daemon *daemon = START(.pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    struct client *flood = client_connect(daemon), *other = client_connect(daemon);
    while (lines->len < 500000)
        text_printf(lines, "{\"pool\":\"a\",\"method\":\"no_answer\",\"params\":[1,2,3]}\n");
    size_t at = 0;
    for (int i = 0; i < 200; i++) {
        at += client_offer(flood, lines->data + at, lines->len - at);
        at = at == lines->len ? 0 : at;
        client_send(other, "{'id':%d,'pool':'b','method':'plain','params':%d}", i, i);
        client_expect(other, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    }
}

#define FLOODS 8

/* Processes that send to the session without a pause until they are killed. */
static void start_floods(const struct daemon *daemon, const char *session, pid_t pids[FLOODS])
{
    for (int i = 0; i < FLOODS; i++) {
        struct text *lines = test_text();
        struct client *client = client_connect(daemon);
        fcntl(client->out, F_SETFL, fcntl(client->out, F_GETFL) & ~O_NONBLOCK);
        while (lines->len < 100000)
            text_printf(lines, "{\"sessionId\":\"%s\",\"method\":\"no_answer\"}\n", session);
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        while (pids[i] == 0) {
            if (write(client->out, lines->data, lines->len) < 0)
                _exit(0);
        }
        client_close(client);
    }
}

static void end_floods(const pid_t pids[FLOODS])
{
    for (int i = 0; i < FLOODS; i++) {
        kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    }
}

/* The request's id is in flight at both workers, one of which fills up and drains all the time. */
TEST(design_flood_does_not_prolong_a_hold)
{
    pid_t floods[FLOODS];
    struct daemon *daemon =
        START(.instances = 2, .limits = "'max_output_queue':65536,'backpressure_timeout_sec':1");
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    struct client *held = client_connect(daemon);
    client_request(first, "7", "a", "no_answer", NULL);
    client_pid(first, "1", "a");
    client_request(second, "7", "b", "no_answer", NULL);
    client_pid(second, "1", "b");
    start_floods(daemon, "b", floods);
    client_send(held, "{'id':7,'method':'plain'}");
    client_error(held, "7", -32000, "still in use");
    end_floods(floods);
}

TEST(design_hundreds_of_short_connections)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 1);
    int fds = client_settled_fds(daemon, 1);
    for (int i = 0; i < 400; i++) {
        struct client *client = client_connect(daemon);
        if (i % 3 == 0)
            client_send(client, "{'id':1,'method':'echo'}");
        client_close(client);
    }
    daemon_wait_fds(daemon, fds);
}

TEST(design_requests_in_flight_at_shutdown_get_errors)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_request(client, "1", "s", "no_answer", NULL);
    client_pid(client, "2", "s");
    daemon_signal(daemon, SIGTERM);
    client_error(client, "1", -32000, DIED);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The end of input comes while the worker waits for its restart. */
TEST(design_end_of_stdin_during_a_restart)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1);
    struct client *client = client_stdio(daemon);
    client_crash(client, "1", NULL, NULL);
    client_request(client, "2", NULL, "plain", "'after it'");
    client_half_close(client);
    client_expect(client, "{'jsonrpc':'2.0','id':2,'result':'after it'}");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* Writes an executable file. */
static void write_program(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
}

/* A script whose interpreter does not exist: only exec detects that. */
TEST(design_command_that_exec_refuses)
{
    static const char script[] = "#!/nowhere/interpreter\n";
    const char *path = test_format("%s/script", test_dir());
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* under valgrind exec does not fail, but valgrind does */
    write_program(path, script, sizeof script - 1);
    const char *pools = test_format("{'id':'good','command':'@WORKER@','instances':2},"
                                    "{'id':'bad','command':'%s','instances':2}",
                                    path);
    const char *err = RUN(78, .pools = pools);
    expect_word(err, path);
    expect_word(err, "No such file");
}

/* The program is removed while its worker runs: the restart fails like any other crash. */
TEST(design_command_that_is_gone_at_the_restart)
{
    steps_without_reloads("the configuration names a program that is gone");
    const char *path = test_format("%s/worker", test_dir());
    struct text *worker = test_text(), *binary = test_text();
    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* under valgrind exec does not fail, but valgrind does */
    daemon_expand(NULL, worker, "@WORKER@");
    ck_assert(read_file(binary, worker->data));
    write_program(path, binary->data, binary->len);
    struct daemon *daemon =
        START(.pools = test_format("{'id':'p','command':'%s','instances':1}", path),
              .limits = "'max_restarts':2");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    ck_assert_int_eq(unlink(path), 0);
    client_crash(client, "1", NULL, NULL);
    daemon_wait_log(daemon, " ERROR .*No such file");
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

/* A supervisor closed stdin and stdout: no connection takes their numbers. */
TEST(design_started_with_closed_descriptors)
{
    struct client *client = client_connect(START(.instances = 2, .closed = true));
    struct span born = client_ask(client, "1", NULL, "environment", NULL);
    expect_member(born, "fds.0.kind", "'pipe'");
    expect_member(born, "fds.1.kind", "'pipe'");
    client_expect_quiet(client);
}

/* Ten thousand messages that cannot be routed log few lines. */
TEST(design_log_is_not_flooded)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_request(client, "1", "s", "garbage", "{'hex':'7b7d0a','times':10000}");
    client_expect_quiet(client);
    daemon_wait_log(daemon, " WARN .*\\[worker=");
    ck_assert_uint_le(daemon_count_log(daemon, " WARN "), 50);
}

/* The daemon stops reading from a client that does not read its errors; none of them is lost. */
TEST(design_client_with_unread_refusals_is_paused)
{
    struct text *lines = test_text();
    size_t sent = 0, taken;
    long refused = 0;
    struct daemon *daemon = START(.instances = 1, .limits = "'max_output_queue':65536");
    struct client *client = client_connect_small(daemon);
    for (int i = 0; i < 1000; i++)
        text_printf(lines, "{\"id\":%d,\"pool\":\"none\",\"method\":\"m\"}\n", i);
    do { /* until the daemon sleeps and all buffers are full */
        size_t from = sent % lines->len;
        taken = client_offer(client, lines->data + from, lines->len - from);
        sent += taken;
        if (taken == 0)
            daemon_check_asleep(daemon);
        ck_assert_msg(sent < 50 * lines->len, "%zu bytes were taken, and there is no end", sent);
    } while (taken > 0 || wait_fd(client->out, POLLOUT, now_ms()));
    for (size_t whole = sent / lines->len * 1000; refused < (long)whole; refused++)
        ck_assert_int_eq(json_number(client_line(client), "id"), refused % 1000);
}

/* A single-threaded worker reads nothing while it writes. All its output is read although a long
 * message waits for it, requests that are refused included. */
TEST(design_worker_with_a_full_queue_can_be_refused)
{
    struct text *hex = test_text();
    struct daemon *daemon =
        START(.instances = 1, .limits = "'max_output_queue':65536,'backpressure_timeout_sec':2");
    struct client *client = client_connect(daemon);
    pid_t worker = (pid_t)client_pid(client, "1", NULL);
    client_ask(client, "2", NULL, "stop_reading", NULL);
    const char *refused = test_format("{\"id\":1,\"method\":\"m\",\"params\":\"%0400d\"}\n", 0);
    text_hex(hex, refused, strlen(refused));
    client_send(client, "{'id':3,'method':'garbage','params':{'times':500,'hex':'%s'}}", hex->data);
    client_send(client, "{'id':4,'method':'no_answer','params':'%s'}", test_fill('x', 900000));
    daemon_check_asleep(daemon); /* with most of it in the worker's queue */
    kill(worker, SIGUSR1);
    ck_assert_int_eq(client_pid(client, "5", NULL), worker);
}
