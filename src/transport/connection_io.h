/* The moving parts of a connection, between connection.c and connection_io.c alone. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_IO_H
#define STDIO_BUS_TRANSPORT_CONNECTION_IO_H

#include "transport/connection.h"

/* How long a peer that was told "no more" may take to close. */
#define CONNECTION_LINGER_MS 1000

/* Event callbacks: of fd_in, of fd_out, of a socket that is both. */
void connection_readable(void *user_data, unsigned events);
void connection_writable(void *user_data, unsigned events);
void connection_ready(void *user_data, unsigned events);

/* Writes as much of the queue as the descriptor takes now. */
void connection_flush(struct connection *connection);

/* Registers or withdraws interest in input. */
void connection_set_reading(struct connection *connection, bool reading);

/* Begins to skip the line that the input starts with. False: only when more of it is here. */
bool connection_skip_line(struct connection *connection, const char *problem);

/* What was skipped went to here: when that is the line's end, messages may follow. */
void connection_skipped_to(struct connection *connection, const char *end);

/* Frees the input buffer. */
void connection_drop_input(struct connection *connection);

/* The output queue is full: starts its time. */
void connection_start_backpressure(struct connection *connection);

/* Starts the timer that ends in failed(CONNECTION_STALLED), or, once shut, LINGERED. */
void connection_start_stall(struct connection *connection, int64_t delay_ms);

/* --- connection_frames.c: what NDJSON does without --- */

/* The framing wants more, or has refused a frame. True: there may be another one in the input. */
bool connection_look_at_frame(struct connection *connection, enum frame_status status);

/* That time is over: a timer's function. */
void connection_frame_time_over(void *user_data);

/* The input has ended: nothing is waited for any more, and a frame that is cut is refused. Returns
 * how many bytes are dropped without a word. */
size_t connection_end_frames(struct connection *connection, size_t cut);

#endif
