/* A Unix datagram socket of another program: of a service manager, of the system's log. */
#ifndef STDIO_BUS_BASE_DATAGRAM_H
#define STDIO_BUS_BASE_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>
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

/* Messages to a service manager, in the protocol of sd_notify(3): datagrams of lines NAME=VALUE to
 * the socket that the environment names. */

struct notify {
    struct datagram to;
    int64_t watchdog_ms; /* the manager ends a service that is silent for so long; 0: it does not */
};

/* The variables of the environment that a service manager sets; each may be NULL. */
struct notify_variables {
    const char *socket;        /* NOTIFY_SOCKET */
    const char *watchdog_usec; /* WATCHDOG_USEC */
    const char *watchdog_pid;  /* WATCHDOG_PID: the process that the watchdog is for; NULL: any */
};

/* Without the variable NOTIFY_SOCKET there is no manager: STDIO_BUS_ENOTFOUND. Otherwise the errors
 * of datagram_open. After any error nothing is open. */
int notify_open(struct notify *notify, const struct notify_variables *variables);

/* Sends a text; the results of datagram_send. */
int notify_send(struct notify *notify, const char *text);

/* Idempotent. */
void notify_close(struct notify *notify);

#endif
