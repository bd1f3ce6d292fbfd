/* stdio_bus --connect: copies stdin and stdout to and from the socket of a running daemon, byte for
 * byte. */
#ifndef STDIO_BUS_CLI_CONNECT_H
#define STDIO_BUS_CLI_CONNECT_H

#include <stddef.h>

#include "base/slice.h"
#include "cli/options.h"

#define CONNECT_HEAD_MAX 65536

/* Further exit statuses; the others are in options.h. */
enum {
    EXIT_CANNOT_CONNECT = 69,
    EXIT_STDOUT_CLOSED = 74,
    EXIT_DAEMON_LEFT = 75, /* the daemon ended the connection before stdin was at its end */
    EXIT_CONNECTION_LOST = 76
};

/* Connects to the socket that the options name. Returns a non-blocking descriptor, or -1 with a
 * line of explanation in `reason`. */
int connect_open(const struct options *options, char *reason, size_t reason_size);

/* Copies first `head`, of at most CONNECT_HEAD_MAX bytes, and then `in` to the socket, and the
 * socket to `out`, with bounded memory, until the daemon's last
 * byte is written or `out` takes no more. The end of `in` shuts down the socket's sending side.
 * `in` and `out` may be of any kind; their flags are not changed. SIGPIPE must be ignored. Returns
 * the exit status; unless it is EXIT_DONE, with a line of explanation in `reason`. */
int connect_copy(int socket, int in, int out, struct slice head, char *reason, size_t reason_size);

#endif
