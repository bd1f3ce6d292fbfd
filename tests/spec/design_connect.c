/* stdio_bus(1), --connect: the client side of a running daemon. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "network.h"
#include "setup.h"

struct joined { /* a client behind a process of --connect */
    pid_t pid;
    struct client client;
};

static void join(struct joined *joined, const char *address)
{
    int in[2], out[2];
    struct command command;
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    connect_command(address, &command);
    joined->pid = fork();
    ck_assert_int_ge(joined->pid, 0);
    if (joined->pid == 0) {
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
    client_adopt(&joined->client, out[0], in[1]);
}

static void join_daemon(struct joined *joined, const struct daemon *daemon)
{
    char address[256];
    if (daemon->socket_path[0] != '\0')
        snprintf(address, sizeof address, "%s", daemon->socket_path);
    else
        snprintf(address, sizeof address,
                 strchr(daemon->host, ':') != NULL ? "[%s]:%u" : "%s:%u", daemon->host,
                 daemon->port);
    join(joined, address);
}

static void expect_status(struct joined *joined, int expected)
{
    int64_t deadline = deadline_usual();
    int status = 0;
    pid_t reaped;
    while ((reaped = waitpid(joined->pid, &status, WNOHANG)) == 0) {
        ck_assert_msg(!deadline_over(deadline), "it does not end");
        nap();
    }
    ck_assert_int_eq(reaped, joined->pid);
    client_close(&joined->client);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

static const struct setup setups[] = {
    {.mode = SETUP_UNIX},
    {.mode = SETUP_TCP},
    {.mode = SETUP_TCP, .address = "[::1]:0"},
};

START_TEST(design_connect_is_a_client)
{
    struct daemon daemon;
    struct joined joined, other;
    if (_i == 2 && !have_ipv6())
        return;
    daemon_start(&daemon, &setups[_i]);
    join_daemon(&joined, &daemon);
    join_daemon(&other, &daemon);
    client_ask(&joined.client, "1", "s", "echo", "{'who':'joined'}");
    client_ask(&other.client, "1", NULL, "echo", NULL);
    client_ask(&joined.client, "2", NULL, "big", "{'size':900000}");
    client_request(&joined.client, "3", "s", "notify", "{'n':2}");
    client_line(&joined.client);
    client_line(&joined.client);
    client_result(&joined.client, "3");
    client_expect_quiet(&other.client);
    /* What was asked before the end of the input is answered behind it. */
    client_request(&joined.client, "4", NULL, "echo", NULL);
    client_half_close(&joined.client);
    client_result(&joined.client, "4");
    client_expect_eof(&joined.client);
    expect_status(&joined, 0);
    client_half_close(&other.client);
    expect_status(&other, 0);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_connect_tells_that_the_daemon_went)
{
    struct daemon daemon;
    struct joined joined;
    START(&daemon, .instances = 1);
    join_daemon(&joined, &daemon);
    client_ask(&joined.client, "1", NULL, "echo", NULL);
    daemon_signal(&daemon, SIGTERM);
    client_expect_eof(&joined.client);
    expect_status(&joined, 75);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

/* The daemon's word about it arrives. */
START_TEST(design_connect_with_malformed_input)
{
    struct daemon daemon;
    struct joined joined;
    daemon_start(&daemon, &setups[_i]);
    join_daemon(&joined, &daemon);
    client_send(&joined.client, "nonsense");
    client_error(&joined.client, "null", -32700, "");
    client_expect_eof(&joined.client);
    expect_status(&joined, 75);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_connect_refused)
{
    static const char *const addresses[] = {"/nowhere/socket", "127.0.0.1:1", "nobody.invalid:1"};
    struct joined joined;
    join(&joined, addresses[_i]);
    client_expect_eof(&joined.client);
    expect_status(&joined, 69);
}
END_TEST

/* Until the process has taken all that we sent to it. */
static void wait_taken(const struct joined *joined)
{
    int64_t deadline = deadline_usual();
    int left = 1;
    while (left > 0) {
        ck_assert_int_eq(ioctl(joined->client.out, FIONREAD, &left), 0);
        ck_assert(!deadline_over(deadline));
    }
}

enum { EXCHANGES = 200 };

static int64_t most_ms(void)
{
    return (int64_t)(EXCHANGES * 20 * timeout_factor());
}

/* Two messages that follow each other in one direction wait for nobody's acknowledgement: that
 * alone would be 40 ms each time. */
START_TEST(design_tcp_has_no_delays_to_the_daemon)
{
    struct daemon daemon;
    struct joined joined;
    int64_t start;
    START(&daemon, .mode = SETUP_TCP);
    join_daemon(&joined, &daemon);
    client_ask(&joined.client, "0", NULL, "echo", NULL);
    start = now_ms();
    for (int i = 1; i <= EXCHANGES; i++) {
        client_request(&joined.client, NULL, NULL, "no_answer", NULL);
        wait_taken(&joined);
        client_ask(&joined.client, "1", NULL, "echo", NULL);
    }
    ck_assert_int_lt(now_ms() - start, most_ms());
    client_half_close(&joined.client);
    client_expect_eof(&joined.client);
    expect_status(&joined, 0);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_tcp_has_no_delays_to_the_client)
{
    struct daemon daemon;
    struct client owner, other;
    int64_t start;
    START(&daemon, .mode = SETUP_TCP);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    start = now_ms();
    for (int i = 1; i <= EXCHANGES; i++) {
        client_ask(&owner, "1", "s", "echo", NULL);
        for (int n = 0; n < 2; n++) {
            client_ask(&other, "1", NULL, "say",
                       "{'message':{'method':'hello','sessionId':'s'}}");
            client_expect(&owner, "{'method':'hello','sessionId':'s'}");
        }
    }
    ck_assert_int_lt(now_ms() - start, most_ms());
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("design_connect");
    TCase *tcase = harness_case(suite, "--connect");
    tcase_add_loop_test(tcase, design_connect_is_a_client, 0, 3);
    tcase_add_test(tcase, design_connect_tells_that_the_daemon_went);
    tcase_add_loop_test(tcase, design_connect_with_malformed_input, 0, 2);
    tcase_add_loop_test(tcase, design_connect_refused, 0, 3);
    tcase_add_test(tcase, design_tcp_has_no_delays_to_the_daemon);
    tcase_add_test(tcase, design_tcp_has_no_delays_to_the_client);
    return harness_run(suite);
}
