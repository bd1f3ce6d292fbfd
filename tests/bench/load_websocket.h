/* The client's side of WebSocket (RFC 6455), as far as load needs it: a message is a text frame. */
#ifndef TESTS_BENCH_LOAD_WEBSOCKET_H
#define TESTS_BENCH_LOAD_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Asks for the upgrade of a connection at /mcp, and waits for the answer. The descriptor blocks. */
bool websocket_upgrade(int fd);

/* The head of a masked text frame, of at most 14 bytes, for a message of that length. Returns its
 * length. */
size_t websocket_put_head(char *to, size_t len);

/* Masks the message after that head. */
void websocket_mask(char *message, size_t len);

/* The message after the head of an unmasked text frame, which is complete in the input; *len: its
 * length. NULL: it is something else. */
const char *websocket_read_head(const char *at, size_t *len);

#endif
