/* Characters of UTF-8 (RFC 3629). */
#ifndef STDIO_BUS_BASE_UTF8_H
#define STDIO_BUS_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The bytes of the character that the text, which is not empty, begins with, and its code. 0: it
 * begins with none; then the code is undefined. */
size_t utf8_read(struct slice text, uint32_t *code);

#define UTF8_MAX 4

/* Writes the bytes of a code below 0x110000, a surrogate's too; returns how many. */
size_t utf8_write(char to[UTF8_MAX], uint32_t code);

#endif
