#include "build_config.h"

#include "base/random.h"

#include <fcntl.h>
#ifdef HAVE_SYS_RANDOM_H
#include <sys/random.h> /* getentropy of macOS and glibc; the BSDs have it in unistd.h */
#endif
#include <unistd.h>

bool random_bytes(void *to, size_t len)
{
#ifdef HAVE_GETENTROPY
    if (getentropy(to, len) == 0)
        return true;
#endif
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, to, len);
    close(fd);
    return got == (ssize_t)len;
}
