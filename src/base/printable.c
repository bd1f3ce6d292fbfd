#include "build_config.h"

#include "base/printable.h"

#include <stdbool.h>
#include <string.h>

#define ESCAPE 0x1b

/* The length that the first byte of a UTF-8 character announces; 0: it is none. */
static size_t announced_bytes(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t printable_character_bytes(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t len = announced_bytes(byte[0]);

    for (size_t i = 1; i < len; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
        (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f))
        return 0;
    return len;
}

/* The bytes of the control sequence of a terminal that the text begins with: colours and the like
 * (ECMA-48, 5.4). 0: it begins with none. */
static size_t sequence_bytes(const char *text)
{
    size_t len = 2;

    if ((unsigned char)text[0] != ESCAPE || text[1] != '[')
        return 0;
    while (text[len] >= 0x20 && text[len] <= 0x3f)
        len++;
    return text[len] >= 0x40 && text[len] <= 0x7e ? len + 1 : len;
}

/* Whether the character of several bytes is a C1 control, or one that changes the direction of the
 * text around it (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069). */
static bool is_hidden(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;

    if (byte[0] == 0xc2)
        return byte[1] < 0xa0;
    if (byte[0] == 0xd8)
        return byte[1] == 0x9c;
    return byte[0] == 0xe2 && ((byte[1] == 0x80 && (byte[2] == 0x8e || byte[2] == 0x8f ||
                                                    (byte[2] >= 0xaa && byte[2] <= 0xae))) ||
                               (byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9));
}

/* Writes what stands for the character of `len` bytes. Returns how many bytes that are. */
static size_t write_character(char *to, const char *text, size_t len)
{
    if (len == 1) {
        *to = *text;
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *to = ' ';
        return 1;
    }
    if (len == 0 || is_hidden(text)) {
        *to = '?';
        return 1;
    }
    memmove(to, text, len);
    return len;
}

size_t printable_clean(char *text)
{
    const char *from = text;
    char *to = text;
    size_t len;

    while (*from != '\0') {
        len = sequence_bytes(from);
        if (len == 0) {
            len = printable_character_bytes(from);
            to += write_character(to, from, len);
        }
        from += len > 0 ? len : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
