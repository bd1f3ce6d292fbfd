/* The client side of stdio_bus(1), --connect: a program that speaks on stdin and stdout, joined to
 * the socket of a running daemon, byte for byte. */
#ifndef STDIO_BUS_CONNECT_H
#define STDIO_BUS_CONNECT_H

#include <stddef.h>

#include "options.h"

/* Exit statuses beside those of options.h. */
enum {
    EXIT_CANNOT_CONNECT = 69,
    EXIT_STDOUT_CLOSED = 74,
    EXIT_DAEMON_LEFT = 75, /* it ended the connection before our input was at its end */
    EXIT_CONNECTION_LOST = 76
};

/* Connects to the socket that the options name. Returns a non-blocking descriptor; or -1, and then
 * `reason` is a line that says why. */
int connect_open(const struct options *options, char *reason, size_t reason_size);

/* Copies `in` to the socket and the socket to `out`, with bounded memory, until the daemon's last
 * byte was written or `out` takes no more. The end of `in` is passed on as the end of our sending
 * side. `in` and `out` may be of any kind; their flags stay as they are. SIGPIPE must be ignored.
 * Returns the exit status; if it is not EXIT_DONE, `reason` is a line that says why. */
int connect_copy(int socket, int in, int out, char *reason, size_t reason_size);

#endif
