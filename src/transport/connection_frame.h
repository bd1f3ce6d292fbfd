/* The current frame of a connection that is not offered as it is: malformed, late, or too long. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_FRAME_H
#define STDIO_BUS_TRANSPORT_CONNECTION_FRAME_H

#include "transport/connection_state.h"

#define CONNECTION_TOO_LONG "message exceeds max_input_buffer"

/* Frees the input buffer. */
void connection_drop_input(struct connection *connection);

/* Exchanges a long buffer that has few bytes for one of a read's size. */
void connection_shorten_input(struct connection *connection);

/* Reports the frame as malformed or, where bad lines are skipped, as skipped. True: a later frame
 * may be good. */
bool connection_malformed(struct connection *connection, enum frame_fault fault,
                          const char *problem);

/* Keeps only what the check needs of the frame, which continues. */
void connection_cut_frame(struct connection *connection);

/* The line has `len` bytes, max_body or more, or was cut before, and continues. True: a later frame
 * may be good. */
bool connection_line_goes_on(struct connection *connection, size_t len);

/* The frame is whole, and longer than max_body. False: it is malformed. */
bool connection_take_long(const struct connection *connection, size_t len);

/* timer_fn of frame_time: gives the frame up. */
void connection_frame_time_over(void *user_data);

#endif
