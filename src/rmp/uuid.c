#include "build_config.h"

#include "rmp/uuid.h"

static bool is_dash_at(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

const char *rmp_uuid_write(char to[RMP_UUID_LEN + 1], struct rmp_id id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned digit = 0;

    for (size_t at = 0; at < RMP_UUID_LEN; at++) {
        uint64_t half = digit < 16 ? id.high : id.low;

        if (is_dash_at(at)) {
            to[at] = '-';
            continue;
        }
        to[at] = digits[half >> (60 - 4 * (digit % 16)) & 15];
        digit++;
    }
    to[RMP_UUID_LEN] = '\0';
    return to;
}

/* The value of a hexadecimal digit; 16: it is none. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

bool rmp_uuid_read(struct slice text, struct rmp_id *id)
{
    unsigned count = 0;

    if (text.len != RMP_UUID_LEN)
        return false;
    *id = (struct rmp_id){0, 0};
    for (size_t at = 0; at < RMP_UUID_LEN; at++) {
        unsigned digit = digit_value(text.data[at]);
        uint64_t *half = count < 16 ? &id->high : &id->low;

        if (is_dash_at(at) && text.data[at] == '-')
            continue;
        if (is_dash_at(at) || digit > 15)
            return false;
        *half = *half << 4 | digit;
        count++;
    }
    return true;
}
