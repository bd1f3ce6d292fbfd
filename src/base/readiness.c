#include "build_config.h"

#include "base/readiness.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/descriptor.h"

#define READY_FD 3
#define READY '+'

bool readiness_keep(int fd)
{
    if ((fd != READY_FD && dup2(fd, READY_FD) < 0) || fcntl(READY_FD, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    descriptor_close_from(READY_FD + 1);
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
