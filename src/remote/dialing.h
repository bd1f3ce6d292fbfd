/* Connecting to the server, without waiting: to each of its addresses in turn. */
#ifndef STDIO_BUS_REMOTE_DIALING_H
#define STDIO_BUS_REMOTE_DIALING_H

#include "event/event_loop.h"
#include "remote/url.h"
#include "transport/address.h"

struct addrinfo;

/* A socket that is connected and non-blocking, and belongs to the receiver; or -1 with the reason,
 * which lives until the call returns. */
typedef void dialing_fn(void *user_data, int fd, const char *reason);

struct dialing {
    struct stdio_bus_event_loop *loop;
    const struct remote_url *url;
    int64_t until_ms; /* a server that is not there is tried again, until then */
    dialing_fn *fn;
    void *user_data;
    int fd;                               /* of the attempt; -1: none */
    struct addrinfo *addresses, *address; /* the next one */
    int error;                            /* of the last attempt; 0: the name has no address */
    char reason[ADDRESS_REASON_MAX];
    struct timer timer;
};

/* Starts with the first members set. Resolving the name may block. fn is called after the return,
 * once. */
void dialing_start(struct dialing *dialing);

/* Why the last attempt failed, if fn was not called yet; NULL: none did. */
const char *dialing_failure(const struct dialing *dialing);

/* Gives up; idempotent. */
void dialing_stop(struct dialing *dialing);

#endif
