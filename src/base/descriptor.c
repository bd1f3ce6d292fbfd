#include "build_config.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not a file: it would be read from its beginning. And no pipe that is read: who opens a named one
 * when its writers have gone already is not told of its end. */
static int can_be_opened(int fd, int access)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return 0;
    return (S_ISFIFO(status.st_mode) && access == O_WRONLY) || isatty(fd);
}

int descriptor_open_own(int fd, int access)
{
    char path[32];
    int own, flags;

    if (!can_be_opened(fd, access))
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
