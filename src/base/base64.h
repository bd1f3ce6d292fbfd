/* Base64 (RFC 4648, section 4), with padding. */
#ifndef STDIO_BUS_BASE_BASE64_H
#define STDIO_BUS_BASE_BASE64_H

#include <stdbool.h>

#include "base/slice.h"

#define BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)

/* Writes BASE64_LEN(bytes.len) characters. */
void base64_encode(char *to, struct slice bytes);

/* Decodes into `to`, which has room for text.len / 4 * 3 bytes. False: malformed; padding is
 * demanded, and so are zeros in the bits that are left over. */
bool base64_decode(char *to, struct slice text, size_t *len);

#endif
