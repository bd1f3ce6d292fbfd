/* The transport contract: the daemon's own manners as a server on stdin and stdout. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "harness.h"

/* Requests as they come from a file or a pipe at once. */
static void add_requests(struct text *text, int count)
{
    for (int i = 0; i < count; i++)
        text_printf(text, "{\"id\":%d,\"sessionId\":\"s\",\"method\":\"plain\",\"params\":%d}\n", i,
                    i);
}

static void expect_answers(struct client *client, int count)
{
    for (int i = 0; i < count; i++)
        client_expect(client, "{'jsonrpc':'2.0','id':%d,'sessionId':'s','result':%d}", i, i);
}

/* Pipelined, and the pipe closed at once: every answer comes, then the end, then exit 0. */
START_TEST(contract_end_of_stdin_completes_what_is_in_progress)
{
    struct daemon daemon;
    struct client client;
    struct text text = {0};
    START(&daemon, .mode = SETUP_STDIO, .instances = 3);
    client_stdio(&client, &daemon);
    add_requests(&text, 500);
    client_send_bytes(&client, text.data, text.len);
    client_half_close(&client);
    expect_answers(&client, 500);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
    text_free(&text);
}
END_TEST

/* The answer that is waited for is two processes away and takes its time. */
START_TEST(contract_end_of_stdin_waits_for_slow_answers)
{
    struct daemon daemon;
    struct client client;
    struct span line;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2);
    client_stdio(&client, &daemon);
    struct span born = client_ask(&client, "1", "s", "environment", NULL);
    pid_t worker = (pid_t)json_long(json_get(born, "pid"), -1);
    client_request(&client, "2", "s", "stop_reading", NULL);
    client_result(&client, "2");
    client_request(&client, "3", "s", "plain", "'late'");
    client_half_close(&client);
    ck_assert(!client_line_before(&client, now_ms() + 200, &line));
    ck_assert(!client.eof);
    kill(worker, SIGUSR1);
    client_expect(&client, "{'jsonrpc':'2.0','id':3,'sessionId':'s','result':'late'}");
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* An answer that never comes is waited for until drain_timeout_sec, no longer. */
START_TEST(contract_end_of_stdin_waits_for_drain_timeout_at_most)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    client_request(&client, "1", NULL, "no_answer", NULL);
    client_half_close(&client);
    struct span line;
    if (client_line_before(&client, deadline_usual(), &line))
        ck_assert(span_is(json_get(line, "id"), "1") && json_get(line, "error").data != NULL);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

START_TEST(contract_end_of_stdin_at_once)
{
    struct text out = {0};
    struct setup setup = {.mode = SETUP_STDIO, .instances = 2}; /* stdin is /dev/null */
    ck_assert_int_eq(daemon_run(&setup, &out, NULL), 0);
    ck_assert_uint_eq(out.len, 0);
    text_free(&out);
}
END_TEST

START_TEST(contract_unterminated_last_line_of_stdin)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO);
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    client_send_bytes(&client, "{\"id\":1}", 8);
    client_half_close(&client);
    client_expect_eof(&client);
    daemon_wait_log(&daemon, " WARN .*in the middle of a message");
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

START_TEST(contract_ready_without_output)
{
    struct daemon daemon;
    struct client client;
    struct span line;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2, .arguments = {"--log-level", "debug"});
    client_stdio(&client, &daemon);
    daemon_wait_log(&daemon, "running");
    ck_assert(!client_line_before(&client, 0, &line));
    client_expect_quiet(&client);
    client_half_close(&client);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* Through a life with warnings, errors and a crash, every line on stdout is a JSON object. */
START_TEST(contract_stdout_carries_messages_only)
{
    struct daemon daemon;
    struct client client;
    struct span line;
    int lines = 0;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2, .members = "'colour':1",
          .arguments = {"--log-level", "debug"});
    client_stdio(&client, &daemon);
    client_request(&client, "1", "s", "answer_twice", NULL);
    client_request(&client, "2", "t", "die", NULL);
    client_request(&client, "3", "s", "write_stderr", "{'text':'words'}");
    client_request(&client, "4", "s", "notify", "{'n':3}");
    client_request(&client, "5", "t", "plain", "{'a':1}");
    client_request(&client, "6", NULL, "plain", "{'a':1}");
    client_half_close(&client);
    for (; client_line_before(&client, deadline_usual(), &line); lines++) {
        ck_assert(line.data[0] == '{' && line.data[line.len - 1] == '}');
        ck_assert(span_is(json_get(line, "jsonrpc"), "\"2.0\""));
    }
    ck_assert(client.eof);
    ck_assert_int_eq(lines, 9);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

START_TEST(contract_reads_whole_lines)
{
    struct daemon daemon;
    struct client client;
    struct text text = {0};
    START(&daemon, .mode = SETUP_STDIO, .instances = 1);
    client_stdio(&client, &daemon);
    add_requests(&text, 20);
    client_send_chunks(&client, text.data, text.len, 1);
    expect_answers(&client, 20);
    client_half_close(&client);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
    text_free(&text);
}
END_TEST

/* stdio_bus --config c.json < requests.ndjson > answers.ndjson; also where the size of the file is
 * more than a long has on a 32-bit machine (it has a hole in front of the requests). */
START_TEST(contract_stdin_is_a_file)
{
    const off_t start = _i == 0 ? 0 : (off_t)3 << 30;
    char dir[160], path[200];
    struct text text = {0}, out = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/test-requests", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    add_requests(&text, 3000);
    ck_assert(lseek(fd, start, SEEK_SET) == start);
    ck_assert_int_eq(write(fd, text.data, text.len), (ssize_t)text.len);
    ck_assert(lseek(fd, start, SEEK_SET) == start);
    struct setup setup = {.mode = SETUP_STDIO, .instances = 2, .stdin_fd = fd};
    ck_assert_int_eq(daemon_run(&setup, &out, NULL), 0);
    struct client answers = {.in = -1, .out = -1, .input = out};
    expect_answers(&answers, 3000);
    ck_assert_uint_eq(answers.consumed, out.len);
    text_free(&out);
    text_free(&text);
    close(fd);
    harness_remove_dir(dir);
}
END_TEST

/* Both sides one socket, as programs do that start it with a socket pair. */
START_TEST(contract_stdin_is_a_socket)
{
    struct daemon daemon;
    struct client client;
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .stdin_fd = pair[1],
          .stdout_fd = pair[1]);
    close(pair[1]);
    client_adopt(&client, pair[0], pair[0]);
    client_expect_quiet(&client);
    client_request(&client, "1", NULL, "plain", "1");
    client_half_close(&client);
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':1}");
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

static bool nonblocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

/* The flags are those of all who share the description, a terminal's as their stderr too. */
static void expect_flags_untouched(int fd)
{
#ifdef __linux__ /* elsewhere /dev/fd may give the same description once more */
    ck_assert(!nonblocking(fd));
#else
    (void)fd;
#endif
}

/* A terminal: lines typed, ^D at the end. */
START_TEST(contract_stdin_is_a_terminal)
{
    struct daemon daemon;
    struct client client;
    struct termios settings;
    int out[2], master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(tcgetattr(slave, &settings), 0);
    settings.c_lflag &= ~(tcflag_t)ECHO;
    ck_assert_int_eq(tcsetattr(slave, TCSANOW, &settings), 0);
    ck_assert_int_eq(pipe(out), 0);
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    fcntl(out[1], F_SETFD, FD_CLOEXEC);
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .stdin_fd = slave, .stdout_fd = out[1]);
    close(out[1]);
    client_adopt(&client, out[0], master);
    client_expect_quiet(&client);
    client_request(&client, "1", NULL, "plain", "'typed'");
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'typed'}");
    expect_flags_untouched(slave);
    client_send_bytes(&client, "\x04", 1);
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert(!nonblocking(slave));
    close(slave);
    client_close(&client);
}
END_TEST

/* The descriptors are shared with whoever started the daemon; they are as they were when it ends,
 * whichever way it ends. */
static void check_flags(bool by_signal)
{
    struct daemon daemon;
    struct client client;
    int in[2], out[2];
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    fcntl(in[1], F_SETFD, FD_CLOEXEC);
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    START(&daemon, .mode = SETUP_STDIO, .stdin_fd = in[0], .stdout_fd = out[1]);
    client_adopt(&client, out[0], in[1]);
    client_expect_quiet(&client);
    expect_flags_untouched(out[1]);
    if (by_signal)
        daemon_signal(&daemon, SIGTERM);
    else
        client_half_close(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    ck_assert(!nonblocking(in[0]));
    ck_assert(!nonblocking(out[1]));
    ck_assert(!nonblocking(STDERR_FILENO));
    close(in[0]);
    close(out[1]);
    client_close(&client);
}

START_TEST(contract_descriptor_flags_are_put_back)
{
    check_flags(false);
    check_flags(true);
}
END_TEST

/* A named pipe whose writers have gone before the daemon looks at it: what is in it counts, and
 * then its end. */
START_TEST(contract_stdin_is_a_named_pipe)
{
    static const char request[] = "{\"id\":1,\"method\":\"plain\",\"params\":\"kept\"}\n";
    struct daemon daemon;
    struct client client;
    char dir[] = "/tmp/sbt-fifo.XXXXXX", path[sizeof dir + 8];
    int out[2];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/fifo", dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(fcntl(reader, F_SETFL, 0), 0);
    ck_assert_int_eq(write(writer, request, sizeof request - 1), (ssize_t)sizeof request - 1);
    close(writer);
    ck_assert_int_eq(pipe(out), 0);
    fcntl(out[0], F_SETFD, FD_CLOEXEC);
    fcntl(out[1], F_SETFD, FD_CLOEXEC);
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .stdin_fd = reader, .stdout_fd = out[1]);
    close(out[1]);
    client_adopt(&client, out[0], out[0]);
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':'kept'}");
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    close(reader);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    client_close(&client);
}
END_TEST

/* Nobody reads stdout any more: there is nothing left to do. */
START_TEST(contract_closed_stdout_ends_the_daemon)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_STDIO, .instances = 2);
    client_stdio(&client, &daemon);
    client_expect_quiet(&client);
    close(client.in);
    client.in = -1;
    client_request(&client, "1", NULL, "echo", NULL);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
}
END_TEST

/* What cannot be written is lost, and what cannot be read was never asked: that is no success. */
START_TEST(contract_stdio_that_fails_is_told)
{
    static const char request[] = "{\"id\":1,\"method\":\"echo\"}\n";
    struct daemon daemon;
    int fd = open(_i == 0 ? "/" : "/dev/full", _i == 0 ? O_RDONLY : O_WRONLY);
    if (fd < 0)
        return; /* not every system has a device that is full */
    START(&daemon, .mode = SETUP_STDIO, .instances = 1, .stdin_fd = _i == 0 ? fd : 0,
          .stdout_fd = _i == 1 ? fd : 0);
    close(fd);
    if (_i == 1)
        ck_assert_int_gt(write(daemon.stdin_fd, request, sizeof request - 1), 0);
    ck_assert_int_eq(daemon_wait(&daemon), 71);
}
END_TEST

/* Large messages through pipes, both ways, with the end of input right behind them. */
START_TEST(contract_large_messages_before_the_end)
{
    struct daemon daemon;
    struct client client;
    struct text text = {0};
    START(&daemon, .mode = SETUP_STDIO, .instances = 2);
    client_stdio(&client, &daemon);
    for (int i = 0; i < 4; i++) {
        text_printf(&text, "{\"id\":%d,\"method\":\"plain\",\"params\":\"", i);
        text_fill(&text, (char)('a' + i), 900000);
        text_printf(&text, "\"}\n");
    }
    client_send_bytes(&client, text.data, text.len);
    client_half_close(&client);
    for (int i = 0; i < 4; i++) {
        struct span line = client_line(&client);
        long id = json_long(json_get(line, "id"), -1);
        struct span result = json_text(json_get(line, "result"));
        ck_assert_uint_eq(result.len, 900000);
        ck_assert_int_eq(result.data[899999], 'a' + id);
    }
    client_expect_eof(&client);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
    client_close(&client);
    text_free(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transport contract");
    TCase *end = harness_case(suite, "graceful shutdown");
    tcase_add_test(end, contract_end_of_stdin_completes_what_is_in_progress);
    tcase_add_test(end, contract_end_of_stdin_waits_for_slow_answers);
    tcase_add_test(end, contract_end_of_stdin_waits_for_drain_timeout_at_most);
    tcase_add_test(end, contract_end_of_stdin_at_once);
    tcase_add_test(end, contract_unterminated_last_line_of_stdin);
    tcase_add_test(end, contract_large_messages_before_the_end);
    tcase_add_test(end, contract_closed_stdout_ends_the_daemon);
    tcase_add_loop_test(end, contract_stdio_that_fails_is_told, 0, 2);
    TCase *server = harness_case(suite, "server constraints");
    tcase_add_test(server, contract_ready_without_output);
    tcase_add_test(server, contract_stdout_carries_messages_only);
    tcase_add_test(server, contract_reads_whole_lines);
    TCase *descriptors = harness_case(suite, "kinds of descriptors");
    tcase_add_loop_test(descriptors, contract_stdin_is_a_file, 0, 2);
    tcase_add_test(descriptors, contract_stdin_is_a_socket);
    tcase_add_test(descriptors, contract_stdin_is_a_terminal);
    tcase_add_test(descriptors, contract_stdin_is_a_named_pipe);
    tcase_add_test(descriptors, contract_descriptor_flags_are_put_back);
    return harness_run(suite);
}
