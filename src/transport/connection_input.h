/* The input of a connection: reads, finds the frames, pauses. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_INPUT_H
#define STDIO_BUS_TRANSPORT_CONNECTION_INPUT_H

#include "transport/connection_state.h"

/* The current frame of a connection that is not offered as it is: malformed, late, or too long. */

#define CONNECTION_TOO_LONG "message exceeds max_input_buffer"

/* Frees the input buffer. */
void connection_drop_input(struct connection *connection);

/* Reports the frame as malformed or, where bad lines are skipped, as skipped. True: a later frame
 * may be good. */

/* Keeps only what the check needs of the frame, which continues. */

/* The line has `len` bytes, max_body or more, or was cut before, and continues. True: a later frame
 * may be good. */

/* The frame is whole, and longer than max_body. False: it is malformed. */

/* timer_fn of frame_time: gives the frame up. */
void connection_frame_time_over(void *user_data);

/* Event callback of fd_in, where fd_out is another descriptor. */
void connection_readable(void *user_data, unsigned events);

/* Event callback of a socket that is both descriptors. */
void connection_ready(void *user_data, unsigned events);

/* Reads the connections whose turn it is (reading.h). To be called at the end of each round of the
 * event loop, and again soon while transport->reading has any. */
void connection_read_turns(struct transport *transport);

/* The owner takes nothing for now. Called from frame, the current frame is not taken: it is offered
 * again after connection_resume. Does nothing where the input has ended or is thrown away. */
void connection_pause(struct connection *connection);

/* Until connection_resume a hang-up of the peer fails the paused connection at once, and what was
 * not taken of its input is lost. Without this it is noticed when the input was read. */
void connection_watch_hangup(struct connection *connection);

/* Whether the peer of a paused socket has closed its sending side, as far as that can be seen: not
 * after bytes that were not read. */
bool connection_input_is_over(const struct connection *connection);

/* Continues after a pause, at once. */
void connection_resume(struct connection *connection);

/* Throws all further input away, unread. */
void connection_stop_input(struct connection *connection);

#endif
