/* stdio_bus_rmp decode: frames from a descriptor, in binary or hexadecimal. */
#ifndef STDIO_BUS_CLI_RMP_DECODE_H
#define STDIO_BUS_CLI_RMP_DECODE_H

#include <stdbool.h>
#include <stddef.h>

/* Turns text of hexadecimal digits and white space, each line perhaps with an offset and a colon
 * before it, into bytes, in place. Returns their number, or 0: it is no such text, and is as it
 * was. */
size_t rmp_decode_hex(char *text, size_t len);

/* Prints each frame. Returns the exit status: EXIT_DATA_ERROR after a frame that is malformed. */
int rmp_decode(int fd, bool json);

#endif
