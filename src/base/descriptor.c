#include "build_config.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not a file: it would be read from its beginning. */
static int is_pipe_or_terminal(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || isatty(fd));
}

int descriptor_open_own(int fd, int access)
{
    char path[32];
    int own, flags;

    if (!is_pipe_or_terminal(fd))
        return -1;
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    own = open(path, access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0); /* creates nothing */
    if (own < 0)
        return -1;
    flags = fcntl(own, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) == 0) {
        (void)close(own);
        return -1;
    }
    return own;
}
