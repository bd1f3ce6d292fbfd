/* The options of a TCP connection that a client has opened. */
#ifndef STDIO_BUS_TRANSPORT_TCP_H
#define STDIO_BUS_TRANSPORT_TCP_H

/* An answer need not wait for the acknowledgement of the one before, and a peer whose machine is
 * gone is noticed. Failing, all of these are a little slower, and not worth refusing a connection
 * for. */
void tcp_set(int fd);

/* The peer has closed its sending side: if it is gone, that is noticed sooner. */
void tcp_set_half_closed(int fd);

#endif
