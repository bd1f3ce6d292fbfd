#include "build_config.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#ifdef HAVE_CLOSE_RANGE
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "base/error.h"

#define DESCRIPTORS_MAX 65536
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U /* not every libc has a name for it */
#endif

/* An empty container has no /dev/null: a directory cannot be read or written either. */
static int open_nothing(bool for_writing)
{
    int fd = for_writing ? open("/dev/null", O_WRONLY) : open("/dev/null", O_RDONLY);

    if (fd < 0)
        fd = open("/", O_RDONLY);
    return fd;
}

bool descriptor_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int opened;

        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        opened = open_nothing(fd == STDERR_FILENO);
        if (opened == fd)
            continue;
        if (opened >= 0)
            close(opened);
        return false;
    }
    return true;
}

void descriptor_close(int fd)
{
    int saved = errno;

    (void)close(fd);
    errno = saved;
}

void descriptor_close_from(int first, bool on_exec)
{
    long max;

#ifdef HAVE_CLOSE_RANGE
    if (syscall(SYS_close_range, first, ~0U, on_exec ? CLOSE_RANGE_CLOEXEC : 0U) == 0)
        return;
#endif
    max = sysconf(_SC_OPEN_MAX);
    if (max < 0 || max > DESCRIPTORS_MAX)
        max = DESCRIPTORS_MAX;
    for (int fd = first; fd < (int)max; fd++)
        (void)(on_exec ? fcntl(fd, F_SETFD, FD_CLOEXEC) : close(fd));
}

void descriptor_close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0)
            descriptor_close(ends[i]);
        ends[i] = -1;
    }
}

int descriptor_open_pipe(int ends[2], int flags)
{
    ends[0] = ends[1] = -1;
#ifdef HAVE_PIPE2
    return pipe2(ends, O_CLOEXEC | flags) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
#else
    if (pipe(ends) != 0)
        return STDIO_BUS_ERR;
    for (int i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[i], F_SETFL, flags) != 0) {
            descriptor_close_pipe(ends);
            return STDIO_BUS_ERR;
        }
    }
    return STDIO_BUS_OK;
#endif
}

int descriptor_open_own(int fd, int access)
{
    struct stat status;
    char path[32];
    int own, flags;

    /* A file would be read from its beginning. A named pipe without writers would never report its
     * end to a reader that opens it then. */
    if (fstat(fd, &status) != 0 ||
        !((S_ISFIFO(status.st_mode) && access == O_WRONLY) || isatty(fd)))
        return -1;
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fd);
    own = open(path, access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0); /* creates nothing */
    if (own < 0)
        return -1;
    flags = fcntl(own, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) == 0) {
        descriptor_close(own);
        return -1;
    }
    return own;
}

int descriptor_connect(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM, 0), status;

    if (fd < 0)
        return -1;
    do
        status = connect(fd, address, len);
    while (status < 0 && errno == EINTR);
    if ((status == 0 || errno == EISCONN) && /* EISCONN: after an interruption */
        fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        return fd;
    descriptor_close(fd);
    return -1;
}

/* Whether poll said no, and the descriptor is open. */
static bool is_refused(const struct pollfd *asked)
{
    return (asked->revents & POLLNVAL) != 0 && asked->fd < FD_SETSIZE &&
           fcntl(asked->fd, F_GETFD) >= 0;
}

/* FD_SET and FD_ISSET of musl compute with an int and an unsigned long. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

static short found_by_select(const struct pollfd *asked, const fd_set *input, const fd_set *output)
{
    return (short)((FD_ISSET(asked->fd, input) ? POLLIN : 0) |
                   (FD_ISSET(asked->fd, output) ? POLLOUT : 0));
}

static int poll_by_select(struct pollfd *fds, size_t count, int timeout_ms)
{
    struct timeval timeout = {timeout_ms / 1000, (suseconds_t)(timeout_ms % 1000) * 1000};
    fd_set input, output;
    int last = -1, ready = 0;
    size_t i;

    FD_ZERO(&input);
    FD_ZERO(&output);
    for (i = 0; i < count; i++) {
        if (fds[i].fd < 0 || fds[i].fd >= FD_SETSIZE)
            continue;
        if ((fds[i].events & POLLIN) != 0)
            FD_SET(fds[i].fd, &input);
        if ((fds[i].events & POLLOUT) != 0)
            FD_SET(fds[i].fd, &output);
        last = fds[i].fd > last ? fds[i].fd : last;
    }
    if (select(last + 1, &input, &output, NULL, timeout_ms < 0 ? NULL : &timeout) < 0)
        return -1;
    for (i = 0; i < count; i++) {
        if (is_refused(&fds[i]))
            fds[i].revents = found_by_select(&fds[i], &input, &output);
        else if (poll(&fds[i], 1, 0) < 0)
            return -1;
        ready += fds[i].revents != 0;
    }
    return ready;
}

#pragma GCC diagnostic pop

int descriptor_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = poll(fds, (nfds_t)count, timeout_ms);
    size_t i;

    for (i = 0; ready > 0 && i < count; i++) {
        if (is_refused(&fds[i]))
            return poll_by_select(fds, count, timeout_ms);
    }
    return ready;
}

bool descriptor_write_all(int fd, const char *bytes, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    ssize_t written;

    while (len > 0) {
        written = write(fd, bytes, len);
        if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            (void)descriptor_poll(&ready, 1, -1);
        else if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            len -= (size_t)written;
        }
    }
    return true;
}

#define READY_FD 3
#define READY '+'

bool readiness_keep(int fd)
{
    if ((fd != READY_FD && dup2(fd, READY_FD) < 0) || fcntl(READY_FD, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    descriptor_close_from(READY_FD + 1, false);
    return true;
}

bool readiness_report(void)
{
    const char ready = READY;
    bool written = write(READY_FD, &ready, 1) == 1;

    close(READY_FD);
    return written;
}

bool readiness_await(int fd)
{
    char byte = '\0';
    ssize_t got;

    do
        got = read(fd, &byte, 1);
    while (got < 0 && errno == EINTR);
    return got == 1 && byte == READY;
}
