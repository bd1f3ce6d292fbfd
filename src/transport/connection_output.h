/* The output of a connection: its queue, how full that is (spec 7.3.1), and the writing of it. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_OUTPUT_H
#define STDIO_BUS_TRANSPORT_CONNECTION_OUTPUT_H

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

#endif
