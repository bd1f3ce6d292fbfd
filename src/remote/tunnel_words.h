/* What the program of a tunnel writes to its stderr, in words for the user. Of openssl s_client the
 * lines are known. No I/O. */
#ifndef STDIO_BUS_REMOTE_TUNNEL_WORDS_H
#define STDIO_BUS_REMOTE_TUNNEL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The handshake is over, and the certificate was verified. */
bool tunnel_words_ready(const char *said);

/* The server cannot be connected to; it may be there later. */
bool tunnel_words_absent(const char *said);

/* Writes the reason of the failure in one line without control characters. False: the text has
 * none. */
bool tunnel_words_reason(const char *said, char *to, size_t size);

#endif
