#include "build_config.h"

#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define ESCAPE 0x1b
#define CHARACTER_MAX 4 /* bytes, in UTF-8 */

static size_t read_character(const char *text, uint32_t *code)
{
    return utf8_read(slice_of(text, strnlen(text, CHARACTER_MAX)), code);
}

size_t printable_character_bytes(const char *text)
{
    uint32_t code;

    return read_character(text, &code);
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

/* Whether the character is a C1 control, or changes the direction of the text around it. */
static bool is_hidden(uint32_t code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Writes what stands for the character of `len` bytes. Returns how many bytes that are. */
static size_t write_character(char *to, const char *text, size_t len, uint32_t code)
{
    if (len == 0 || is_hidden(code)) {
        *to = '?';
        return 1;
    }
    if (code < 0x20 || code == 0x7f) {
        *to = ' ';
        return 1;
    }
    memmove(to, text, len);
    return len;
}

size_t printable_clean(char *text)
{
    const char *from = text;
    char *to = text;
    uint32_t code;
    size_t len;

    while (*from != '\0') {
        len = sequence_bytes(from);
        if (len == 0) {
            len = read_character(from, &code);
            to += write_character(to, from, len, code);
        }
        from += len > 0 ? len : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
