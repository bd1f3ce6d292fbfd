/* Listening sockets (spec 4.1): Unix domain and TCP. */
#ifndef STDIO_BUS_TRANSPORT_LISTENER_H
#define STDIO_BUS_TRANSPORT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "event/event_loop.h"

/* Told of each accepted descriptor, which is non-blocking, close-on-exec and the owner's. */
typedef void listener_fn(void *user_data, int fd, const char *peer);

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
    struct timer rest;      /* started while there is no descriptor to accept into */
    bool told;              /* that it rests; until all who waited were accepted */
    int fd_max;             /* rests rather than go on past this one */
    const char *path;       /* Unix: to unlink; NULL otherwise */
    dev_t device;           /* of the socket file that is ours */
    ino_t inode;
};

/* Listens on a Unix socket, mode 0600 from its first instant. A stale socket at the path is
 * replaced; a live one or anything else is left alone. `path` is borrowed until listener_close.
 * STDIO_BUS_ERR after the reason was logged. */
int listener_open_unix(struct listener *listener, struct stdio_bus_event_loop *loop,
                       struct log *log, const char *path, listener_fn *fn, void *user_data);

/* Listens on every address of host ("" is loopback, 127.0.0.1) that the machine has. Port 0: the
 * system picks one, which the log tells. STDIO_BUS_ERR after the reason was logged. */
int listener_open_tcp(struct listener *listener, struct stdio_bus_event_loop *loop,
                      struct log *log, const char *host, uint16_t port, listener_fn *fn,
                      void *user_data);

/* Rests, as if descriptors had run out, once one above `fd_max` was accepted. */
void listener_set_fd_max(struct listener *listener, int fd_max);

/* A descriptor was freed: where accepting rests for want of one, it goes on. */
void listener_descriptor_freed(struct listener *listener);

/* Stops listening and unlinks the socket file if it is still ours. Idempotent; a zeroed one is
 * fine. */
void listener_close(struct listener *listener);

#endif
