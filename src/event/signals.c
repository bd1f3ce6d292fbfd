#include "build_config.h"

#include "event/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "base/error.h"

/* NSIG is not POSIX. Numbers that do not exist are refused by sigaction, which is harmless. */
#ifdef NSIG
#define SIGNAL_END NSIG
#else
#define SIGNAL_END 129
#endif

static const int caught[SIGNALS_CAUGHT] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};

/* The write end of the self-pipe: a handler is given nothing but the signal's number. */
static volatile sig_atomic_t pipe_write_fd = -1;

/* A full pipe loses the byte; it takes thousands of signals between two rounds to get there. */
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

static void note_arrival(bool arrived[SIGNALS_CAUGHT], int signo)
{
    for (size_t i = 0; i < SIGNALS_CAUGHT; i++) {
        if (caught[i] == signo)
            arrived[i] = true;
    }
}

static void on_readable(void *user_data, unsigned events)
{
    struct signals *signals = user_data;
    bool arrived[SIGNALS_CAUGHT] = {false};
    unsigned char bytes[64];
    ssize_t count;

    (void)events;
    do {
        count = read(signals->fd, bytes, sizeof(bytes));
        for (ssize_t i = 0; i < count; i++)
            note_arrival(arrived, bytes[i]);
    } while (count == (ssize_t)sizeof(bytes) || (count < 0 && errno == EINTR));
    for (size_t i = 0; i < SIGNALS_CAUGHT && signals->fd >= 0; i++) {
        if (arrived[i])
            signals->fn(signals->user_data, caught[i]);
    }
}

/* Closes both ends; errno stays as it was. */
static void close_pipe(const int ends[2])
{
    int saved = errno;

    (void)close(ends[0]);
    (void)close(ends[1]);
    errno = saved;
}

/* A pipe with both ends non-blocking and close-on-exec. 0, or -1 with errno set. */
static int open_pipe(int ends[2])
{
#ifdef HAVE_PIPE2
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
#else
    if (pipe(ends) != 0)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[i], F_SETFL, O_NONBLOCK) != 0) {
            close_pipe(ends);
            return -1;
        }
    }
    return 0;
#endif
}

/* Puts back what catch_signals replaced. */
static void restore_signals(const struct signals *signals)
{
    (void)sigprocmask(SIG_SETMASK, &signals->old_mask, NULL);
    for (size_t i = 0; i < SIGNALS_CAUGHT; i++)
        (void)sigaction(caught[i], &signals->old_caught[i], NULL);
    (void)sigaction(SIGPIPE, &signals->old_pipe, NULL);
}

/* Saves the dispositions and the mask, then sets ours. 0, or -1 with errno set. */
static int catch_signals(struct signals *signals)
{
    struct sigaction action = {0};
    sigset_t mask;
    int error;

    (void)sigemptyset(&mask);
    (void)sigfillset(&action.sa_mask);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    for (size_t i = 0; i < SIGNALS_CAUGHT; i++) {
        (void)sigaddset(&mask, caught[i]);
        if (sigaction(caught[i], NULL, &signals->old_caught[i]) != 0)
            return -1;
    }
    if (sigaction(SIGPIPE, NULL, &signals->old_pipe) != 0 ||
        sigprocmask(SIG_SETMASK, NULL, &signals->old_mask) != 0)
        return -1;
    for (size_t i = 0; i < SIGNALS_CAUGHT; i++) {
        bool ignored = signals->old_caught[i].sa_handler == SIG_IGN;

        if ((caught[i] != SIGHUP || !ignored) && sigaction(caught[i], &action, NULL) != 0)
            goto fail;
    }
    action.sa_handler = SIG_IGN;
    if (sigaction(SIGPIPE, &action, NULL) == 0 && sigprocmask(SIG_UNBLOCK, &mask, NULL) == 0)
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
    if (open_pipe(ends) != 0)
        return STDIO_BUS_ERR;
    if (stdio_bus_event_loop_add(loop, ends[0], STDIO_BUS_EVENT_READ, on_readable, signals) !=
        STDIO_BUS_OK)
        goto fail;
    signals->loop = loop;
    signals->fd = ends[0];
    signals->fn = fn;
    signals->user_data = user_data;
    pipe_write_fd = ends[1];
    if (catch_signals(signals) == 0)
        return STDIO_BUS_OK;
    pipe_write_fd = -1;
    signals->fd = -1;
    (void)stdio_bus_event_loop_remove(loop, ends[0]);

fail:
    close_pipe(ends);
    return STDIO_BUS_ERR;
}

void signals_close(struct signals *signals)
{
    const int ends[2] = {signals->fd, (int)pipe_write_fd};

    if (signals->fd < 0)
        return;
    restore_signals(signals);
    pipe_write_fd = -1;
    (void)stdio_bus_event_loop_remove(signals->loop, signals->fd);
    close_pipe(ends);
    signals->fd = -1;
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

int signals_reset_in_child(void)
{
    struct sigaction action = {0};
    sigset_t none;

    action.sa_handler = SIG_DFL;
    (void)sigemptyset(&action.sa_mask);
    for (int signo = 1; signo < SIGNAL_END; signo++) {
        if (signo != SIGKILL && signo != SIGSTOP)
            (void)sigaction(signo, &action, NULL);
    }
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}
