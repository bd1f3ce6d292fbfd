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
#include "base/error.h"
#include "base/unix_path.h"
#include "config/access.h"

#define NETWORK_BYTES 8

static const unsigned char mapped_prefix[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void address_bytes(unsigned char to[ADDRESS_BYTES], const struct sockaddr *address)
{
    memset(to, 0, ADDRESS_BYTES);
    if (address->sa_family == AF_INET) {
        memcpy(to, mapped_prefix, sizeof mapped_prefix);
        memcpy(to + sizeof mapped_prefix, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(to, &((const struct sockaddr_in6 *)address)->sin6_addr, ADDRESS_BYTES);
    }
}

static bool is_ipv4(const unsigned char bytes[ADDRESS_BYTES])
{
    return memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

const char *address_text(char *to, size_t size, const struct sockaddr *address)
{
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned char bytes[ADDRESS_BYTES];
    in_port_t port;

    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
        snprintf(to, size, "unix");
        return to;
    }
    port = address->sa_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
                                         : ((const struct sockaddr_in6 *)address)->sin6_port;
    address_bytes(bytes, address);
    if (is_ipv4(bytes)) {
        inet_ntop(AF_INET, bytes + sizeof mapped_prefix, host, sizeof host);
        snprintf(to, size, "%s:%u", host, (unsigned)ntohs(port));
    } else {
        inet_ntop(AF_INET6, bytes, host, sizeof host);
        snprintf(to, size, "[%s]:%u", host, (unsigned)ntohs(port));
    }
    return to;
}

bool address_is_loopback(const struct sockaddr *address)
{
    static const unsigned char loopback[ADDRESS_BYTES] = {[ADDRESS_BYTES - 1] = 1};
    unsigned char bytes[ADDRESS_BYTES];

    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return true;
    address_bytes(bytes, address);
    return is_ipv4(bytes) ? bytes[sizeof mapped_prefix] == 127
                          : memcmp(bytes, loopback, sizeof bytes) == 0;
}

static bool is_link_local(const unsigned char bytes[ADDRESS_BYTES])
{
    return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

void address_host_bytes(unsigned char to[ADDRESS_BYTES], const struct sockaddr *address)
{
    address_bytes(to, address);
    if (!is_ipv4(to) && !is_link_local(to) && !address_is_loopback(address))
        memset(to + NETWORK_BYTES, 0, ADDRESS_BYTES - NETWORK_BYTES);
}

/* A socket that is for IPv6 alone cannot be bound to an IPv4 address in IPv6 form. */
static const char *unmapped(const char *host, char to[INET_ADDRSTRLEN])
{
    unsigned char bytes[ADDRESS_BYTES];

    if (inet_pton(AF_INET6, host, bytes) != 1 || !is_ipv4(bytes))
        return host;
    snprintf(to, INET_ADDRSTRLEN, "%d.%d.%d.%d", bytes[12], bytes[13], bytes[14], bytes[15]);
    return to;
}

struct addrinfo *address_resolve(const char *host, uint16_t port, char *reason, size_t reason_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8], ipv4[INET_ADDRSTRLEN];
    int status;

    snprintf(service, sizeof service, "%u", (unsigned)port);
    status = getaddrinfo(host[0] != '\0' ? unmapped(host, ipv4) : "127.0.0.1", service, &hints,
                         &found);
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

static int fail_socket(int fd, char *reason, size_t reason_size, const char *what)
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
        return fail_socket(fd, reason, reason_size, text);
    return fd;
}

/* Whether no process accepts connections at the socket any more. If not, `reason` says why. */
static bool is_stale(const struct sockaddr_un *address, char *reason, size_t reason_size)
{
    int fd = new_socket(AF_UNIX), status;

    if (fd < 0) {
        fail_socket(fd, reason, reason_size, "socket");
        return false;
    }
    status = connect(fd, (const struct sockaddr *)address, sizeof *address);
    if (status < 0 && errno != ECONNREFUSED) {
        fail_socket(fd, reason, reason_size,
                    "cannot find out whether another process listens there");
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
    if (status.st_uid != geteuid()) {
        snprintf(reason, reason_size, "it is a socket of another user (uid %ld)",
                 (long)status.st_uid);
        return -1;
    }
    if (!is_stale(address, reason, reason_size))
        return -1;
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return fail_socket(-1, reason, reason_size, "cannot remove the stale socket");
    return 0;
}

/* The mode is that of the file from the moment it exists. */
static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode)
{
    mode_t mask = umask(0777 & ~mode);
    int status = bind(fd, (const struct sockaddr *)address, sizeof *address);

    umask(mask);
    return status;
}

static int set_mode(const char *path, mode_t mode)
{
    if (fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return errno == ENOTSUP || errno == EOPNOTSUPP ? chmod(path, mode) : -1;
}

static int set_group(const char *path, const struct access *access)
{
    return lchown(path, (uid_t)-1, access->group) < 0 ? -1 : set_mode(path, access->mode);
}

int address_set_access(const char *path, const struct access *access)
{
    if (!access->has_group)
        return set_mode(path, access->mode) < 0 ? STDIO_BUS_ERR : STDIO_BUS_OK;
    if (set_mode(path, access->mode & 0700) < 0 || set_group(path, access) < 0)
        return STDIO_BUS_ERR;
    return STDIO_BUS_OK;
}

int address_bind_unix(const char *path, const struct access *access, char *reason,
                      size_t reason_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) > UNIX_PATH_MAX) {
        snprintf(reason, reason_size, "the path is longer than %zu bytes", UNIX_PATH_MAX);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (remove_stale(&address, reason, reason_size) < 0)
        return -1;
    fd = new_socket(AF_UNIX);
    if (fd < 0)
        return fail_socket(fd, reason, reason_size, "socket");
    /* The group of the file is another one at first: it gets no rights before it is the right one.
     */
    if (bind_with_mode(fd, &address, access->has_group ? access->mode & 0700 : access->mode) < 0)
        return fail_socket(fd, reason, reason_size, "bind");
    if (access->has_group && set_group(path, access) < 0) {
        fail_socket(fd, reason, reason_size, "cannot set its group and mode");
        unlink(path);
        return -1;
    }
    return fd;
}
