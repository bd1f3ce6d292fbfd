/* The gate: makes clients of the connections of a listener that are admitted (spec 4.1). The
 * first line of a connection may name its pool (framing/opening.h) and, where there is a token, the
 * first line of a TCP connection has to show it. Where there is a greeter, it reads the first line
 * of a connection to the Unix socket. */
#ifndef STDIO_BUS_BUS_GATE_H
#define STDIO_BUS_BUS_GATE_H

#include "transport/listener.h"

#define GATE_SECONDS 10 /* for the first line */
#define GATE_MAX 64     /* connections that have not sent it; the oldest makes way */

/* listener_fn; user_data is a struct bus_listener. */
void gate_accepted(void *user_data, int fd, const struct origin *origin);

#endif
