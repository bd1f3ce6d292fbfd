/* The ids that requests get in pools that rewrite them: 2, 4, 6 and so on. The odd numbers between
 * are for second progress tokens. */
#ifndef STDIO_BUS_ROUTER_NUMBER_H
#define STDIO_BUS_ROUTER_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_LAST 2147483646u /* what any peer can read as an integer */
#define NUMBER_DIGITS 10

/* A zeroed one has not begun. */
struct number {
    uint32_t value;
    bool again; /* they have all been used once */
    uint8_t len;
    char digits[NUMBER_DIGITS]; /* the value's; counting them up is faster than making them anew */
};

/* Goes on to the next number. */
static inline void number_next(struct number *number)
{
    unsigned at;

    if (number->value == NUMBER_LAST || number->len == 0) {
        number->again = number->len > 0;
        number->value = 2;
        number->len = 1;
        number->digits[0] = '2';
        return;
    }
    number->value += 2;
    at = number->len - 1u;
    number->digits[at] = (char)(number->digits[at] + 2);
    while (number->digits[at] > '9') {
        number->digits[at] = '0'; /* an even digit over 9 is 10 */
        if (at == 0) {
            for (at = number->len++; at > 0; at--)
                number->digits[at] = '0';
            number->digits[0] = '1';
            return;
        }
        number->digits[--at]++;
    }
}

#endif
