/* The inside of JSON strings: escapes to UTF-8 and back. */
#ifndef STDIO_BUS_JSON_STRING_H
#define STDIO_BUS_JSON_STRING_H

#include <stdbool.h>

#include "base/slice.h"

/* 1 or 0. && and || would be branches that no processor can predict. */
static inline unsigned is_hex_digit(unsigned char c)
{
    unsigned decimal = c - (unsigned)'0', letter = (c | 0x20u) - 'a';

    return (unsigned)(decimal < 10) | (unsigned)(letter < 6);
}

/* The unit of UTF-16 whose four hexadecimal digits are at p. */
unsigned json_string_unit(const char *p);

static inline bool is_high_surrogate(unsigned unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static inline bool is_low_surrogate(unsigned unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Decodes the escapes of `raw`, the text between the quotes of a valid string, into `to`. An
 * escaped surrogate pair becomes one character of four bytes. A surrogate alone becomes the three
 * bytes that UTF-8 would have for it, so that different strings stay different. Returns the decoded
 * length, which is at most raw.len, or size + 1 when it is over `size`. */
size_t json_string_decode(char *to, size_t size, struct slice raw);

/* JSON that is written into limited room. The first part that does not fit sets `full`; nothing is
 * written after that. */
struct json_output {
    char *to;
    size_t size, len;
    bool full;
};

/* Adds JSON as it is. */
void json_output_add(struct json_output *out, struct slice json);

/* Adds `text` as a string in quotes. Surrogates are written as \uD800 to \uDFFF, bytes that are
 * not UTF-8 as \uFFFD. It takes at most 6 * text.len + 2 bytes. */
void json_output_string(struct json_output *out, struct slice text);

#endif
