/* The transport contract: the daemon as a server on stdin and stdout. */
#include "build_config.h"

#include <termios.h>

#include "harness.h"

/* The bytes of client_send_plain. */
static struct text *plain_requests(int count)
{
    struct text *text = test_text();
    for (int i = 0; i < count; i++)
        text_printf(text, "{'id':%d,'sessionId':'s','method':'plain','params':%d}\n", i, i);
    text_quote(text, 0);
    return text;
}

/* Requests in one write, and the pipe is closed at once: the answers come, then the end. */
TEST(contract_end_of_stdin_completes_requests_in_progress)
{
    struct text *text = plain_requests(500);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 3);
    struct client *client = client_stdio(daemon);
    client_send_bytes(client, text->data, text->len);
    client_half_close(client);
    client_expect_plain(client, "s", 500);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The worker answers only some time after the end of input. */
TEST(contract_end_of_stdin_waits_for_slow_answers)
{
    struct span line;
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2);
    struct client *client = client_stdio(daemon);
    pid_t worker = (pid_t)client_pid(client, "1", "s");
    client_ask(client, "2", "s", "stop_reading", NULL);
    client_request(client, "3", "s", "plain", "'late'");
    client_half_close(client);
    ck_assert(!client_line_before(client, now_ms() + 200, &line));
    ck_assert(!client->eof);
    kill(worker, SIGUSR1);
    client_expect(client, "{'jsonrpc':'2.0','id':3,'sessionId':'s','result':'late'}");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* Nobody reads the answers any more: no request is waited for. */
TEST(contract_end_of_both_pipes_ends_at_once)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1,
                                  .limits = "'drain_timeout_sec':600");
    struct client *client = client_stdio(daemon);
    client_request(client, "1", "s", "no_answer", NULL);
    client_ask(client, "2", "s", "echo", NULL); /* both have arrived */
    client_abort(client);
    daemon_wait(daemon);
}

/* An answer that never comes delays the exit by drain_timeout_sec. */
TEST(contract_end_of_stdin_waits_for_drain_timeout_at_most)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1,
                                  .limits = "'drain_timeout_sec':1");
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    client_request(client, "1", NULL, "no_answer", NULL);
    client_half_close(client);
    struct span line;
    if (client_line_before(client, deadline_usual(), &line))
        ck_assert(span_is(json_get(line, "id"), "1") && json_get(line, "error").data != NULL);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(contract_end_of_stdin_at_once)
{
    RUN(0, .mode = SETUP_STDIO, .instances = 2); /* stdin is /dev/null */
}

TEST(contract_unterminated_last_line_of_stdin)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO);
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    client_send_bytes(client, "{\"id\":1}", 8);
    client_half_close(client);
    client_expect_eof(client);
    daemon_wait_log(daemon, " WARN .*in the middle of a message");
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(contract_ready_without_output)
{
    struct span line;
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2,
                                  .arguments = {"--log-level", "debug"});
    struct client *client = client_stdio(daemon);
    daemon_wait_log(daemon, "running");
    ck_assert(!client_line_before(client, 0, &line));
    client_expect_quiet(client);
    client_finish(client, daemon);
}

/* In spite of warnings, errors and a crash, every line on stdout is a JSON object. */
TEST(contract_stdout_carries_messages_only)
{
    struct span line;
    int lines = 0;
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2, .members = "'colour':1",
                                  .arguments = {"--log-level", "debug"});
    struct client *client = client_stdio(daemon);
    client_request(client, "1", "s", "answer_twice", NULL);
    client_request(client, "2", "t", "die", NULL);
    client_request(client, "3", "s", "write_stderr", "{'text':'words'}");
    client_request(client, "4", "s", "notify", "{'n':3}");
    client_request(client, "5", "t", "plain", "{'a':1}");
    client_request(client, "6", NULL, "plain", "{'a':1}");
    client_half_close(client);
    for (; client_line_before(client, deadline_usual(), &line); lines++) {
        ck_assert(line.data[0] == '{' && line.data[line.len - 1] == '}');
        expect_member(line, "jsonrpc", "'2.0'");
    }
    ck_assert(client->eof);
    ck_assert_int_eq(lines, 9);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(contract_reads_whole_lines)
{
    struct text *text = plain_requests(20);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1);
    struct client *client = client_stdio(daemon);
    client_send_chunks(client, text->data, text->len, 1);
    client_expect_plain(client, "s", 20);
    client_finish(client, daemon);
}

/* stdio_bus --config c.json < requests.ndjson > answers.ndjson; also with a file whose size is more
 * than a long of 32 bits holds (a hole precedes the requests). */
TEST_ROWS(contract_stdin_is_a_file, 2)
{
    const off_t start = row == 0 ? 0 : (off_t)3 << 30;
    struct text *text = plain_requests(3000), *out = test_text();
    int fd = open(test_format("%s/requests", test_dir()), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(lseek(fd, start, SEEK_SET) == start);
    ck_assert_int_eq(write(fd, text->data, text->len), (ssize_t)text->len);
    ck_assert(lseek(fd, start, SEEK_SET) == start);
    daemon_run(&(struct setup){.mode = SETUP_STDIO, .instances = 2, .stdin_fd = fd}, 0, out);
    struct client answers = {.in = -1, .out = -1, .input = *out};
    client_expect_plain(&answers, "s", 3000);
    ck_assert_uint_eq(answers.consumed, out->len);
    close(fd);
}

/* stdin and stdout are one socket, as of a program that starts the daemon with a socket pair. */
TEST(contract_stdin_is_a_socket)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1, .stdin_fd = pair[1],
                                  .stdout_fd = pair[1]);
    close(pair[1]);
    struct client *client = client_adopt(pair[0], pair[0]);
    client_expect_quiet(client);
    client_request(client, "1", NULL, "plain", "1");
    client_half_close(client);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':1}");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

static bool nonblocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

/* Processes that share an open file share its flags; a terminal's are those of stderr too. */
static void expect_flags_untouched(int fd)
{
#ifdef __linux__ /* elsewhere /dev/fd may open the same file description */
    ck_assert(!nonblocking(fd));
#else
    (void)fd;
#endif
}

/* Lines are typed at a terminal, and ^D at the end. */
TEST(contract_stdin_is_a_terminal)
{
    struct termios settings;
    int out[2], master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) { /* a chroot or build without /dev/pts */
        fprintf(stderr, "skipped: there are no pseudo-terminals: %s\n", strerror(errno));
        return;
    }
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(tcgetattr(slave, &settings), 0);
    settings.c_lflag &= ~(tcflag_t)ECHO;
    ck_assert_int_eq(tcsetattr(slave, TCSANOW, &settings), 0);
    ck_assert_int_eq(pipe(out), 0);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1, .stdin_fd = slave,
                                  .stdout_fd = out[1]);
    close(out[1]);
    struct client *client = client_adopt(out[0], master);
    client_expect_quiet(client);
    client_request(client, "1", NULL, "plain", "'typed'");
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':'typed'}");
    expect_flags_untouched(slave);
    client_send_bytes(client, "\x04", 1);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert(!nonblocking(slave));
    close(slave);
}

/* The daemon shares the descriptors with the process that started it: their flags are as before
 * after its exit, by the end of input (row 0) or by a signal. */
TEST_ROWS(contract_descriptor_flags_are_put_back, 2)
{
    int in[2], out[2];
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .stdin_fd = in[0], .stdout_fd = out[1]);
    struct client *client = client_adopt(out[0], in[1]);
    client_expect_quiet(client);
    expect_flags_untouched(out[1]);
    if (row == 1)
        daemon_signal(daemon, SIGTERM);
    else
        client_half_close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert(!nonblocking(in[0]));
    ck_assert(!nonblocking(out[1]));
    ck_assert(!nonblocking(STDERR_FILENO));
    close(in[0]);
    close(out[1]);
}

/* A named pipe whose writer is gone before the daemon starts: its contents are read, and then its
 * end. */
TEST(contract_stdin_is_a_named_pipe)
{
    static const char request[] = "{\"id\":1,\"method\":\"plain\",\"params\":\"kept\"}\n";
    const char *path = test_format("%s/fifo", test_dir());
    int out[2];
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(fcntl(reader, F_SETFL, 0), 0);
    ck_assert_int_eq(write(writer, request, sizeof request - 1), (ssize_t)sizeof request - 1);
    close(writer);
    ck_assert_int_eq(pipe(out), 0);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1, .stdin_fd = reader,
                                  .stdout_fd = out[1]);
    close(out[1]);
    struct client *client = client_adopt(out[0], out[0]);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':'kept'}");
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    close(reader);
}

/* No client is left that could read an answer. */
TEST(contract_closed_stdout_ends_the_daemon)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2);
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    close(client->in);
    client->in = -1;
    client_request(client, "1", NULL, "echo", NULL);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* A failing read (row 0) or write is no success. */
TEST_ROWS(contract_stdio_failure_is_reported, 2)
{
    static const char request[] = "{\"id\":1,\"method\":\"echo\"}\n";
    int fd = open(row == 0 ? "/" : "/dev/full", row == 0 ? O_RDONLY : O_WRONLY);
    if (fd < 0)
        return; /* not every system has a device that is full */
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 1,
                                  .stdin_fd = row == 0 ? fd : 0, .stdout_fd = row == 1 ? fd : 0);
    close(fd);
    if (row == 1)
        ck_assert_int_gt(write(daemon->stdin_fd, request, sizeof request - 1), 0);
    ck_assert_int_eq(daemon_wait(daemon), 71);
}

/* Large messages in both directions, and the end of input right after them. */
TEST(contract_large_messages_before_the_end)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .instances = 2);
    struct client *client = client_stdio(daemon);
    for (int i = 0; i < 4; i++)
        client_send(client, "{'id':%d,'method':'plain','params':'%s'}", i,
                    test_fill((char)('a' + i), 900000));
    client_half_close(client);
    for (int i = 0; i < 4; i++) {
        struct span line = client_line(client);
        long id = json_number(line, "id");
        struct span result = json_text(json_get(line, "result"));
        ck_assert_uint_eq(result.len, 900000);
        ck_assert_int_eq(result.data[899999], 'a' + id);
    }
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
