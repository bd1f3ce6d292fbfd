/* Where a listener listens, or a client connects: a Unix socket or a TCP address. */
#ifndef STDIO_BUS_CONFIG_LISTEN_ADDRESS_H
#define STDIO_BUS_CONFIG_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/unix_path.h"

#define LISTEN_HOST_MAX 255
#define LISTEN_FD_NAME_MAX 255
#define LISTEN_PROBLEM_MAX 128

enum listen_kind {
    LISTEN_UNIX, /* framed messages on a Unix socket */
    LISTEN_TCP,  /* framed messages on TCP */
    LISTEN_HTTP, /* HTTP, on TCP or on a Unix socket */
    LISTEN_FD    /* framed messages on a socket of the service manager's, of either kind */
};

struct listen_address {
    enum listen_kind kind;
    bool is_unix;
    char path[UNIX_PATH_MAX + 1];         /* of a Unix socket */
    char host[LISTEN_HOST_MAX + 1];       /* "" stands for loopback; brackets of [v6] removed */
    uint16_t port;                        /* 0: the system picks one */
    char fd_name[LISTEN_FD_NAME_MAX + 1]; /* of a socket that was passed on; "": none is named */
    int fd;                               /* that socket, or one of this address; 0: none */
};

/* Each sets *to, or returns false with the problem in words. */
bool listen_address_of_path(struct listen_address *to, const char *path,
                            char problem[LISTEN_PROBLEM_MAX]);
/* "HOST:PORT", "[IPV6]:PORT" or ":PORT", with a port of at least port_min. */
bool listen_address_of_host(struct listen_address *to, const char *text, long port_min,
                            char problem[LISTEN_PROBLEM_MAX]);
/* A path for LISTEN_UNIX, a name for LISTEN_FD, else an address; "unix:PATH" or "fd:NAME" where
 * HTTP is on such a socket. */
bool listen_address_read(struct listen_address *to, enum listen_kind kind, const char *text,
                         char problem[LISTEN_PROBLEM_MAX]);

/* Whether both are the same place for clients of the same kind. */
bool listen_address_same(const struct listen_address *one, const struct listen_address *other);

/* "unix", "tcp", "http" or "fd": the key of the configuration, and the option. */
const char *listen_kind_name(enum listen_kind kind);

#endif
