#include "build_config.h"

#include "event/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

/* SIGPIPE is ignored, the others are caught. */
static const int handled[SIGNALS_HANDLED] = {SIGTERM, SIGINT,  SIGHUP, SIGUSR1,
                                             SIGUSR2, SIGCHLD, SIGPIPE};

/* The write end of the self-pipe. Global, because a handler gets the signal's number alone. */
static volatile sig_atomic_t pipe_write_fd = -1;

/* A full pipe loses the byte. That takes thousands of signals between two rounds. */
static void on_signal(int signo)
{
    int saved = errno;
    unsigned char byte = (unsigned char)signo;

    if (pipe_write_fd >= 0) {
        ssize_t written = write((int)pipe_write_fd, &byte, 1);
        (void)written;
    }
    errno = saved;
}

static void on_readable(void *user_data, unsigned events)
{
    struct signals *signals = user_data;
    sigset_t arrived;
    unsigned char bytes[64];
    ssize_t count;

    (void)events;
    (void)sigemptyset(&arrived);
    do {
        count = read(signals->fd, bytes, sizeof bytes);
        for (ssize_t i = 0; i < count; i++)
            (void)sigaddset(&arrived, bytes[i]);
    } while (count == (ssize_t)sizeof bytes || (count < 0 && errno == EINTR));
    for (size_t i = 0; i < SIGNALS_HANDLED && signals->fd >= 0; i++) {
        if (sigismember(&arrived, handled[i]) == 1)
            signals->fn(signals->user_data, handled[i]);
    }
}

/* Puts back what catch_signals replaced. */
static void restore_signals(const struct signals *signals)
{
    (void)sigprocmask(SIG_SETMASK, &signals->old_mask, NULL);
    for (size_t i = 0; i < SIGNALS_HANDLED; i++)
        (void)sigaction(handled[i], &signals->old_actions[i], NULL);
}

/* Saves the dispositions and the mask, then sets ours. 0, or -1 with errno set. */
static int catch_signals(struct signals *signals)
{
    struct sigaction action = {.sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigset_t mask;
    int error;

    (void)sigemptyset(&mask);
    (void)sigfillset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS_HANDLED; i++) {
        (void)sigaddset(&mask, handled[i]);
        if (sigaction(handled[i], NULL, &signals->old_actions[i]) != 0)
            return -1;
    }
    if (sigprocmask(SIG_SETMASK, NULL, &signals->old_mask) != 0)
        return -1;
    for (size_t i = 0; i < SIGNALS_HANDLED; i++) {
        if (handled[i] == SIGHUP && signals->old_actions[i].sa_handler == SIG_IGN)
            continue;
        action.sa_handler = handled[i] == SIGPIPE ? SIG_IGN : on_signal;
        if (sigaction(handled[i], &action, NULL) != 0)
            goto fail;
    }
    if (sigprocmask(SIG_UNBLOCK, &mask, NULL) == 0)
        return 0;

fail:
    error = errno;
    restore_signals(signals);
    errno = error;
    return -1;
}

int signals_open(struct signals *signals, struct stdio_bus_event_loop *loop, signals_fn *fn,
                 void *user_data)
{
    int ends[2];

    if (pipe_write_fd >= 0)
        return STDIO_BUS_EINVAL;
    if (descriptor_open_pipe(ends, O_NONBLOCK) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    *signals = (struct signals){.loop = loop, .fd = ends[0], .fn = fn, .user_data = user_data};
    if (stdio_bus_event_loop_add(loop, ends[0], STDIO_BUS_EVENT_READ, on_readable, signals) ==
        STDIO_BUS_OK) {
        pipe_write_fd = ends[1];
        if (catch_signals(signals) == 0)
            return STDIO_BUS_OK;
        pipe_write_fd = -1;
        (void)stdio_bus_event_loop_remove(loop, ends[0]);
    }
    signals->fd = -1;
    descriptor_close_pipe(ends);
    return STDIO_BUS_ERR;
}

void signals_close(struct signals *signals)
{
    int ends[2] = {signals->fd, (int)pipe_write_fd};

    if (signals->fd < 0)
        return;
    restore_signals(signals);
    pipe_write_fd = -1;
    (void)stdio_bus_event_loop_remove(signals->loop, signals->fd);
    descriptor_close_pipe(ends);
    signals->fd = -1;
}

static void change_mask(int how)
{
    sigset_t mask;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < SIGNALS_HANDLED; i++)
        (void)sigaddset(&mask, handled[i]);
    (void)sigprocmask(how, &mask, NULL);
}

bool signals_hold(const struct signals *signals)
{
    struct pollfd arrived = {.fd = signals->fd, .events = POLLIN};

    change_mask(SIG_BLOCK);
    if (poll(&arrived, 1, 0) == 0)
        return true;
    signals_let_go();
    return false;
}

void signals_let_go(void)
{
    change_mask(SIG_UNBLOCK);
}

const char *signals_name(char *to, size_t size, int signo)
{
    /* clang-format off */
#define NAME(signo) {signo, #signo}
    static const struct {
        int signo;
        const char *name;
    } names[] = {
        NAME(SIGABRT), NAME(SIGALRM), NAME(SIGBUS), NAME(SIGCHLD), NAME(SIGCONT), NAME(SIGFPE),
        NAME(SIGHUP), NAME(SIGILL), NAME(SIGINT), NAME(SIGKILL), NAME(SIGPIPE), NAME(SIGQUIT),
        NAME(SIGSEGV), NAME(SIGSTOP), NAME(SIGSYS), NAME(SIGTERM), NAME(SIGTRAP), NAME(SIGTSTP),
        NAME(SIGTTIN), NAME(SIGTTOU), NAME(SIGURG), NAME(SIGUSR1), NAME(SIGUSR2), NAME(SIGVTALRM),
        NAME(SIGXCPU), NAME(SIGXFSZ),
    };
#undef NAME
    /* clang-format on */

    (void)snprintf(to, size, "signal %d", signo);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].signo == signo)
            (void)snprintf(to, size, "%s", names[i].name);
    }
    return to;
}

int signals_block_all(sigset_t *saved)
{
    sigset_t all;

    (void)sigfillset(&all);
    return sigprocmask(SIG_SETMASK, &all, saved) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

void signals_restore(const sigset_t *saved)
{
    (void)sigprocmask(SIG_SETMASK, saved, NULL);
}

pid_t signals_fork(void)
{
    sigset_t saved;
    pid_t pid;
    int error;

    if (signals_block_all(&saved) != STDIO_BUS_OK)
        return -1;
    pid = fork();
    if (pid == 0)
        return 0;
    error = errno;
    signals_restore(&saved);
    errno = error;
    return pid;
}

int signals_reset_in_child(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)sigemptyset(&action.sa_mask);
    for (int signo = 1; signo < NSIG; signo++) {
        if (signo != SIGKILL && signo != SIGSTOP)
            (void)sigaction(signo, &action, NULL);
    }
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int signals_forget(void)
{
    if (pipe_write_fd >= 0)
        descriptor_close((int)pipe_write_fd);
    pipe_write_fd = -1;
    return signals_reset_in_child();
}
