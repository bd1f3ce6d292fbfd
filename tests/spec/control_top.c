/* stdio_bus ctl top on a terminal. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "control.h"
#include "harness.h"

#define OTHER_PAGE "\033[?1049h"
#define FIRST_PAGE "\033[?1049l"
#define FRAME_END "\033[J"
#define LINES 24
#define COLUMNS 80

/* The program at one end of a pseudo-terminal, and its side of it, which the test keeps open. */
struct top {
    pid_t pid;
    int fd, terminal;
    struct termios before;
    struct text shown;
};

static struct top *top_start(const struct daemon *daemon, const char *term, const char *order)
{
    struct top *top = calloc(1, sizeof *top);
    struct winsize size = {.ws_row = LINES, .ws_col = COLUMNS};
    const char *program = getenv("STDIO_BUS");
    char *argv[] = {(char *)(uintptr_t)(program != NULL ? program : "./stdio_bus"),
                    (char *)(uintptr_t) "ctl",
                    (char *)(uintptr_t)control_path(daemon),
                    (char *)(uintptr_t) "top",
                    (char *)(uintptr_t)order,
                    NULL};

    ck_assert_ptr_nonnull(top);
    top->fd = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(top->fd, 0);
    ck_assert_int_eq(grantpt(top->fd), 0);
    ck_assert_int_eq(unlockpt(top->fd), 0);
    top->terminal = open(ptsname(top->fd), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(top->terminal, 0);
    ck_assert_int_eq(ioctl(top->terminal, TIOCSWINSZ, &size), 0);
    ck_assert_int_eq(tcgetattr(top->terminal, &top->before), 0);
    top->pid = fork();
    ck_assert_int_ge(top->pid, 0);
    if (top->pid == 0) {
        setpgid(0, 0);           /* not orphaned: it can be stopped */
        signal(SIGINT, SIG_DFL); /* a shell in the background has these ignored */
        signal(SIGQUIT, SIG_DFL);
        setenv("TERM", term, 1);
        for (int fd = 0; fd <= 2; fd++)
            dup2(top->terminal, fd);
        close(top->fd);
        execv(argv[0], argv);
        _exit(127);
    }
    ck_assert_int_eq(fcntl(top->fd, F_SETFL, O_NONBLOCK), 0);
    return top;
}

/* Takes what the program has written. */
static void top_read(struct top *top)
{
    char bytes[4096];
    ssize_t count;

    while ((count = read(top->fd, bytes, sizeof bytes)) > 0)
        text_add(&top->shown, bytes, (size_t)count);
}

static bool top_shows(struct top *top, const char *word)
{
    top_read(top);
    return top->shown.data != NULL && strstr(top->shown.data, word) != NULL;
}

static void top_wait(struct top *top, const char *word)
{
    WAIT_UNTIL(top_shows(top, word), "\"%s\" is not in: %.2000s", word, top->shown.data);
}

static void top_key(struct top *top, const char *key)
{
    ck_assert_int_eq(write(top->fd, key, strlen(key)), (ssize_t)strlen(key));
}

/* The terminal is as it was: its page, its cursor and its modes. */
static void expect_restored(struct top *top)
{
    struct termios now;

    top_wait(top, "\033[?25h" FIRST_PAGE);
    ck_assert_int_eq(tcgetattr(top->terminal, &now), 0);
    ck_assert_uint_eq(now.c_lflag, top->before.c_lflag);
    ck_assert_uint_eq(now.c_iflag, top->before.c_iflag);
    ck_assert_mem_eq(now.c_cc, top->before.c_cc, sizeof now.c_cc);
}

/* Its status, as waitpid has it. */
static int top_end(struct top *top)
{
    int status = 0;
    pid_t ended = 0;

    WAIT_UNTIL((ended = waitpid(top->pid, &status, WNOHANG)) != 0, "top does not end");
    ck_assert_int_eq(ended, top->pid);
    top_read(top);
    close(top->fd);
    close(top->terminal);
    text_free(&top->shown);
    free(top);
    return status;
}

static struct daemon *start(unsigned workers)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = workers);

    control_wait(control_connect(daemon), "status", "phase", "'serving'");
    return daemon;
}

TEST(control_top_ends_with_q)
{
    struct top *top = top_start(start(1), "xterm", NULL);
    struct termios raw;

    top_wait(top, OTHER_PAGE);
    top_wait(top, "runs for");
    top_wait(top, "by messages;");
    top_wait(top, FRAME_END);
    ck_assert_int_eq(tcgetattr(top->terminal, &raw), 0);
    ck_assert_uint_eq(raw.c_lflag & (tcflag_t)(ICANON | ECHO), 0);
    top_key(top, "\033[A"); /* an arrow is no key */
    text_free(&top->shown);
    top_wait(top, FRAME_END);
    top_key(top, "bu"); /* typed fast, the last counts */
    top_wait(top, "by queue;");
    top_key(top, "b");
    top_wait(top, "by bytes;");
    top_key(top, "r");
    top_wait(top, "by requests;");
    top_key(top, "q");
    expect_restored(top);
    ck_assert_int_eq(top_end(top), 0);
}

/* A signal ends it as it ends any program, but for the terminal. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

TEST_ROWS(control_top_restores_the_terminal_at_a_signal, COUNT(signals))
{
    struct top *top = top_start(start(1), "xterm", NULL);
    int status;

    top_wait(top, FRAME_END);
    kill(top->pid, signals[row]);
    expect_restored(top);
    status = top_end(top);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signals[row]);
}

TEST(control_top_restores_the_terminal_while_it_is_stopped)
{
    struct top *top = top_start(start(1), "xterm", NULL);
    int status = 0;

    for (int i = 0; i < 2; i++) {
        top_wait(top, OTHER_PAGE);
        top_wait(top, FRAME_END);
        kill(top->pid, SIGTSTP);
        ck_assert_int_eq(waitpid(top->pid, &status, WUNTRACED), top->pid);
        ck_assert(WIFSTOPPED(status));
        expect_restored(top);
        text_free(&top->shown);
        kill(top->pid, SIGCONT);
    }
    top_wait(top, OTHER_PAGE);
    top_wait(top, FRAME_END);
    top_key(top, "q");
    expect_restored(top);
    ck_assert_int_eq(top_end(top), 0);
}

TEST(control_top_restores_the_terminal_when_the_daemon_ends)
{
    struct daemon *daemon = start(1);
    struct top *top = top_start(daemon, "xterm", NULL);
    int status;

    top_wait(top, FRAME_END);
    daemon_signal(daemon, SIGTERM);
    expect_restored(top);
    top_wait(top, "stdio_bus: ctl: ");
    status = top_end(top);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 69);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* Where a terminal obeys nothing there is one look, as in a pipe. */
TEST(control_top_of_a_dumb_terminal_is_plain)
{
    struct top *top = top_start(start(1), "dumb", NULL);

    top_wait(top, "running");
    ck_assert_ptr_null(strchr(top->shown.data, '\033'));
    ck_assert_int_eq(top_end(top), 0);
}

TEST_ROWS(control_top_obeys_no_color, 2)
{
    struct daemon *daemon = start(1);
    struct top *top;

    control_ask(control_connect(daemon), "drain", "{'worker':1}");
    if (row == 1)
        setenv("NO_COLOR", "1", 1);
    top = top_start(daemon, "xterm", NULL);
    top_wait(top, "running, drained");
    top_wait(top, FRAME_END);
    ck_assert(top_shows(top, "\033[1m") == (row == 0));
    ck_assert(top_shows(top, "\033[2m    ") == (row == 0)); /* the row of the worker */
    top_key(top, "q");
    ck_assert_int_eq(top_end(top), 0);
}

/* Each line of the last whole frame, without its sequences: at most 80 columns, and no more lines
 * than the terminal has. */
static void expect_to_fit(struct top *top)
{
    const char *at = strstr(top->shown.data, "\033[H");
    size_t lines = 1, columns = 0;

    ck_assert_ptr_nonnull(at);
    for (; strncmp(at, FRAME_END, strlen(FRAME_END)) != 0; at++) {
        if (*at == '\033') {
            at += strcspn(at, "HKm");
            ck_assert_int_ne(*at, '\0');
        } else if (*at == '\n') {
            lines++;
            columns = 0;
        } else if (*at != '\r') {
            columns++;
        }
        ck_assert_msg(columns <= COLUMNS, "too wide: %.2000s", top->shown.data);
    }
    ck_assert_msg(lines <= LINES, "%zu lines: %.2000s", lines, top->shown.data);
}

#define MANY 14

TEST(control_top_fits_the_terminal)
{
    struct daemon *daemon = start(MANY);
    struct top *top;

    for (int i = 0; i < MANY; i++)
        client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
    top = top_start(daemon, "xterm", NULL);
    top_wait(top, FRAME_END);
    expect_to_fit(top);
    ck_assert(top_shows(top, "... 14 in all"));
    top_key(top, "q");
    ck_assert_int_eq(top_end(top), 0);
}

/* Two clients, one with more messages and one with more bytes: who is first? */
static const struct {
    const char *order;
    unsigned first;
} orders[] = {{"messages", 1}, {"bytes", 2}, {NULL, 1}};

TEST_ROWS(control_top_sorts_by_the_order_that_is_asked_for, COUNT(orders))
{
    struct daemon *daemon = start(1);
    struct client *many = client_connect(daemon), *large;
    const char *heading, *first, *second;
    struct top *top;

    client_ask(many, "1", NULL, "echo", NULL);
    large = client_connect(daemon);
    client_ask(large, "1", NULL, "echo", NULL);
    top = top_start(daemon, "xterm", orders[row].order);
    top_wait(top, FRAME_END);
    text_free(&top->shown);
    for (int i = 0; i < 20; i++)
        client_ask(many, test_format("%d", i + 2), NULL, "echo", NULL);
    client_ask(large, "2", NULL, "echo", test_format("{'x':'%s'}", test_fill('x', 50000)));
    WAIT_UNTIL(top_shows(top, " KiB  "), "no rate of bytes: %.2000s", top->shown.data);
    top_wait(top, FRAME_END);
    heading = strstr(top->shown.data, "CLIENT");
    first = strstr(heading, "\n     1  ");
    second = strstr(heading, "\n     2  ");
    ck_assert(first != NULL && second != NULL);
    ck_assert_msg((first < second) == (orders[row].first == 1), "%.2000s", top->shown.data);
    top_key(top, "q");
    ck_assert_int_eq(top_end(top), 0);
}

TEST(control_top_refuses_an_unknown_order)
{
    struct daemon *daemon = start(1);
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "top", "age"), 64,
                     "not messages, bytes, requests or queue");
}
