/* Signals as events, by a self-pipe: the handler writes one byte, the loop reads it. */
#ifndef STDIO_BUS_EVENT_SIGNALS_H
#define STDIO_BUS_EVENT_SIGNALS_H

#include <signal.h>

#include "event/event_loop.h"

typedef void signals_fn(void *user_data, int signo);

#define SIGNALS_CAUGHT 5

/* All members are signals.c's. */
struct signals {
    struct stdio_bus_event_loop *loop;
    int fd; /* read end of the self-pipe, -1 when closed */
    signals_fn *fn;
    void *user_data;
    sigset_t old_mask;
    struct sigaction old_caught[SIGNALS_CAUGHT];
    struct sigaction old_pipe;
};

/* Catches SIGTERM, SIGINT, SIGUSR1, SIGCHLD, and SIGHUP unless it was ignored (nohup); ignores
 * SIGPIPE. Unblocks the five, in case the parent left them blocked. Each caught signal reaches fn
 * from inside run_once; arrivals of one kind between two rounds may merge. fn may call
 * signals_close (the struct itself stays until the end of the round). One per process at a time:
 * the pipe's write end is the one global. STDIO_BUS_EINVAL when there is one already;
 * STDIO_BUS_ERR with errno set, and then nothing has changed. */
int signals_open(struct signals *signals, struct stdio_bus_event_loop *loop, signals_fn *fn,
                 void *user_data);

/* Restores the former mask and dispositions and closes the pipe. Once more does nothing. */
void signals_close(struct signals *signals);

/* Blocks every signal and saves the mask; around fork, so that none is lost in the child.
 * STDIO_BUS_ERR: errno tells why, and nothing is blocked. */
int signals_block_all(sigset_t *saved);

/* Puts the saved mask back. */
void signals_restore(const sigset_t *saved);

/* In a forked child, before exec: every signal that can be changed to its default disposition, then
 * an empty mask. To be called with all signals blocked, or a handler of the parent's may still run.
 * STDIO_BUS_ERR: the mask is as it was, errno tells why. Async-signal-safe. */
int signals_reset_in_child(void);

#endif
