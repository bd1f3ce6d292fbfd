/* The opening line of a connection, before its first message and in any framing:
 * {"token":"...","pool":"..."}. */
#ifndef STDIO_BUS_FRAMING_OPENING_H
#define STDIO_BUS_FRAMING_OPENING_H

#include <stdbool.h>

#include "base/slice.h"

#define OPENING_MAX 8192 /* bytes, newline included */

/* What stands between the quotes, in the line, escapes as they are; data NULL: the key is left
 * out. */
struct opening {
    struct slice token, pool;
};

/* Whether the line, which may be any text, has at most OPENING_MAX bytes and is an object with one
 * of these keys or both, each once and without escapes, and no other. *opening is valid then if the
 * line is JSON. */
bool opening_read(struct opening *opening, struct slice line);

#endif
