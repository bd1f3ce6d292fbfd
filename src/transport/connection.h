/* A connection: opening and closing. Its input and its output have a header each. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_H
#define STDIO_BUS_TRANSPORT_CONNECTION_H

#include "transport/connection_input.h"
#include "transport/connection_output.h"

struct connection_options {
    const struct connection_handler *handler;
    const struct framing *framing;  /* of both directions; NULL: NDJSON */
    const struct body_check *check; /* of the input's bodies, with its state */
    void *check_state;
    const char *context; /* for the log: "client=3"; borrowed */
    int fd_in, fd_out;
    bool borrowed; /* the descriptors stay the caller's */
    bool skips_bad_lines;
};

/* Opens a connection that is closed over two descriptors, which become non-blocking, and starts
 * reading. The descriptors belong to the connection then. Of borrowed ones, the connection opens
 * descriptors of its own where that is possible; otherwise it restores their flags in the end.
 * STDIO_BUS_ERR with errno set, and then the descriptors are the caller's still. */
int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_options *options);

/* Closes both descriptors, forgets what is queued or unread. Idempotent. */
void connection_close(struct connection *connection);

/* Orderly end: from now on the input is thrown away. The queue is written, then the sending side is
 * shut down, and the peer has a moment to close, so that it can read the last bytes. Ends in
 * failed(CONNECTION_LINGERED), or another failure. */
void connection_linger(struct connection *connection);

#endif
