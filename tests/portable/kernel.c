/* What the kernel of macOS does otherwise than Linux, in place of the calls of these names: the
 * linker is told so with --wrap. It is no part of the daemon. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_SIZE 16384 /* bytes */

int __real_pipe(int ends[2]);
int __wrap_pipe(int ends[2]);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* A pipe holds 16 KiB. */
int __wrap_pipe(int ends[2])
{
    int result = __real_pipe(ends);

    if (result == 0)
        (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    return result;
}

static bool is_device(int fd)
{
    struct stat status;

    return fd >= 0 && fstat(fd, &status) == 0 && S_ISCHR(status.st_mode);
}

/* poll(2) of macOS, BUGS: it does not support devices. They get POLLNVAL. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    nfds_t i, devices = 0;
    int result;

    for (i = 0; i < count; i++)
        devices += is_device(fds[i].fd);
    if (devices == 0)
        return __real_poll(fds, count, timeout_ms);
    for (i = 0; i < count; i++)
        fds[i].fd = is_device(fds[i].fd) ? ~fds[i].fd : fds[i].fd;
    result = __real_poll(fds, count, 0);
    for (i = 0; i < count && result >= 0; i++) {
        if (fds[i].fd >= 0 || !is_device(~fds[i].fd))
            continue;
        fds[i].fd = ~fds[i].fd;
        fds[i].revents = POLLNVAL;
        result++;
    }
    return result;
}
