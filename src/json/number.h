/* Numbers of JSON, read as decimals: exact, however long. */
#ifndef STDIO_BUS_JSON_NUMBER_H
#define STDIO_BUS_JSON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The value is the number in `digits` times ten to the power of `exponent`. */
struct decimal {
    struct slice digits; /* points into the text. No zero at either end; the decimal point may be
                          * between them. Empty: the value is 0 */
    int64_t exponent;    /* not exact if the text has more than 18 digits of it */
    bool negative;
};

static inline bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Reads a valid number of JSON. */
void decimal_read(struct decimal *decimal, struct slice number);

/* Writes the digits without the decimal point; `to` has room for digits.len bytes. Returns how many
 * they are. */
size_t decimal_digits(const struct decimal *decimal, char *to);

/* The value as an integer: 12, 12.0 and 1.2e1 are the same. Returns false if it is not integral; a
 * value beyond INT64_MAX or -INT64_MAX becomes that limit. */
bool decimal_integer(const struct decimal *decimal, int64_t *integer);

#endif
