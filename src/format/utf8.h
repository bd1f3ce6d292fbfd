/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef STDIO_BUS_FORMAT_UTF8_H
#define STDIO_BUS_FORMAT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* What must follow a lead byte: `left` continuation bytes, the first of them from `low` to `high`,
 * the others from 0x80 to 0xBF. */
struct utf8_rest {
    unsigned char left, low, high;
};

/* `left` is 0 when `lead`, 0x80 or above, starts no sequence. */
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

/* The length of the valid sequence of two to four bytes at the non-ASCII byte *p, which ends before
 * `end`, or 0. */
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

/* Returns the first byte from p on that is ASCII or belongs to no valid sequence before `end`, or
 * `end`. Most sequences have two or three bytes; these are told apart by branches, because adding a
 * length that was computed makes each sequence wait for the one before. */
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
