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

/* Frees the input buffer. */
void connection_drop_input(struct connection *connection);

/* Starts the timer that ends in failed(CONNECTION_STALLED), or, once shut, LINGERED. */
void connection_start_stall(struct connection *connection, int64_t delay_ms);

#endif
