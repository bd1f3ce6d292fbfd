/* A Unix datagram socket of another program: of a service manager, of the system's log. */
#ifndef STDIO_BUS_BASE_DATAGRAM_H
#define STDIO_BUS_BASE_DATAGRAM_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct datagram {
    int fd; /* -1: not open */
    struct sockaddr_un address;
    size_t address_len;
};

/* Opens the socket of that path; one that begins with '@' is of Linux's abstract names.
 * STDIO_BUS_EINVAL: the name is neither, or too long. STDIO_BUS_ERR with errno set. */
int datagram_open(struct datagram *datagram, const char *path);

/* Sends one datagram without waiting. The other program may have been restarted: then its new
 * socket gets it. STDIO_BUS_EAGAIN: there is no room now. STDIO_BUS_ERR with errno set. */
int datagram_send(struct datagram *datagram, const char *bytes, size_t len);

/* Idempotent. */
void datagram_close(struct datagram *datagram);

#endif
