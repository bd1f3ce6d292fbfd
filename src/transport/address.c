#include "build_config.h"

#include "transport/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"

const char *address_text(char *to, size_t size, const struct sockaddr *address)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(to, size, "%s:%u", host, (unsigned)ntohs(v4->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(to, size, "[%s]:%u", host, (unsigned)ntohs(v6->sin6_port));
    } else {
        snprintf(to, size, "unix");
    }
    return to;
}

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return true;
}

struct addrinfo *address_resolve(const char *host, uint16_t port, char *reason, size_t reason_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];
    int status;

    snprintf(service, sizeof service, "%u", (unsigned)port);
    status = getaddrinfo(host[0] != '\0' ? host : "127.0.0.1", service, &hints, &found);
    if (status == 0)
        return found;
    snprintf(reason, reason_size, "%s",
             status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
    return NULL;
}

/* Non-blocking and close-on-exec from birth where the system can: in a host with threads, another
 * thread may fork at any time. */
static int new_socket(int family)
{
#ifdef SOCK_CLOEXEC
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
#else
    int fd = socket(family, SOCK_STREAM, 0);

    if (fd >= 0 && (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
#endif
}

static int fail(int fd, char *reason, size_t reason_size, const char *what)
{
    int error = errno;

    snprintf(reason, reason_size, "%s: %s", what, strerror(error));
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

int address_bind_tcp(const struct addrinfo *info, char *reason, size_t reason_size)
{
    char text[ADDRESS_TEXT_MAX];
    int on = 1;
    int fd;

    address_text(text, sizeof text, info->ai_addr);
    fd = new_socket(info->ai_family);
    /* A restart must not wait until the system forgets the old connections; and the IPv4 address of
     * a name has a socket of its own. */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (info->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        bind(fd, info->ai_addr, info->ai_addrlen) < 0)
        return fail(fd, reason, reason_size, text);
    return fd;
}

/* Whether no process accepts connections at the socket any more. If not, `reason` says why. */
static bool is_stale(const struct sockaddr_un *address, char *reason, size_t reason_size)
{
    int fd = new_socket(AF_UNIX), status;

    if (fd < 0) {
        fail(fd, reason, reason_size, "socket");
        return false;
    }
    status = connect(fd, (const struct sockaddr *)address, sizeof *address);
    if (status < 0 && errno != ECONNREFUSED) {
        fail(fd, reason, reason_size, "cannot find out whether another process listens there");
        return false;
    }
    snprintf(reason, reason_size, "another process listens there");
    close(fd);
    return status < 0;
}

/* Makes way for a new socket. Returns 0, or -1 with `reason` filled. */
static int remove_stale(const struct sockaddr_un *address, char *reason, size_t reason_size)
{
    struct stat status;

    if (lstat(address->sun_path, &status) < 0) {
        snprintf(reason, reason_size, "%s", strerror(errno));
        return errno == ENOENT ? 0 : -1;
    }
    if (!S_ISSOCK(status.st_mode)) {
        snprintf(reason, reason_size, "it exists and is not a socket");
        return -1;
    }
    if (!is_stale(address, reason, reason_size))
        return -1;
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return fail(-1, reason, reason_size, "cannot remove the stale socket");
    return 0;
}

int address_bind_unix(const char *path, char *reason, size_t reason_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mode_t mask;
    int fd, status;

    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(reason, reason_size, "the path is longer than %zu bytes",
                 sizeof address.sun_path - 1);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (remove_stale(&address, reason, reason_size) < 0)
        return -1;
    fd = new_socket(AF_UNIX);
    if (fd < 0)
        return fail(fd, reason, reason_size, "socket");
    mask = umask(0177);
    status = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(mask);
    return status == 0 ? fd : fail(fd, reason, reason_size, "bind");
}
