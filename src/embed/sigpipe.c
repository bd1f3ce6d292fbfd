#include "build_config.h"

#include "embed/sigpipe.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static bool is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

/* In two system calls beside the write, as long as the pipe has a reader. */
ssize_t sigpipe_writev(int fd, const struct iovec *pieces, int count)
{
    bool is_blocked, was_blocked, was_pending;
    sigset_t set, before;
    ssize_t written;
    int error, signo;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    /* As a call for a program with threads: each system gives the thread's mask. */
    is_blocked = sigprocmask(SIG_BLOCK, &set, &before) == 0;
    was_blocked = is_blocked && sigismember(&before, SIGPIPE) == 1;
    was_pending = was_blocked && is_pending();
    written = count == 1 ? write(fd, pieces[0].iov_base, pieces[0].iov_len)
                         : writev(fd, pieces, count);
    error = errno;
    if (written < 0 && error == EPIPE && is_blocked && !was_pending && is_pending())
        (void)sigwait(&set, &signo);
    if (is_blocked && !was_blocked)
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}
