/* Messages to a service manager, in the protocol of sd_notify(3): datagrams of lines NAME=VALUE to
 * the socket that the environment names. */
#ifndef STDIO_BUS_BASE_NOTIFY_H
#define STDIO_BUS_BASE_NOTIFY_H

#include <stdint.h>

#include "base/datagram.h"

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
