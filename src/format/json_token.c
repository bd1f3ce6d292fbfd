#include "build_config.h"

#include "format/json_token.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format/utf8.h"

/* ---- errors --------------------------------------------------------------------------------- */

bool json_fail(struct json_reader *reader, struct json_position at, const char *format, ...)
{
    struct json_error *error = reader->error;
    va_list args;

    error->at = at;
    error->path[0] = '\0';
    if (reader->value != NULL)
        json_path(error->path, sizeof(error->path), reader->value);
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return false;
}

/* What people write who think of JavaScript or of another encoding, by name. */
static const char *name_of_next(const struct json_reader *reader)
{
    size_t left = (size_t)(reader->end - reader->next);

    if (left == 0)
        return "the end of the file";
    if (reader->next[0] == '\n' || reader->next[0] == '\r')
        return "the end of the line";
    if (reader->next[0] == '/')
        return "'/' (JSON has no comments)";
    if (reader->next[0] == '\'')
        return "a single quote";
    if (left >= 3 && memcmp(reader->next, "\xef\xbb\xbf", 3) == 0)
        return "a byte order mark";
    return NULL;
}

bool json_fail_expected(struct json_reader *reader, const char *expected)
{
    const char *name = name_of_next(reader);
    struct slice word = json_word(reader);
    char found[32];

    if (name != NULL)
        snprintf(found, sizeof(found), "%s", name);
    else if (word.len > 0)
        snprintf(found, sizeof(found), "'%.*s%s'", word.len > 20 ? 20 : (int)word.len, word.data,
                 word.len > 20 ? "..." : "");
    else if (*reader->next > ' ' && *reader->next < 0x7f)
        snprintf(found, sizeof(found), "'%c'", *reader->next);
    else
        snprintf(found, sizeof(found), "byte 0x%02x", (unsigned)json_peek(reader));
    return json_fail(reader, reader->at, "expected %s, found %s", expected, found);
}

/* ---- characters ----------------------------------------------------------------------------- */

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool json_accept(struct json_reader *reader, char c)
{
    if (json_peek(reader) != c)
        return false;
    json_advance(reader, 1);
    return true;
}

void json_skip_space(struct json_reader *reader)
{
    int c;

    while ((c = json_peek(reader)) == ' ' || c == '\t' || c == '\r' || c == '\n') {
        json_advance(reader, 1);
        if (c == '\n') {
            reader->at.line++;
            reader->at.column = 1;
        }
    }
}

struct slice json_word(const struct json_reader *reader)
{
    const char *p = reader->next;

    while (p < reader->end && is_word((unsigned char)*p))
        p++;
    return slice_of(reader->next, (size_t)(p - reader->next));
}

/* Bytes of the UTF-8 character that stands next; 0 when it is none. */
static size_t character_len(const struct json_reader *reader)
{
    const unsigned char *s = (const unsigned char *)reader->next;

    return *s < 0x80 ? 1 : utf8_sequence(s, (const unsigned char *)reader->end);
}

/* ---- strings -------------------------------------------------------------------------------- */

static void put_utf8(struct json_reader *reader, unsigned long code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    unsigned i;

    for (i = len - 1; i > 0; i--) {
        reader->string_end[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    reader->string_end[0] = (char)(lead[len] | code);
    reader->string_end += len;
}

static int hex_digit(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits of a \u escape. */
static bool read_hex4(struct json_reader *reader, unsigned long *code)
{
    int i;

    *code = 0;
    for (i = 0; i < 4; i++) {
        int digit = hex_digit(json_peek(reader));
        if (digit < 0)
            return json_fail_expected(reader, "four hexadecimal digits after \\u");
        *code = *code << 4 | (unsigned long)digit;
        json_advance(reader, 1);
    }
    return true;
}

/* Behind "\u"; `at` is where the backslash stands. */
static bool read_unicode_escape(struct json_reader *reader, struct json_position at)
{
    unsigned long code, low = 0;

    if (!read_hex4(reader, &code))
        return false;
    if (code >= 0xdc00 && code <= 0xdfff)
        return json_fail(reader, at, "\\u%04lx is a second half of a surrogate pair alone", code);
    if (code >= 0xd800 && code <= 0xdbff) {
        bool another = json_accept(reader, '\\') && json_accept(reader, 'u');
        if (another && !read_hex4(reader, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return json_fail(reader, at, "\\u%04lx is a first half of a surrogate pair alone",
                             code);
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(reader, code);
    return true;
}

static bool read_escape(struct json_reader *reader)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    struct json_position at = reader->at;
    const char *found;
    int c;

    json_advance(reader, 1);
    if (json_accept(reader, 'u'))
        return read_unicode_escape(reader, at);
    c = json_peek(reader);
    found = c > 0 ? strchr(letters, c) : NULL;
    if (found == NULL)
        return json_fail_expected(reader, "one of \" \\ / b f n r t u after the backslash");
    *reader->string_end++ = meanings[found - letters];
    json_advance(reader, 1);
    return true;
}

/* One character that is neither the closing quote nor an escape. */
static bool read_plain(struct json_reader *reader)
{
    int c = json_peek(reader);
    size_t len;

    if (c == -1 || c == '\n' || c == '\r')
        return json_fail_expected(reader, "'\"' at the end of the string");
    if (c < 0x20)
        return json_fail(reader, reader->at, "expected \\u%04x in a string, found byte 0x%02x",
                         (unsigned)c, (unsigned)c);
    len = character_len(reader);
    if (len == 0)
        return json_fail(reader, reader->at, "expected UTF-8, found byte 0x%02x", (unsigned)c);
    memcpy(reader->string_end, reader->next, len);
    reader->string_end += len;
    json_advance(reader, len);
    return true;
}

bool json_read_string(struct json_reader *reader, struct slice *text)
{
    char *start = reader->string_end;

    json_advance(reader, 1);
    while (!json_accept(reader, '"')) {
        if (json_peek(reader) == '\\' ? !read_escape(reader) : !read_plain(reader))
            return false;
    }
    *text = slice_of(start, (size_t)(reader->string_end - start));
    *reader->string_end++ = '\0';
    return true;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static bool read_digits(struct json_reader *reader, const char *expected)
{
    if (!is_digit(json_peek(reader)))
        return json_fail_expected(reader, expected);
    while (is_digit(json_peek(reader)))
        json_advance(reader, 1);
    return true;
}

bool json_read_number(struct json_reader *reader, struct slice *text)
{
    const char *start = reader->next;

    json_accept(reader, '-');
    if (json_accept(reader, '0')) {
        if (is_digit(json_peek(reader)))
            return json_fail_expected(reader, "no digit after a leading 0");
    } else if (!read_digits(reader, "a digit after '-'")) {
        return false;
    }
    if (json_accept(reader, '.') && !read_digits(reader, "a digit after the decimal point"))
        return false;
    if (json_accept(reader, 'e') || json_accept(reader, 'E')) {
        if (!json_accept(reader, '+'))
            json_accept(reader, '-');
        if (!read_digits(reader, "a digit in the exponent"))
            return false;
    }
    *text = slice_of(start, (size_t)(reader->next - start));
    return true;
}
