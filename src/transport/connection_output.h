/* The output of a connection: its queue, how full that is (spec 7.3.1), and the writing of it. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_OUTPUT_H
#define STDIO_BUS_TRANSPORT_CONNECTION_OUTPUT_H

#include "base/slice.h"
#include "transport/connection_state.h"

/* How long a peer may take to close after the end of output. */
#define CONNECTION_LINGER_MS 1000

/* Event callback of fd_out. */
void connection_writable(void *user_data, unsigned events);

/* Closes the output descriptor alone (which is not the input's), so that the peer sees its end: at
 * once, or once the queue is written. */
void connection_close_output(struct connection *connection);
void connection_end_output(struct connection *connection);

/* Starts the time of a full queue over, as if it had become full just now. */
void connection_renew_stall(struct connection *connection);

/* Starts the stall timer for backpressure_timeout_sec. */
void connection_start_stall(struct connection *connection);

/* timer_fn of the stall timer. */
void connection_stalled(void *user_data);

/* Writes as much of the queue as the descriptor takes now. */
void connection_flush(struct connection *connection);

/* Writes what it takes. Whether bytes wait for it and it has taken none since the last call. */
bool connection_took_nothing(struct connection *connection);

/* Writes what was queued in this round, each connection once. */
void connection_flush_all(struct transport *transport);

/* --- What a connection sends: lines, bodies in its framing, or bytes that its owner frames. --- */

/* Queue a line, its newline included, a line of which edits replace parts (at least one edit), or a
 * body, in the framing of `to`; the queue is written at the end of the round. In a body that
 * becomes a line, spaces take the place of newlines, which JSON has between its tokens only.
 * `from`: the connection whose current frame the bytes are. A large frame moves with its buffer,
 * and its bytes are dead after STDIO_BUS_OK. NULL: the bytes are copied. Where the output is closed
 * or shut, the bytes are lost, as if on the way. STDIO_BUS_ERR if out of memory, and then nothing
 * was queued. */
int connection_send_line(struct connection *to, struct connection *from, struct slice line);
int connection_send_edited(struct connection *to, struct connection *from, struct slice line,
                           const struct splice_edit *edits, unsigned count);
int connection_send_body(struct connection *to, struct connection *from, struct slice body,
                         const struct splice_edit *edits, unsigned count);

/* What surrounds a body whose owner frames it. The bytes are copied. */
struct connection_parts {
    struct slice before, after;
    bool one_line; /* spaces take the place of newlines in the body */
};

/* The same for a body between other bytes, in no framing: all of it is queued, or nothing. `body`
 * may be less than the current frame, but begins where that does: a line without its newline. */
int connection_send_parts(struct connection *to, struct connection *from,
                          const struct connection_parts *parts, struct slice body,
                          const struct splice_edit *edits, unsigned count);

/* The same for bytes as they are, in no framing. */
int connection_send_bytes(struct connection *to, struct slice bytes);

#endif
