/* The front of a daemon: one client on stdin and stdout, whose server is the peer of a connection.
 * It is a bus with one worker, which is dialled: a connection that breaks is a worker that has
 * exited. What was in flight gets errors, what the client writes meanwhile waits, and the next
 * connection gets the handshake of the client. */
#ifndef STDIO_BUS_SHARE_FRONT_H
#define STDIO_BUS_SHARE_FRONT_H

#include "supervisor/bus.h"

struct front {
    const struct dialer *dialer;
    struct log *log;
    const struct framing *framing; /* of the client; NULL: NDJSON */
    enum pool_protocol protocol;
};

/* The protocol of this name; NULL: none. */
enum pool_protocol front_protocol(const char *name);

/* Serves stdin and stdout until the client has finished. */
enum bus_outcome front_run(const struct front *front);

/* There is no server. Answers the first request on stdin, unless that is a terminal, with an error.
 * Framing NULL: NDJSON. */
void front_refuse(const char *reason, const struct framing *framing);

#endif
