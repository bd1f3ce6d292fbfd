#include "build_config.h"

#include "format/json_string.h"

#include <stdbool.h>
#include <stdio.h>

#include "format/utf8.h"

struct output {
    char *to;
    size_t size, len;
    bool full;
};

static void put(struct output *out, const char *bytes, size_t len)
{
    if (out->full || out->size - out->len < len) {
        out->full = true;
        return;
    }
    memcpy(out->to + out->len, bytes, len);
    out->len += len;
}

static size_t finish(const struct output *out)
{
    return out->full ? out->size + 1 : out->len;
}

static unsigned hex_value(char c)
{
    if (c <= '9')
        return (unsigned)(c - '0');
    return (unsigned)((c | 0x20) - 'a') + 10;
}

/* The four digits at p. */
static unsigned hex_unit(const char *p)
{
    return hex_value(p[0]) << 12 | hex_value(p[1]) << 8 | hex_value(p[2]) << 4 | hex_value(p[3]);
}

static bool is_high_surrogate(unsigned unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(unsigned unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

static void put_code(struct output *out, unsigned code)
{
    char bytes[4];
    size_t len;

    if (code < 0x80) {
        bytes[0] = (char)code;
        len = 1;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xC0 | code >> 6);
        len = 2;
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xE0 | code >> 12);
        len = 3;
    } else {
        bytes[0] = (char)(0xF0 | code >> 18);
        len = 4;
    }
    for (size_t i = len; i > 1; i--) {
        bytes[i - 1] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    put(out, bytes, len);
}

/* Decodes the \u escape at p, and the one behind it where both are a pair; returns what follows. */
static const char *decode_unit(struct output *out, const char *p, const char *end)
{
    unsigned code = hex_unit(p + 2), low;

    p += 6;
    if (is_high_surrogate(code) && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        low = hex_unit(p + 2);
        if (is_low_surrogate(low)) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
    }
    put_code(out, code);
    return p;
}

static char short_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

size_t json_string_decode(char *to, size_t size, struct slice raw)
{
    struct output out = {to, size, 0, false};
    const char *p = raw.data, *end;

    if (raw.len == 0)
        return 0;
    end = p + raw.len;
    while (p < end && !out.full) {
        const char *backslash = memchr(p, '\\', (size_t)(end - p));
        if (backslash == NULL)
            backslash = end;
        put(&out, p, (size_t)(backslash - p));
        p = backslash;
        if (p == end)
            break;
        if (p[1] == 'u') {
            p = decode_unit(&out, p, end);
        } else {
            char c = short_escape(p[1]);
            put(&out, &c, 1);
            p += 2;
        }
    }
    return finish(&out);
}

static void put_unit(struct output *out, unsigned unit)
{
    char escape[8];

    snprintf(escape, sizeof escape, "\\u%04x", unit & 0xFFFF);
    put(out, escape, 6);
}

static void put_ascii(struct output *out, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c == '\0' ? NULL : strchr(plain, c);
    char escape[2] = {'\\', '\0'};

    if (found != NULL) {
        escape[1] = letters[found - plain];
        put(out, escape, 2);
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

size_t json_string_encode(char *to, size_t size, struct slice text)
{
    struct output out = {to, size, 0, false};
    const unsigned char *p = (const unsigned char *)text.data, *end;

    if (text.len == 0)
        return 0;
    end = p + text.len;
    while (p < end && !out.full) {
        size_t len = 1;
        if (*p < 0x80) {
            put_ascii(&out, (char)*p);
        } else if ((len = utf8_sequence(p, end)) > 0) {
            put(&out, (const char *)p, len);
        } else if (surrogate_at(p, end) != 0) {
            put_unit(&out, surrogate_at(p, end));
            len = 3;
        } else {
            put_unit(&out, 0xFFFD);
            len = 1;
        }
        p += len;
    }
    return finish(&out);
}
