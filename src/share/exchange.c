#include "build_config.h"

#include "share/exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/unix_path.h"
#include "share/identity.h"

int exchange_connect(const char *file, const char *parts[], size_t count)
{
    int fd = unix_path_connect(file);
    size_t i;

    for (i = 0; fd >= 0 && i < count; i++) {
        if (!descriptor_write_all(fd, parts[i], strlen(parts[i]))) {
            descriptor_close(fd);
            return -1;
        }
    }
    return fd;
}

/* Waits for more than the `len` bytes that are there. Returns how many there are then, of at most
 * `size`; -1 with errno set. None is taken. */
static ssize_t peek(int fd, char *to, size_t size, size_t len, int timeout_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got;
    int count;

    for (;; timeout_ms--) {
        count = poll(&ready, 1, timeout_ms > 0 ? timeout_ms : 0);
        if (count < 0 && errno == EINTR && timeout_ms > 0)
            continue;
        if (count <= 0) {
            errno = count == 0 ? ETIMEDOUT : errno;
            return -1;
        }
        got = recv(fd, to, size, MSG_PEEK);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
            errno = got == 0 ? ECONNRESET : errno;
            return -1;
        }
        if (got > 0 && (size_t)got > len)
            return got;
        if (timeout_ms <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        poll(NULL, 0, 1);
    }
}

/* What follows the line is the server's: it is not taken. */
char *exchange_read_reply(int fd, int timeout_ms)
{
    size_t size = 4096, len = 0;
    char *line = malloc(size), *newline = NULL, *larger;
    ssize_t got;

    while (line != NULL && newline == NULL) {
        got = peek(fd, line, size - 1, len, timeout_ms);
        if (got < 0)
            break;
        len = (size_t)got;
        newline = memchr(line, '\n', len);
        if (newline != NULL || len < size - 1)
            continue;
        size *= 2;
        errno = EMSGSIZE;
        larger = size <= IDENTITY_MAX * 2 ? realloc(line, size) : NULL;
        if (larger == NULL)
            break;
        line = larger;
    }
    if (newline != NULL && recv(fd, line, (size_t)(newline - line) + 1, 0) > 0) {
        *newline = '\0';
        return line;
    }
    free(line);
    return NULL;
}

char *exchange_ask(const char *file, const char *line, int timeout_ms)
{
    int fd = exchange_connect(file, &line, 1), error;
    char *reply;

    if (fd < 0)
        return NULL;
    reply = exchange_read_reply(fd, timeout_ms);
    error = errno;
    close(fd);
    errno = error;
    return reply;
}
