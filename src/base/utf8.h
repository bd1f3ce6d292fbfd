/* Characters of UTF-8 (RFC 3629). */
#ifndef STDIO_BUS_BASE_UTF8_H
#define STDIO_BUS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The bytes of the character that the text, which is not empty, begins with, and its code. 0: it
 * begins with none; then the code is undefined. */
size_t utf8_read(struct slice text, uint32_t *code);

#define UTF8_MAX 4

/* Writes the bytes of a code below 0x110000, a surrogate's too; returns how many. */
size_t utf8_write(char to[UTF8_MAX], uint32_t code);

/* --- UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. --- */

/* The bytes that must follow a lead byte: `left` of them, the first from `low` to `high`, the
 * others from 0x80 to 0xBF. */
struct utf8_rest {
    unsigned char left, low, high;
};

/* `left` is 0 if `lead`, which is 0x80 or above, starts no sequence. */
static inline struct utf8_rest utf8_rest_of(unsigned char lead)
{
    struct utf8_rest rest = {0, 0x80, 0xBF};

    if (lead < 0xC2 || lead > 0xF4)
        return rest;
    rest.left = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (lead == 0xE0)
        rest.low = 0xA0;
    else if (lead == 0xED)
        rest.high = 0x9F;
    else if (lead == 0xF0)
        rest.low = 0x90;
    else if (lead == 0xF4)
        rest.high = 0x8F;
    return rest;
}

static inline bool utf8_is_continuation(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* The length of the valid sequence at the non-ASCII byte *p, two to four bytes; 0 if there is none
 * that is complete before `end`. */
static inline size_t utf8_sequence(const unsigned char *p, const unsigned char *end)
{
    struct utf8_rest rest = utf8_rest_of(*p);

    if (rest.left == 0 || end - p <= rest.left || p[1] < rest.low || p[1] > rest.high)
        return 0;
    for (size_t i = 2; i <= rest.left; i++) {
        if (!utf8_is_continuation(p[i]))
            return 0;
    }
    return (size_t)rest.left + 1;
}

/* The first byte from p on that is ASCII or belongs to no valid sequence before `end`, or `end`.
 * Branches distinguish the usual lengths, two and three bytes: with a computed length, each
 * sequence would wait for the one before. */
static inline const unsigned char *utf8_skip(const unsigned char *p, const unsigned char *end)
{
    size_t len;

    for (;;) {
        while (end - p >= 2 && *p >= 0xC2 && *p <= 0xDF && utf8_is_continuation(p[1]))
            p += 2;
        while (end - p >= 3 && *p >= 0xE1 && *p <= 0xEC && utf8_is_continuation(p[1]) &&
               utf8_is_continuation(p[2]))
            p += 3;
        if (p == end || *p < 0x80)
            return p;
        len = utf8_sequence(p, end);
        if (len == 0)
            return p;
        p += len;
    }
}

#endif
