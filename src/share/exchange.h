/* A line for a shared daemon, and the line that it answers. */
#ifndef STDIO_BUS_SHARE_EXCHANGE_H
#define STDIO_BUS_SHARE_EXCHANGE_H

#include <stddef.h>

/* Connects to a socket of the working directory, and sends a line. Returns a blocking socket, or -1
 * with errno set. */
int exchange_connect(const char *file, const char *parts[], size_t count);

/* Reads the line that the daemon answers, without its newline. To be freed. NULL with errno set:
 * the connection has ended, or nothing more has come for `timeout_ms`. */
char *exchange_read_reply(int fd, int timeout_ms);

/* All of this for one line: the reply, to be freed, or NULL with errno set. */
char *exchange_ask(const char *file, const char *line, int timeout_ms);

#endif
