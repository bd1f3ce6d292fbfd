#include "build_config.h"

#include "cli/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"

/* Control sequences (ECMA-48, and those of xterm for the other page and the cursor). */
#define OTHER_PAGE "\033[?1049h\033[?25l"
#define FIRST_PAGE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_TO_END_OF_LINE "\033[K"
#define CLEAR_BELOW "\033[J"
#define ESCAPE '\033'
#define ANY_BUT_A_KEY 2 /* what screen_read returns for more than one byte */

static const char *const styles[] = {
    [SCREEN_PLAIN] = "",           [SCREEN_HEAD] = "\033[1m",   [SCREEN_DIM] = "\033[2m",
    [SCREEN_WARNING] = "\033[33m", [SCREEN_ERROR] = "\033[31m",
};

/* What the signal handlers need. */
static struct {
    struct termios before; /* of stdin */
    bool has_keys;         /* stdin is a terminal */
    bool has_colours;
    volatile sig_atomic_t changed; /* the size, or the whole screen */
} screen;

/* --- the terminal; both are called by signal handlers --- */

static void screen_write(const char *sequence)
{
    ssize_t written = write(STDOUT_FILENO, sequence, strlen(sequence));

    (void)written; /* a terminal that is gone needs nothing */
}

static void screen_enter(void)
{
    struct termios raw = screen.before;

    if (screen.has_keys) {
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    screen_write(OTHER_PAGE);
}

static void screen_restore(void)
{
    if (screen.has_keys) /* and nobody waits for a terminal that takes no output */
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
    screen_write(FIRST_PAGE);
}

/* --- signals --- */

static void handle(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    struct sigaction before;

    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        (void)sigaction(signal_number, &action, NULL);
}

/* And then the signal does what it does by default. */
static void leave_by_signal(int signal_number)
{
    int error = errno;

    screen_restore();
    handle(signal_number, SIG_DFL);
    (void)kill(getpid(), signal_number); /* blocked until this returns */
    errno = error;
}

static void continue_after_stop(int signal_number)
{
    int error = errno;

    (void)signal_number;
    handle(SIGTSTP, leave_by_signal);
    screen_enter();
    screen.changed = 1;
    errno = error;
}

static void note_change(int signal_number)
{
    (void)signal_number;
    screen.changed = 1;
}

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

bool screen_open(void)
{
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    size_t i;

    if (isatty(STDOUT_FILENO) == 0 || terminal == NULL || *terminal == '\0' ||
        strcmp(terminal, "dumb") == 0)
        return false;
    screen.has_keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
    screen.has_colours = no_color == NULL || *no_color == '\0';
    for (i = 0; i < sizeof ends / sizeof ends[0]; i++)
        handle(ends[i], leave_by_signal);
    handle(SIGCONT, continue_after_stop);
    handle(SIGWINCH, note_change);
    screen_enter();
    return true;
}

void screen_close(void)
{
    size_t i;

    screen_restore();
    for (i = 0; i < sizeof ends / sizeof ends[0]; i++)
        handle(ends[i], SIG_DFL);
    handle(SIGCONT, SIG_DFL);
    handle(SIGWINCH, SIG_DFL);
}

/* --- keys --- */

/* What stdin has: a key, ANY_BUT_A_KEY or SCREEN_END. */
static int screen_read(void)
{
    char bytes[16];
    ssize_t count;

    do
        count = read(STDIN_FILENO, bytes, sizeof bytes);
    while (count < 0 && errno == EINTR);
    if (count == 0 || (count < 0 && errno != EAGAIN))
        return SCREEN_END;
    if (count <= 0 || bytes[0] == ESCAPE || bytes[count - 1] <= ANY_BUT_A_KEY)
        return ANY_BUT_A_KEY;
    return bytes[count - 1]; /* of keys that were typed fast */
}

int screen_key(int timeout_ms)
{
    struct pollfd stdin_poll = {.fd = screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    int64_t until = clock_now_ms() + timeout_ms, left;
    int ready, key;

    do {
        if (screen.changed) {
            screen.changed = 0;
            return SCREEN_REDRAW;
        }
        left = until - clock_now_ms();
        ready = descriptor_poll(&stdin_poll, 1, left > 0 ? (int)left : 0);
        key = ready > 0 ? screen_read() : ANY_BUT_A_KEY;
        if (key != ANY_BUT_A_KEY)
            return key;
    } while (left > 0);
    return SCREEN_NOTHING;
}

/* --- what is shown --- */

static bool show_sequence(const char *sequence)
{
    return terminal_sequence(stdout, sequence) == STDIO_BUS_OK;
}

static bool show_line(struct slice line, unsigned char style)
{
    bool is_styled = screen.has_colours && style != SCREEN_PLAIN;

    return (!is_styled || show_sequence(styles[style])) &&
           terminal_lines(stdout, TERMINAL_TEXT, line) == STDIO_BUS_OK &&
           (!is_styled || show_sequence("\033[m")) && show_sequence(CLEAR_TO_END_OF_LINE);
}

int screen_show(const struct screen_text *text)
{
    struct slice rest = json_text_slice(&text->text);
    bool good = show_sequence(HOME);
    size_t i;

    for (i = 0; good && rest.len > 0; i++) {
        const char *newline = memchr(rest.data, '\n', rest.len);
        size_t len = newline != NULL ? (size_t)(newline - rest.data) : rest.len;

        /* No newline after the last line, which would move the others up. */
        good = (i == 0 || show_sequence("\r\n")) &&
               show_line(slice_of(rest.data, len),
                         i < text->count ? text->styles[i] : SCREEN_PLAIN);
        len += newline != NULL;
        rest = slice_of(rest.data + len, rest.len - len);
    }
    good = good && show_sequence(CLEAR_BELOW) && fflush(stdout) != EOF;
    return good ? STDIO_BUS_OK : STDIO_BUS_ERR;
}
