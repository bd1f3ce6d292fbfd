#include "build_config.h"

#include "cli/passed.h"

#include <errno.h>
#include <fcntl.h>
#ifdef HAVE_LAUNCH_ACTIVATE_SOCKET
#include <launch.h>
#endif
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/address.h"

#define FIRST_FD 3
#ifdef HAVE_LAUNCH_ACTIVATE_SOCKET
#define NOT_THERE "no such stream socket was passed on (LISTEN_FDNAMES, or Sockets of launchd)"
#else
#define NOT_THERE "no such stream socket was passed on (LISTEN_FDNAMES)"
#endif

union bound {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* --- the variables --- */

static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long number = text != NULL ? strtol(text, &end, 10) : 0;

    return text != NULL && *text != '\0' && *end == '\0' ? number : 0;
}

/* Copies the next of the names that colons separate; *names is NULL after the last one. */
static void next_name(char to[LISTEN_FD_NAME_MAX + 1], const char **names)
{
    size_t len = *names != NULL ? strcspn(*names, ":") : 0;

    snprintf(to, LISTEN_FD_NAME_MAX + 1, "%.*s", (int)(len < LISTEN_FD_NAME_MAX ? len : 0),
             *names != NULL ? *names : "");
    if (*names != NULL)
        *names = (*names)[len] == ':' ? *names + len + 1 : NULL;
    if (to[0] == '\0')
        snprintf(to, LISTEN_FD_NAME_MAX + 1, "unknown");
}

void passed_read(struct passed_sockets *passed)
{
    const char *names = getenv("LISTEN_FDNAMES");
    long count = number_of("LISTEN_PID") == (long)getpid() ? number_of("LISTEN_FDS") : 0;

    passed->count = 0;
    for (long i = 0; i < count && i < PASSED_MAX; i++) {
        struct passed_socket *socket = &passed->sockets[passed->count];

        *socket = (struct passed_socket){.fd = FIRST_FD + (int)i};
        next_name(socket->name, &names);
        if (fcntl(socket->fd, F_SETFD, FD_CLOEXEC) == 0 || errno != EBADF)
            passed->count++; /* a number that is not open will be a file of the daemon's own */
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

/* --- launchd --- */

#ifdef HAVE_LAUNCH_ACTIVATE_SOCKET
static bool has_name(const struct passed_sockets *passed, const char *name)
{
    for (size_t i = 0; i < passed->count; i++) {
        if (strcmp(passed->sockets[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A name may stand for several: of IPv4 and IPv6. launchd gives each away once; for a name that it
 * does not have, or a process that it has not started, there is none. */
static void activate(struct passed_sockets *passed, const char *name)
{
    size_t count = 0;
    int *fds = NULL;

    if (name[0] == '\0' || has_name(passed, name) ||
        launch_activate_socket(name, &fds, &count) != 0)
        return;
    for (size_t i = 0; i < count && passed->count < PASSED_MAX; i++) {
        struct passed_socket *socket = &passed->sockets[passed->count];

        *socket = (struct passed_socket){.fd = fds[i]};
        snprintf(socket->name, sizeof socket->name, "%s", name);
        if (fcntl(socket->fd, F_SETFD, FD_CLOEXEC) == 0)
            passed->count++;
    }
    free(fds);
}

static void activate_all(struct passed_sockets *passed, const struct listen_config *listens,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        activate(passed, listens[i].address.fd_name);
    if (count > 0)
        activate(passed, PASSED_USUAL);
}
#else
static void activate_all(struct passed_sockets *passed, const struct listen_config *listens,
                         size_t count)
{
    (void)passed;
    (void)listens;
    (void)count;
}
#endif

/* --- addresses --- */

static bool is_bound(struct passed_socket *socket, union bound *bound)
{
    socklen_t len = sizeof *bound, type_len = sizeof(int);
    int type = 0;

    memset(bound, 0, sizeof *bound);
    if (getsockopt(socket->fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
        getsockname(socket->fd, &bound->any, &len) < 0) {
        socket->error = errno;
        return false;
    }
    return type == SOCK_STREAM &&
           (bound->any.sa_family == AF_UNIX || bound->any.sa_family == AF_INET ||
            bound->any.sa_family == AF_INET6);
}

static unsigned port_of(const union bound *bound)
{
    return ntohs(bound->any.sa_family == AF_INET6 ? bound->v6.sin6_port : bound->v4.sin_port);
}

static bool has_host(const union bound *bound, const struct listen_address *address)
{
    unsigned char wanted[ADDRESS_BYTES], found[ADDRESS_BYTES];
    char reason[ADDRESS_REASON_MAX];
    struct addrinfo *all, *each;
    bool same = false;

    all = address_resolve(address->host, address->port, reason, sizeof reason);
    address_bytes(found, &bound->any);
    for (each = all; each != NULL && !same; each = each->ai_next) {
        address_bytes(wanted, each->ai_addr);
        same = memcmp(wanted, found, sizeof wanted) == 0;
    }
    if (all != NULL)
        freeaddrinfo(all);
    return same;
}

static bool has_address(const union bound *bound, const struct listen_address *address)
{
    if (address->is_unix)
        return bound->any.sa_family == AF_UNIX && strcmp(bound->local.sun_path, address->path) == 0;
    return bound->any.sa_family != AF_UNIX && address->port != 0 &&
           port_of(bound) == address->port && has_host(bound, address);
}

/* --- listeners --- */

static struct passed_socket *find(struct passed_sockets *passed,
                                  const struct listen_address *address, union bound *bound)
{
    for (size_t i = 0; i < passed->count; i++) {
        struct passed_socket *socket = &passed->sockets[i];
        bool is_named = address->fd_name[0] != '\0';

        if (socket->used || (is_named && strcmp(socket->name, address->fd_name) != 0))
            continue;
        if (is_bound(socket, bound) && (is_named || has_address(bound, address)))
            return socket;
    }
    return NULL;
}

/* A rule about who may connect is not ignored. */
static const char *problem_of(const struct listen_config *listen, bool is_unix)
{
    if (!is_unix && listen->access.uid_count > 0)
        return "allow_uids is for Unix sockets, and this one is on TCP";
    if (is_unix && listen->address.kind == LISTEN_FD && listen->token_file != NULL)
        return "token_file is for TCP, and this one is a Unix socket";
    return NULL;
}

static void use(struct listen_address *address, struct passed_socket *socket,
                const union bound *bound)
{
    bool is_http = address->kind == LISTEN_HTTP;

    socket->used = true;
    address->fd = socket->fd;
    address->is_unix = bound->any.sa_family == AF_UNIX;
    if (!is_http)
        address->kind = address->is_unix ? LISTEN_UNIX : LISTEN_TCP;
    if (address->is_unix)
        snprintf(address->path, sizeof address->path, "%s%s",
                 bound->local.sun_path[0] == '\0' ? "@" : "",
                 bound->local.sun_path + (bound->local.sun_path[0] == '\0'));
    else
        address->port = (uint16_t)port_of(bound);
    snprintf(address->fd_name, sizeof address->fd_name, "%s", socket->name);
}

static int assign(struct passed_sockets *passed, struct listen_config *listen, struct log *log)
{
    union bound bound;
    struct passed_socket *socket = find(passed, &listen->address, &bound);
    const char *problem = NULL;

    if (socket == NULL && listen->address.fd_name[0] == '\0')
        return STDIO_BUS_OK;
    if (socket == NULL)
        problem = NOT_THERE;
    else
        problem = problem_of(listen, bound.any.sa_family == AF_UNIX);
    if (problem == NULL) {
        use(&listen->address, socket, &bound);
        return STDIO_BUS_OK;
    }
    log_error(log, "", "cannot listen on the socket %s: %s",
              socket != NULL ? socket->name : listen->address.fd_name, problem);
    return STDIO_BUS_EINVAL;
}

static int assign_all(struct passed_sockets *passed, struct listen_config *listens, size_t count,
                      struct log *log)
{
    for (size_t i = 0; i < count; i++) {
        if (assign(passed, &listens[i], log) != STDIO_BUS_OK)
            return STDIO_BUS_EINVAL;
    }
    return STDIO_BUS_OK;
}

int passed_assign(struct passed_sockets *passed, struct listen_config *listens, size_t count,
                  struct log *log)
{
    size_t kept = 0;

    activate_all(passed, listens, count);
    if (assign_all(passed, listens, count, log) != STDIO_BUS_OK)
        return STDIO_BUS_EINVAL;
    for (size_t i = 0; i < passed->count; i++) {
        struct passed_socket *socket = &passed->sockets[i];

        if (socket->used) {
            passed->sockets[kept++] = *socket;
            continue;
        }
        log_warn(log, "", "no listener uses the socket %s that was passed on%s%s", socket->name,
                 socket->error != 0 ? ": " : "", socket->error != 0 ? strerror(socket->error) : "");
        close(socket->fd);
    }
    passed->count = kept;
    return STDIO_BUS_OK;
}

int passed_find(const struct passed_sockets *passed, struct listen_config *listens, size_t count,
                struct log *log)
{
    struct passed_sockets again = *passed;

    for (size_t i = 0; i < again.count; i++)
        again.sockets[i].used = false;
    return assign_all(&again, listens, count, log);
}

void passed_take(struct passed_sockets *passed, const struct listen_config *listens, size_t count)
{
    for (size_t i = 0; i < count && passed->count < PASSED_MAX; i++) {
        const struct listen_address *address = &listens[i].address;
        struct passed_socket *socket = &passed->sockets[passed->count];

        if (address->fd == 0)
            continue;
        *socket = (struct passed_socket){.fd = address->fd, .used = true};
        snprintf(socket->name, sizeof socket->name, "%s", address->fd_name);
        passed->count++;
    }
}
