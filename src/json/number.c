#include "build_config.h"

#include "json/number.h"

#include <string.h>

/* Above every exponent that is read exactly. Sums with the length of a text fit in 64 bits. */
#define HUGE_EXPONENT INT64_C(1000000000000000000)

/* The exponent after the letter e, between -HUGE_EXPONENT and HUGE_EXPONENT. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = *p == '-';
    int64_t value = 0;

    for (p += !is_digit(*p); p < end; p++)
        value = value < HUGE_EXPONENT / 10 ? value * 10 + (*p - '0') : HUGE_EXPONENT;
    return negative ? -value : value;
}

static bool is_zero_or_point(char c)
{
    return c == '0' || c == '.';
}

void decimal_read(struct decimal *decimal, struct slice number)
{
    const char *first = number.data, *end = first + number.len, *last = first, *point;

    *decimal = (struct decimal){.negative = *first == '-'};
    while (last < end && *last != 'e' && *last != 'E')
        last++;
    if (last < end)
        decimal->exponent = read_exponent(last + 1, end);
    point = memchr(first, '.', (size_t)(last - first));
    if (point == NULL)
        point = last;
    for (first += decimal->negative; first < last && is_zero_or_point(*first); first++)
        ;
    while (last > first && is_zero_or_point(last[-1]))
        last--;
    decimal->digits = slice_of(first, (size_t)(last - first));
    decimal->exponent += last <= point ? point - last : point - last + 1;
}

size_t decimal_digits(const struct decimal *decimal, char *to)
{
    size_t len = 0;

    for (size_t i = 0; i < decimal->digits.len; i++) {
        if (decimal->digits.data[i] != '.')
            to[len++] = decimal->digits.data[i];
    }
    return len;
}

static int64_t append_digit(int64_t magnitude, int digit)
{
    return magnitude > (INT64_MAX - digit) / 10 ? INT64_MAX : magnitude * 10 + digit;
}

bool decimal_integer(const struct decimal *decimal, int64_t *integer)
{
    int64_t magnitude = 0;

    if (decimal->digits.len > 0 && decimal->exponent < 0)
        return false;
    for (size_t i = 0; i < decimal->digits.len; i++) {
        if (decimal->digits.data[i] != '.')
            magnitude = append_digit(magnitude, decimal->digits.data[i] - '0');
    }
    for (int64_t zeros = decimal->exponent; zeros > 0 && magnitude > 0 && magnitude < INT64_MAX;
         zeros--)
        magnitude = append_digit(magnitude, 0);
    *integer = decimal->negative ? -magnitude : magnitude;
    return true;
}
