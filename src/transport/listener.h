/* Listening sockets (spec 4.1): Unix domain and TCP. */
#ifndef STDIO_BUS_TRANSPORT_LISTENER_H
#define STDIO_BUS_TRANSPORT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/archive.h"
#include "base/log.h"
#include "config/access.h"
#include "event/event_loop.h"
#include "transport/origin.h"

/* Gets each accepted descriptor, which is non-blocking and close-on-exec, and owns it. The origin
 * lives until the call returns. */
typedef void listener_fn(void *user_data, int fd, const struct origin *origin);

/* Sockets that one TCP name may stand for (127.0.0.1 and ::1, say). */
#define LISTENER_SOCKETS_MAX 8

struct listener_socket {
    struct listener *listener;
    int fd;
};

struct listener {
    struct stdio_bus_event_loop *loop;
    struct log *log;
    listener_fn *fn;
    void *user_data;
    struct listener_socket sockets[LISTENER_SOCKETS_MAX];
    int count;
    bool is_outside;   /* other machines can reach one of the sockets */
    struct timer rest; /* started while no descriptor is left to accept into */
    bool rest_logged;  /* until every waiting connection was accepted */
    int fd_max;        /* the owner's: rests as if none were left after accepting one above it */
    const char *path;  /* Unix: to unlink; NULL otherwise */
    dev_t device;      /* of the socket file */
    ino_t inode;
};

/* Listens on a Unix socket with the mode and group of `access`, and never with more rights. A stale
 * socket of this user at the path is replaced; a live one or anything else is left alone. `path` is
 * borrowed until listener_close. STDIO_BUS_ERR after the reason was logged. */
int listener_open_unix(struct listener *listener, struct stdio_bus_event_loop *loop,
                       struct log *log, const char *path, const struct access *access,
                       listener_fn *fn, void *user_data);

/* Listens on every address of host ("" is loopback, 127.0.0.1) that the machine has. Port 0: the
 * system picks one, which is logged. STDIO_BUS_ERR after the reason was logged. */
int listener_open_tcp(struct listener *listener, struct stdio_bus_event_loop *loop, struct log *log,
                      const char *host, uint16_t port, listener_fn *fn, void *user_data);

/* Takes over a stream socket that another process has bound, whose file is not removed at the end;
 * `name` is for the log. STDIO_BUS_ERR after the reason was logged; the descriptor is closed. */
int listener_adopt(struct listener *listener, struct stdio_bus_event_loop *loop, struct log *log,
                   int fd, const char *name, listener_fn *fn, void *user_data);

/* Saves the sockets of a listener, or loads them into a zeroed one. `path`: of a Unix socket whose
 * file is the listener's, borrowed until listener_close; NULL: none. Where it saves, only the first
 * two matter. */
void listener_archive(struct archive *archive, struct listener *listener,
                      struct stdio_bus_event_loop *loop, struct log *log, const char *path,
                      listener_fn *fn, void *user_data);

/* The socket file gets another mode and group; `path` is borrowed instead of the one before.
 * STDIO_BUS_ERR with errno set, and then they may be as they were. */
int listener_change_access(struct listener *listener, const char *path,
                           const struct access *access);

/* A descriptor was freed: a listener that rests continues. */
void listener_descriptor_freed(struct listener *listener);

/* Stops listening and unlinks the socket file, unless another process has replaced it. Idempotent;
 * a zeroed listener is fine. */
void listener_close(struct listener *listener);

/* --- The options of a TCP connection that a client has opened. --- */

/* An answer need not wait for the acknowledgement of the one before, and a peer whose machine is
 * gone is noticed. Failing, all of these are a little slower, and not worth refusing a connection
 * for. */
void tcp_set(int fd);

/* The peer has closed its sending side: if it is gone, that is noticed sooner. */
void tcp_set_half_closed(int fd);

#endif
