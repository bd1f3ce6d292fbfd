/* Bytes of the system's random source. */
#ifndef STDIO_BUS_BASE_RANDOM_H
#define STDIO_BUS_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/* Fills `to` with at most 256 bytes that cannot be guessed. False: the source has failed. */
bool random_bytes(void *to, size_t len);

#endif
