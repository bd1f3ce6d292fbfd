#include "build_config.h"

#include "base/utf8.h"

/* The length that the first byte of a UTF-8 character announces; 0: it is none. */
static size_t announced_bytes(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t utf8_read(struct slice text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text.data;
    size_t len = announced_bytes(byte[0]);

    *code = byte[0];
    if (len <= 1)
        return len;
    if (len > text.len)
        return 0;
    *code &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (byte[i] & 0x3fu);
    }
    return *code >= least[len] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff) ? len : 0;
}

size_t utf8_write(char to[UTF8_MAX], uint32_t code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = len - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    to[0] = (char)(leads[len] | code);
    return len;
}
