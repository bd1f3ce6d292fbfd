#include "build_config.h"

#include "base/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(char *to, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t count = bytes.len - i;
        uint32_t group = 0;

        if (count > 3)
            count = 3;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? (unsigned char)bytes.data[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *to++ = (char)(k <= count ? digits[group >> (18 - 6 * k) & 63] : '=');
    }
}

bool base64_decode(char *to, struct slice text, size_t *len)
{
    size_t padding = 0, count = 0;

    if (text.len % 4 != 0)
        return false;
    while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.len; i += 4) {
        size_t missing = i + 4 == text.len ? padding : 0;
        uint32_t group = 0;

        for (size_t k = 0; k < 4 - missing; k++) {
            const char *digit = memchr(digits, text.data[i + k], sizeof digits - 1);

            if (digit == NULL)
                return false;
            group |= (uint32_t)(digit - digits) << (18 - 6 * k);
        }
        if ((missing == 1 && (group & 0xFF) != 0) || (missing == 2 && (group & 0xFFFF) != 0))
            return false;
        for (size_t k = 0; k < 3 - missing; k++)
            to[count++] = (char)(group >> (16 - 8 * k) & 0xFF);
    }
    *len = count;
    return true;
}
