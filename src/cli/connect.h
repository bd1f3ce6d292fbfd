/* stdio_bus --connect: copies stdin and stdout to and from the socket of a running daemon, byte for
 * byte. */
#ifndef STDIO_BUS_CLI_CONNECT_H
#define STDIO_BUS_CLI_CONNECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "cli/options.h"
#include "framing/first_frame.h"

#define CONNECT_HEAD_MAX 65536

/* Further exit statuses; the others are in options.h. */
enum {
    EXIT_CANNOT_CONNECT = 69,
    EXIT_STDOUT_CLOSED = 74,
    EXIT_DAEMON_LEFT = 75, /* the daemon ended the connection before stdin was at its end */
    EXIT_CONNECTION_LOST = 76
};

/* Writes the opening line (framing/first_frame.h) that the options ask for; *len is 0 if they ask
 * for none. Returns false with a line of explanation in `reason`: the token file cannot be used. */
bool connect_write_opening(const struct options *options, char line[OPENING_MAX], size_t *len,
                           char *reason, size_t reason_size);

/* Connects to the socket that the options name, and waits for a daemon as long as they say. Returns
 * a non-blocking descriptor, or -1 with a line of explanation in `reason`. */
int connect_open(const struct options *options, char *reason, size_t reason_size);

/* Copies first `head`, of at most CONNECT_HEAD_MAX bytes, and then `in` to the socket, and the
 * socket to `out`, with bounded memory, until the daemon's last
 * byte is written or `out` takes no more. The end of `in` shuts down the socket's sending side.
 * `in` and `out` may be of any kind; their flags are not changed. SIGPIPE must be ignored. Returns
 * the exit status; unless it is EXIT_DONE, with a line of explanation in `reason`. */
int connect_copy(int socket, int in, int out, struct slice head, char *reason, size_t reason_size);

/* --- stdio_bus --connect --protocol: a client that joins a daemon again after its restart. --- */

/* Serves stdin and stdout until their client has finished. Returns the exit status, after the
 * reason was written to stderr. */
int rejoin_run(const struct options *options);

#endif
