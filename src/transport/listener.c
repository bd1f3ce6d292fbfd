#include "build_config.h"

#include "transport/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#ifdef HAVE_FLOCK
#include <sys/file.h>
#endif
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "transport/address.h"

#define ACCEPTS_PER_ROUND 16 /* a fair share, beside the connections that are open */
#define REST_MS 1000         /* a descriptor may also be freed by another process */
#define LOCK_WAIT_MS 2000    /* another program's lock must not prevent the start */
#define LOCK_NAP_MS 10

static int accept_one(int fd, struct sockaddr_storage *address)
{
    socklen_t len = sizeof *address;

    address->ss_family = AF_UNIX; /* some systems give no address for a peer without one */
#ifdef HAVE_ACCEPT4
    return accept4(fd, (struct sockaddr *)address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
    fd = accept(fd, (struct sockaddr *)address, &len);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
#endif
}

/* Out of descriptors or memory: the waiting connections stay in the backlog, and nothing spins. */
static void rest(struct listener *listener, int error)
{
    if (!listener->rest_logged)
        log_error(listener->log, "", "cannot accept a connection: %s; resting until it can go on",
                  strerror(error));
    listener->rest_logged = true;
    for (int i = 0; i < listener->count; i++)
        stdio_bus_event_loop_modify(listener->loop, listener->sockets[i].fd, 0);
    stdio_bus_event_loop_start_timer(listener->loop, &listener->rest, REST_MS);
}

static void go_on(void *user_data)
{
    struct listener *listener = user_data;

    for (int i = 0; i < listener->count; i++) {
        if (stdio_bus_event_loop_modify(listener->loop, listener->sockets[i].fd,
                                        STDIO_BUS_EVENT_READ) == STDIO_BUS_OK)
            continue;
        log_warn(listener->log, "", "cannot accept connections yet: %s", strerror(errno));
        stdio_bus_event_loop_start_timer(listener->loop, &listener->rest, REST_MS);
    }
}

void listener_descriptor_freed(struct listener *listener)
{
    if (listener->loop == NULL || !timer_started(&listener->rest))
        return;
    stdio_bus_event_loop_stop_timer(listener->loop, &listener->rest);
    go_on(listener);
}

/* An error of the connection, which has left the backlog; the next one may be good. */
static bool is_of_connection(int error)
{
    return error == ECONNABORTED || error == EPROTO || error == ENETDOWN || error == ENETUNREACH ||
           error == EHOSTDOWN || error == EHOSTUNREACH;
}

static void acceptable(void *user_data, unsigned events)
{
    struct listener_socket *socket = user_data;
    struct listener *listener = socket->listener;

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_ROUND && socket->fd >= 0; i++) {
        struct sockaddr_storage address;
        struct origin origin;
        int fd = accept_one(socket->fd, &address);

        if (fd < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                listener->rest_logged = false;
            else if (errno != EINTR && !is_of_connection(errno))
                rest(listener, errno);
            return;
        }
        origin_of_socket(&origin, fd, (const struct sockaddr *)&address);
        listener->fn(listener->user_data, fd, &origin);
        if (socket->fd >= 0 && fd > listener->fd_max) {
            rest(listener, EMFILE);
            return;
        }
    }
}

static void set_up(struct listener *listener, struct stdio_bus_event_loop *loop, struct log *log,
                   listener_fn *fn, void *user_data)
{
    *listener = (struct listener){
        .loop = loop, .log = log, .fn = fn, .user_data = user_data, .fd_max = INT_MAX};
    timer_init(&listener->rest, go_on, listener);
}

static int add_socket(struct listener *listener, int fd)
{
    struct listener_socket *socket = &listener->sockets[listener->count];

    ASSERT(listener->count < LISTENER_SOCKETS_MAX);
    if (listen(fd, SOMAXCONN) < 0)
        return STDIO_BUS_ERR;
    socket->listener = listener;
    socket->fd = fd;
    if (stdio_bus_event_loop_add(listener->loop, fd, STDIO_BUS_EVENT_READ, acceptable, socket) !=
        STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    listener->count++;
    return STDIO_BUS_OK;
}

/* A socket that is bound but does not listen yet looks stale, and a stale one may have been
 * replaced when it is removed. So of several daemons that start at once, one at a time may look,
 * remove, bind and listen. Returns the locked directory, which the caller closes, or -1 if that
 * cannot be opened. */
static int lock_directory(const char *path)
{
#ifdef HAVE_FLOCK
    char directory[sizeof((struct sockaddr_un *)NULL)->sun_path];
    const char *slash = strrchr(path, '/');
    int fd, waited = 0;

    snprintf(directory, sizeof directory, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    fd = open(directory, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 &&
           (errno == EWOULDBLOCK || errno == EINTR) && waited < LOCK_WAIT_MS) {
        poll(NULL, 0, LOCK_NAP_MS);
        waited += LOCK_NAP_MS;
    }
    return fd;
#else
    (void)path;
    return -1;
#endif
}

static int listen_unix(struct listener *listener, const char *path, const struct access *access)
{
    struct stat status;
    char reason[ADDRESS_REASON_MAX];
    int fd = address_bind_unix(path, access, reason, sizeof reason);

    if (fd < 0) {
        log_error(listener->log, "", "cannot listen on %s: %s", path, reason);
        return STDIO_BUS_ERR;
    }
    if (lstat(path, &status) < 0 || add_socket(listener, fd) != STDIO_BUS_OK) {
        log_error(listener->log, "", "cannot listen on %s: %s", path, strerror(errno));
        close(fd);
        unlink(path);
        return STDIO_BUS_ERR;
    }
    listener->path = path;
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    log_info(listener->log, "", "listening on %s", path);
    return STDIO_BUS_OK;
}

int listener_open_unix(struct listener *listener, struct stdio_bus_event_loop *loop,
                       struct log *log, const char *path, const struct access *access,
                       listener_fn *fn, void *user_data)
{
    int directory, status;

    set_up(listener, loop, log, fn, user_data);
    directory = lock_directory(path);
    status = listen_unix(listener, path, access);
    if (directory >= 0)
        close(directory);
    return status;
}

static void log_tcp(struct listener *listener, int fd, const struct addrinfo *info)
{
    struct sockaddr_storage bound;
    const struct sockaddr *address = (const struct sockaddr *)&bound;
    socklen_t len = sizeof bound;
    char text[ADDRESS_TEXT_MAX];

    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0) {
        log_warn(listener->log, "", "cannot find out which port it is: %s", strerror(errno));
        address = info->ai_addr;
    }
    address_text(text, sizeof text, address);
    log_info(listener->log, "", "listening on %s", text);
    if (!address_is_loopback(address))
        listener->is_outside = true;
}

/* STDIO_BUS_ENOTFOUND, after a warning, if the machine does not have this address. */
static int listen_on(struct listener *listener, const struct addrinfo *info)
{
    char reason[ADDRESS_REASON_MAX];
    int fd = address_bind_tcp(info, reason, sizeof reason);

    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        log_warn(listener->log, "", "not listening on %s", reason);
        return STDIO_BUS_ENOTFOUND;
    }
    if (fd < 0) {
        log_error(listener->log, "", "cannot listen: %s", reason);
        return STDIO_BUS_ERR;
    }
    if (add_socket(listener, fd) != STDIO_BUS_OK) {
        log_error(listener->log, "", "cannot listen: %s", strerror(errno));
        close(fd);
        return STDIO_BUS_ERR;
    }
    log_tcp(listener, fd, info);
    return STDIO_BUS_OK;
}

int listener_open_tcp(struct listener *listener, struct stdio_bus_event_loop *loop, struct log *log,
                      const char *host, uint16_t port, listener_fn *fn, void *user_data)
{
    struct addrinfo *found, *info;
    int status = STDIO_BUS_OK;
    char reason[ADDRESS_REASON_MAX];

    set_up(listener, loop, log, fn, user_data);
    found = address_resolve(host, port, reason, sizeof reason);
    if (found == NULL) {
        log_error(log, "", "cannot listen on %s: %s", host, reason);
        return STDIO_BUS_ERR;
    }
    for (info = found; info != NULL && status != STDIO_BUS_ERR; info = info->ai_next) {
        /* With a port that the system picks, a second address would get another one. */
        if (listener->count == LISTENER_SOCKETS_MAX || (port == 0 && listener->count > 0))
            break;
        status = listen_on(listener, info);
    }
    freeaddrinfo(found);
    /* One address is enough: a name may stand for an IPv6 address on a machine without IPv6. */
    if (status != STDIO_BUS_ERR && listener->count > 0)
        return STDIO_BUS_OK;
    if (status != STDIO_BUS_ERR)
        log_error(log, "", "cannot listen on %s: none of its addresses is this machine's", host);
    listener_close(listener);
    return STDIO_BUS_ERR;
}

int listener_adopt(struct listener *listener, struct stdio_bus_event_loop *loop, struct log *log,
                   int fd, const char *name, listener_fn *fn, void *user_data)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;

    set_up(listener, loop, log, fn, user_data);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ||
        add_socket(listener, fd) != STDIO_BUS_OK) {
        log_error(log, "", "cannot listen on %s: %s", name, strerror(errno));
        close(fd);
        return STDIO_BUS_ERR;
    }
    listener->is_outside = !address_is_loopback((const struct sockaddr *)&bound);
    log_info(log, "", "listening on %s, a socket that was passed on", name);
    return STDIO_BUS_OK;
}

int listener_change_access(struct listener *listener, const char *path, const struct access *access)
{
    if (listener->path == NULL) /* the service manager's */
        return STDIO_BUS_OK;
    listener->path = path;
    return access != NULL ? address_set_access(path, access) : STDIO_BUS_OK;
}

/* Leaves the socket file of another process that has replaced this one. */
static void remove_path(struct listener *listener)
{
    struct stat status;
    int failed = lstat(listener->path, &status);

    if (failed == 0 && status.st_dev == listener->device && status.st_ino == listener->inode)
        failed = unlink(listener->path);
    if (failed != 0 && errno != ENOENT)
        log_warn(listener->log, "", "cannot remove %s: %s", listener->path, strerror(errno));
    listener->path = NULL;
}

void listener_close(struct listener *listener)
{
    if (listener->loop == NULL)
        return;
    stdio_bus_event_loop_stop_timer(listener->loop, &listener->rest);
    /* First: once nobody listens there, the next process may take the path, and the inode too. */
    if (listener->path != NULL)
        remove_path(listener);
    for (int i = 0; i < listener->count; i++) {
        stdio_bus_event_loop_remove(listener->loop, listener->sockets[i].fd);
        close(listener->sockets[i].fd);
        listener->sockets[i].fd = -1;
    }
    listener->count = 0;
}

/* --- the archive --- */

/* It listens already. One that rested does so again if it has to. */
static void load_socket(struct archive *archive, struct listener *listener,
                        struct listener_socket *socket)
{
    socket->listener = listener;
    if (socket->fd < 0 || stdio_bus_event_loop_add(listener->loop, socket->fd, STDIO_BUS_EVENT_READ,
                                                   acceptable, socket) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

void listener_archive(struct archive *archive, struct listener *listener,
                      struct stdio_bus_event_loop *loop, struct log *log, const char *path,
                      listener_fn *fn, void *user_data)
{
    bool has_path = listener->path != NULL;

    if (!archive->saves)
        set_up(listener, loop, log, fn, user_data);
    archive_mark(archive, "listener");
    ARCHIVE_ENUM(archive, listener->count, LISTENER_SOCKETS_MAX);
    for (int i = 0; i < listener->count && archive_ok(archive); i++) {
        archive_fd(archive, &listener->sockets[i].fd);
        if (!archive->saves && archive_ok(archive))
            load_socket(archive, listener, &listener->sockets[i]);
    }
    archive_flag(archive, &listener->is_outside);
    archive_flag(archive, &has_path);
    ARCHIVE_INTEGER(archive, listener->device);
    ARCHIVE_INTEGER(archive, listener->inode);
    archive_expect(archive, !has_path || path != NULL, "a socket has lost its path");
    if (!archive->saves)
        listener->path = has_path ? path : NULL;
}

/* TCP keepalive, in seconds, and the probes without a reply that end a connection. */
#define KEEPALIVE_IDLE 60
#define KEEPALIVE_INTERVAL 15
#define KEEPALIVE_PROBES 4
#define KEEPALIVE_IDLE_HALF_CLOSED 10

static void set_tcp(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

static void set_keepalive_idle(int fd, int seconds)
{
#if defined TCP_KEEPIDLE
    set_tcp(fd, TCP_KEEPIDLE, seconds);
#elif defined TCP_KEEPALIVE /* macOS */
    set_tcp(fd, TCP_KEEPALIVE, seconds);
#else
    (void)fd;
    (void)seconds;
#endif
}

/* Not TCP_USER_TIMEOUT: it would also end the connection of a live client that does not read for a
 * while. */
void tcp_set(int fd)
{
    int on = 1;

    set_tcp(fd, TCP_NODELAY, 1);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    set_keepalive_idle(fd, KEEPALIVE_IDLE);
#if defined TCP_KEEPINTVL && defined TCP_KEEPCNT
    set_tcp(fd, TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
    set_tcp(fd, TCP_KEEPCNT, KEEPALIVE_PROBES);
#endif
}

void tcp_set_half_closed(int fd)
{
    set_keepalive_idle(fd, KEEPALIVE_IDLE_HALF_CLOSED);
}
