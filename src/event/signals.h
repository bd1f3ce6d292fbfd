/* Signals as events, by a self-pipe: the handler writes one byte, the loop reads it. */
#ifndef STDIO_BUS_EVENT_SIGNALS_H
#define STDIO_BUS_EVENT_SIGNALS_H

#include <signal.h>
#include <sys/types.h>

#include "event/event_loop.h"

typedef void signals_fn(void *user_data, int signo);

#define SIGNALS_HANDLED 7
#define SIGNALS_NAME_MAX 24

/* All members are private to signals.c. */
struct signals {
    struct stdio_bus_event_loop *loop;
    int fd; /* read end of the self-pipe, -1 when closed */
    signals_fn *fn;
    void *user_data;
    sigset_t old_mask;
    struct sigaction old_actions[SIGNALS_HANDLED];
};

/* Catches SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD, and SIGHUP unless it was ignored (nohup);
 * unblocks them, in case the parent left them blocked; ignores SIGPIPE. run_once calls fn for each
 * caught signal; arrivals of one kind between two rounds may merge. fn may call signals_close (the
 * struct itself stays until the end of the round). Only one can be open in a process, since the
 * pipe's write end is global: STDIO_BUS_EINVAL for a second. STDIO_BUS_ERR with errno set; then
 * nothing has changed. */
int signals_open(struct signals *signals, struct stdio_bus_event_loop *loop, signals_fn *fn,
                 void *user_data);

/* Restores the former mask and dispositions and closes the pipe. A second call does nothing. */
void signals_close(struct signals *signals);

/* Blocks the signals that signals_open catches, so that they wait for the program that is executed
 * next and its signals_open. False, and they are not blocked, while signals that have come before
 * wait for run_once: the next program would not get them. */
bool signals_hold(const struct signals *signals);

/* Unblocks them again. */
void signals_let_go(void);

/* "SIGTERM", or "signal 35" for a signal that POSIX does not name. Returns `to`. */
const char *signals_name(char *to, size_t size, int signo);

/* Blocks every signal and saves the mask: around fork, so that the child loses none. STDIO_BUS_ERR
 * with errno set; then nothing is blocked. */
int signals_block_all(sigset_t *saved);

/* Puts the saved mask back. */
void signals_restore(const sigset_t *saved);

/* fork, without a handler of the parent's running in the child: a signal caught there would be
 * written to the parent's self-pipe, and be lost to the child. In the child all signals stay
 * blocked until signals_reset_in_child or signals_forget; the parent has its mask back. -1 with
 * errno set: there is no child. */
pid_t signals_fork(void);

/* In a forked child that continues without exec: as if signals_open had not been called, with
 * default dispositions and an empty mask. To be called with all signals blocked. Errors as
 * below. */
int signals_forget(void);

/* In a forked child, before exec: sets the default disposition of every signal, then an empty mask.
 * To be called with all signals blocked, or a handler of the parent's may still run. STDIO_BUS_ERR
 * with errno set; then the mask is as it was. Async-signal-safe. */
int signals_reset_in_child(void);

#endif
