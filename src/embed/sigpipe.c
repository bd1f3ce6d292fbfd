#include "build_config.h"

#include "embed/sigpipe.h"

#include <stddef.h>

static bool is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

static void only(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGPIPE);
}

void sigpipe_block(struct sigpipe *sigpipe)
{
    struct sigaction action;
    sigset_t set;

    sigpipe->blocked = false;
    if ((sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN) || is_pending())
        return;
    only(&set);
    /* As a call for a program with threads: each system gives the thread's mask. */
    sigpipe->blocked = sigprocmask(SIG_BLOCK, &set, &sigpipe->mask) == 0;
}

void sigpipe_restore(const struct sigpipe *sigpipe)
{
    sigset_t set;
    int signo;

    if (!sigpipe->blocked)
        return;
    only(&set);
    if (is_pending())
        (void)sigwait(&set, &signo);
    (void)sigprocmask(SIG_SETMASK, &sigpipe->mask, NULL);
}
