/* stdio_bus(1), --connect: the client side of a running daemon. */
#include "build_config.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "network.h"
#include "setup.h"

struct joined { /* a process of --connect, and a client on its stdin and stdout */
    pid_t pid;
    struct client *client;
};

static struct joined join_with(const char *address, const char *token_file)
{
    struct joined joined;
    struct command command;
    int in[2], out[2];
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    connect_command(address, token_file, &command);
    joined.pid = fork();
    ck_assert_int_ge(joined.pid, 0);
    if (joined.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        execvp(command.words[0], command.words);
        _exit(127);
    }
    command_free(&command);
    close(in[0]);
    close(out[1]);
    joined.client = client_adopt(out[0], in[1]);
    return joined;
}

static struct joined join(const char *address)
{
    return join_with(address, NULL);
}

static const char *address_of(const struct daemon *daemon)
{
    if (daemon->socket_path[0] != '\0')
        return daemon->socket_path;
    return test_format(strchr(daemon->host, ':') != NULL ? "[%s]:%u" : "%s:%u", daemon->host,
                       daemon->port);
}

static struct joined join_daemon(const struct daemon *daemon)
{
    return join(address_of(daemon));
}

static void expect_status(const struct joined *joined, int expected)
{
    int status = 0;
    pid_t reaped;
    WAIT_UNTIL((reaped = waitpid(joined->pid, &status, WNOHANG)) != 0, "--connect does not exit");
    ck_assert_int_eq(reaped, joined->pid);
    client_close(joined->client);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

static const struct setup setups[] = {
    {.mode = SETUP_UNIX},
    {.mode = SETUP_TCP},
    {.mode = SETUP_TCP, .address = "[::1]:0"},
};

TEST_ROWS(design_connect_is_a_client, COUNT(setups))
{
    if (row == 2 && !have_ipv6())
        return;
    struct daemon *daemon = daemon_start(&setups[row]);
    struct joined joined = join_daemon(daemon), other = join_daemon(daemon);
    client_ask(joined.client, "1", "s", "echo", "{'who':'joined'}");
    client_ask(other.client, "1", NULL, "echo", NULL);
    client_ask(joined.client, "2", NULL, "big", "{'size':900000}");
    client_request(joined.client, "3", "s", "notify", "{'n':2}");
    client_line(joined.client);
    client_line(joined.client);
    client_result(joined.client, "3");
    client_expect_quiet(other.client);
    /* A request before the end of input is answered after it. */
    client_request(joined.client, "4", NULL, "echo", NULL);
    client_half_close(joined.client);
    client_result(joined.client, "4");
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
    client_half_close(other.client);
    expect_status(&other, 0);
}

TEST(design_connect_reports_the_end_of_the_daemon)
{
    struct daemon *daemon = START(.instances = 1);
    struct joined joined = join_daemon(daemon);
    client_ask(joined.client, "1", NULL, "echo", NULL);
    daemon_signal(daemon, SIGTERM);
    client_expect_eof(joined.client);
    expect_status(&joined, 75);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The daemon's error arrives. */
TEST_ROWS(design_connect_with_malformed_input, 2)
{
    struct joined joined = join_daemon(daemon_start(&setups[row]));
    client_send(joined.client, "nonsense");
    client_error(joined.client, "null", -32700, "");
    client_expect_eof(joined.client);
    expect_status(&joined, 75);
}

TEST_ROWS(design_connect_refused, 3)
{
    static const char *const addresses[] = {"/nowhere/socket", "127.0.0.1:1", "nobody.invalid:1"};
    struct joined joined = join(addresses[row]);
    client_expect_eof(joined.client);
    expect_status(&joined, 69);
}

/* Waits until the process has read its input. */
static void wait_taken(const struct joined *joined)
{
    int64_t deadline = deadline_usual();
    int left = 1;
    while (left > 0) {
        ck_assert_int_eq(ioctl(joined->client->out, FIONREAD, &left), 0);
        ck_assert(!deadline_over(deadline));
    }
}

enum { EXCHANGES = 200 };

static int64_t most_ms(void)
{
    return (int64_t)(EXCHANGES * 20 * timeout_factor());
}

/* The second of two messages in one direction does not wait for an acknowledgement of the first,
 * which would take 40 ms each time. */
TEST(design_tcp_has_no_delays_to_the_daemon)
{
    struct joined joined = join_daemon(START(.mode = SETUP_TCP));
    client_ask(joined.client, "0", NULL, "echo", NULL);
    int64_t start = now_ms();
    for (int i = 1; i <= EXCHANGES; i++) {
        client_request(joined.client, NULL, NULL, "no_answer", NULL);
        wait_taken(&joined);
        client_ask(joined.client, "1", NULL, "echo", NULL);
    }
    ck_assert_int_lt(now_ms() - start, most_ms());
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

TEST(design_tcp_has_no_delays_to_the_client)
{
    struct daemon *daemon = START(.mode = SETUP_TCP);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    int64_t start = now_ms();
    for (int i = 1; i <= EXCHANGES; i++) {
        client_ask(owner, "1", "s", "echo", NULL);
        for (int n = 0; n < 2; n++) {
            client_ask(other, "1", NULL, "say", "{'message':{'method':'hello','sessionId':'s'}}");
            client_expect(owner, "{'method':'hello','sessionId':'s'}");
        }
    }
    ck_assert_int_lt(now_ms() - start, most_ms());
}

/* Also in the client side, which has no log to reopen. */
TEST(design_connect_survives_sigusr1)
{
    struct joined joined = join_daemon(START(.instances = 1));
    client_expect_quiet(joined.client);
    ck_assert_int_eq(kill(joined.pid, SIGUSR1), 0);
    client_expect_quiet(joined.client);
    client_half_close(joined.client);
    expect_status(&joined, 0);
}

static const char *token_file(const char *name, const char *token)
{
    const char *path = test_format("%s/%s", test_dir(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, token, strlen(token)), (ssize_t)strlen(token));
    close(fd);
    return path;
}

/* The client behind --connect needs to know nothing of the token. */
TEST_ROWS(design_connect_shows_the_token, 2)
{
    const char *path = token_file("token", "the \"token\"\n"), *other = token_file("other", "x");
    struct daemon *daemon = START(.mode = SETUP_TCP,
                                  .arguments = {"--token-file", path, "--framing",
                                                row == 0 ? "ndjson" : "content-length"});
    const char *address = address_of(daemon);
    struct joined joined = join_with(address, path), stranger = join_with(address, other);
    if (row == 0) {
        client_expect_quiet(joined.client);
        client_error(stranger.client, "null", -32000, "the token is wrong");
    } else {
        frames_pid(joined.client, 1);
        frames_error(stranger.client, "null", -32000, "the token is wrong");
    }
    client_half_close(joined.client);
    expect_status(&joined, 0);
    client_expect_eof(stranger.client);
    expect_status(&stranger, 75);
    joined = join_with(address, NULL);
    client_half_close(joined.client);
    client_read_before(joined.client, deadline_usual());
    ck_assert_uint_gt(joined.client->input.len, 0);
    expect_status(&joined, 0);
}

TEST(design_connect_with_a_bad_token_file)
{
    struct joined joined = join_with("127.0.0.1:1", "/no/such/file");
    client_expect_eof(joined.client);
    expect_status(&joined, 78);
    joined = join_with("/no/such/socket", "/no/such/file");
    client_expect_eof(joined.client);
    expect_status(&joined, 64);
}

int main(void)
{
    return harness_main("design_connect");
}
