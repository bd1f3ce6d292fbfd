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
    void *reader;        /* of a framing that has more state than framing_state */
    const char *context; /* for the log: "client=3"; borrowed */
    size_t max_body;     /* the longest frame until connection_hand_over; 0: as in the limits, */
    size_t max_long;     /* and longer ones up to this, beyond which they are cut; 0: none */
    int fd_in, fd_out;
    bool borrowed;    /* the descriptors stay the caller's */
    bool same_socket; /* they are two of one socket */
    bool skips_bad_lines;
    bool wary; /* of an unknown peer: whatever is wrong before its first whole frame is malformed,
                * and so is what only HTTP has, at any time */
    bool may_open;  /* of a wary one: an opening line may precede the first frame, in any framing */
    bool of_worker; /* the peer is a worker, otherwise a client */
};

/* Opens a connection that is closed over two descriptors, which become non-blocking, and starts
 * reading. The descriptors belong to the connection then. Of borrowed ones, the connection opens
 * descriptors of its own where that is possible; otherwise it restores their flags in the end.
 * STDIO_BUS_ERR with errno set, and then the descriptors are the caller's still. */
int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_options *options);

/* The reader of the framing that the next connection_hand_over begins with; the framing until then
 * finds nothing more. */
static inline void connection_set_reader(struct connection *connection, void *reader)
{
    connection->framing_state.reader = reader;
}

/* The input after the current frame, if any, goes to another handler, in another framing (NULL:
 * NDJSON), and begins with a first frame. What is sent from now on has that framing too. */
void connection_hand_over(struct connection *connection, const struct connection_handler *handler,
                          const struct framing *framing);

/* Closes both descriptors, forgets what is queued or unread. Idempotent. */
void connection_close(struct connection *connection);

/* Orderly end: from now on the input is thrown away. The queue is written, then the sending side is
 * shut down, and the peer has a moment to close, so that it can read the last bytes. Ends in
 * failed(CONNECTION_LINGERED), or another failure. */
void connection_linger(struct connection *connection);

/* --- in an archive --- */

struct archive;

/* Saves the connection, or loads it into one that is closed: it is open then as it was, with these
 * options but for the descriptors, which are in the archive. What the check and the reader of the
 * framing know is their owner's to carry, and so is the reservation of memory (below). */
void connection_archive(struct archive *archive, struct connection *connection,
                        struct transport *transport, const struct connection_options *options);

/* After all connections were loaded, in this order, each for all of them: reserves the memory that
 * the connection had; lets it wait for what it waited for. */
void connection_reserve_again(struct connection *connection);
void connection_wait_again(struct connection *connection);

#endif
