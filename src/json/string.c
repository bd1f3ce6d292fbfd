#include "build_config.h"

#include "json/string.h"

#include <stdio.h>

#include "base/utf8.h"

/* The characters with a letter of their own after the backslash, and these letters. */
static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

void json_output_add(struct json_output *out, struct slice json)
{
    if (out->full || out->size - out->len < json.len) {
        out->full = true;
        return;
    }
    memcpy(out->to + out->len, json.data, json.len);
    out->len += json.len;
}

static void put(struct json_output *out, const char *bytes, size_t len)
{
    json_output_add(out, slice_of(bytes, len));
}

/* --- decoding --- */

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

unsigned json_string_unit(const char *p)
{
    return hex_value(p[0]) << 12 | hex_value(p[1]) << 8 | hex_value(p[2]) << 4 | hex_value(p[3]);
}

static void put_code(struct json_output *out, unsigned code)
{
    char bytes[UTF8_MAX];

    put(out, bytes, utf8_write(bytes, code));
}

/* Decodes the \u escape at p, and the next one if both are a pair. Returns the end of them. */
static const char *decode_unit(struct json_output *out, const char *p, const char *end)
{
    unsigned code = json_string_unit(p + 2), low;

    p += 6;
    if (is_high_surrogate(code) && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        low = json_string_unit(p + 2);
        if (is_low_surrogate(low)) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
    }
    put_code(out, code);
    return p;
}

/* The same for an escape of one letter. */
static const char *decode_letter(struct json_output *out, const char *p)
{
    const char *letter = strchr(letters, p[1]);

    put(out, letter != NULL ? &escaped[letter - letters] : &p[1], 1);
    return p + 2;
}

size_t json_string_decode(char *to, size_t size, struct slice raw)
{
    struct json_output out = {.to = to, .size = size};
    const char *p = raw.data, *end, *backslash;

    if (raw.len == 0)
        return 0;
    end = p + raw.len;
    while (!out.full && (backslash = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        put(&out, p, (size_t)(backslash - p));
        p = backslash[1] == 'u' ? decode_unit(&out, backslash, end)
                                : decode_letter(&out, backslash);
    }
    put(&out, p, (size_t)(end - p));
    return out.full ? size + 1 : out.len;
}

/* --- encoding --- */

static void put_unit(struct json_output *out, unsigned unit)
{
    char escape[8];

    snprintf(escape, sizeof escape, "\\u%04x", unit & 0xFFFF);
    put(out, escape, 6);
}

static void put_ascii(struct json_output *out, char c)
{
    const char *found = c == '\0' ? NULL : strchr(escaped, c);

    if (found != NULL) {
        put(out, "\\", 1);
        put(out, &letters[found - escaped], 1);
    } else if ((unsigned char)c < 0x20) {
        put_unit(out, (unsigned char)c);
    } else {
        put(out, &c, 1);
    }
}

/* The surrogate whose three bytes are at p, or 0. */
static unsigned surrogate_at(const unsigned char *p, const unsigned char *end)
{
    if (end - p < 3 || p[0] != 0xED || p[1] < 0xA0 || p[1] > 0xBF || !utf8_is_continuation(p[2]))
        return 0;
    return 0xD000u | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
}

/* Encodes the character at p and returns its length. */
static size_t put_character(struct json_output *out, const unsigned char *p,
                            const unsigned char *end)
{
    size_t len = 1;

    if (*p < 0x80) {
        put_ascii(out, (char)*p);
    } else if ((len = utf8_sequence(p, end)) > 0) {
        put(out, (const char *)p, len);
    } else {
        unsigned surrogate = surrogate_at(p, end);
        put_unit(out, surrogate != 0 ? surrogate : 0xFFFD);
        len = surrogate != 0 ? 3 : 1;
    }
    return len;
}

void json_output_string(struct json_output *out, struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.data;

    put(out, "\"", 1);
    for (size_t i = 0; i < text.len && !out->full;)
        i += put_character(out, p + i, p + text.len);
    put(out, "\"", 1);
}
