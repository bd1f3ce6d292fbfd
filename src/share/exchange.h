/* A line for a shared daemon, and the line that it answers. */
#ifndef STDIO_BUS_SHARE_EXCHANGE_H
#define STDIO_BUS_SHARE_EXCHANGE_H

#include <stddef.h>

/* Connects to a socket of the working directory, and sends a line. Returns a blocking socket, or -1
 * with errno set. */
int exchange_connect(const char *file, const char *parts[], size_t count);

/* Reads the line that the daemon answers, without its newline, within `timeout_ms`. To be freed.
 * NULL: the connection has ended, or the time is over, with errno set. */
char *exchange_read_reply(int fd, int timeout_ms);

#endif
