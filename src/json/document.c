#include "build_config.h"

#include "json/document.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "json/number.h"
#include "json/string.h"

/* The functions that return bool return false after an error was noted or when out of memory. */
struct reader {
    const char *next, *end;       /* the text that is not yet read */
    struct json_position at;      /* of `next` */
    char *string_end;             /* room for the decoded strings: as much as the text */
    struct json_value *value;     /* the one being read, for the error's path; or NULL */
    unsigned depth;               /* open objects and arrays */
    struct document_error *error; /* its text is empty before the first error */
};

/* --- characters --- */

/* The next byte, or -1 at the end. */
static int peek(const struct reader *reader)
{
    return reader->next < reader->end ? (unsigned char)*reader->next : -1;
}

/* Skips one character of `bytes` bytes that is no newline. */
static void advance(struct reader *reader, size_t bytes)
{
    reader->next += bytes;
    reader->at.column++;
}

/* Skips `c`, which is no newline, if it is next. */
static bool accept(struct reader *reader, char c)
{
    if (peek(reader) != c)
        return false;
    advance(reader, 1);
    return true;
}

static void skip_space(struct reader *reader)
{
    int c;

    while ((c = peek(reader)) == ' ' || c == '\t' || c == '\r' || c == '\n') {
        advance(reader, 1);
        if (c == '\n') {
            reader->at.line++;
            reader->at.column = 1;
        }
    }
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The letters, digits and underscores that are next; does not skip them. */
static struct slice next_word(const struct reader *reader)
{
    const char *p = reader->next;

    while (p < reader->end && is_word(*p))
        p++;
    return slice_of(reader->next, (size_t)(p - reader->next));
}

/* --- errors --- */

/* Notes an error. Returns false. */
__attribute__((format(printf, 3, 4))) static bool
fail(struct reader *reader, struct json_position at, const char *format, ...)
{
    va_list args;

    reader->error->at = at;
    va_start(args, format);
    vsnprintf(reader->error->text, sizeof reader->error->text, format, args);
    va_end(args);
    return false;
}

/* Names for the habits of JavaScript and of other encodings. */
static const char *name_of_next(const struct reader *reader)
{
    switch (peek(reader)) {
    case -1:
        return "the end of the file";
    case '\n':
    case '\r':
        return "the end of the line";
    case '/':
        return "'/' (JSON has no comments)";
    case '\'':
        return "a single quote";
    }
    if (reader->end - reader->next >= 3 && memcmp(reader->next, "\xef\xbb\xbf", 3) == 0)
        return "a byte order mark";
    return NULL;
}

/* Notes the error "expected WANTED, found (the next token)". Returns false. */
static bool expected(struct reader *reader, const char *wanted)
{
    const char *name = name_of_next(reader);
    struct slice word = next_word(reader);
    char found[32];

    if (name != NULL)
        snprintf(found, sizeof found, "%s", name);
    else if (word.len > 0)
        snprintf(found, sizeof found, "'%.*s%s'", word.len > 20 ? 20 : (int)word.len, word.data,
                 word.len > 20 ? "..." : "");
    else if (*reader->next > ' ' && *reader->next < 0x7f)
        snprintf(found, sizeof found, "'%c'", *reader->next);
    else
        snprintf(found, sizeof found, "byte 0x%02x", (unsigned)peek(reader));
    return fail(reader, reader->at, "expected %s, found %s", wanted, found);
}

/* --- strings --- */

/* The four digits of a \u escape. */
static bool read_unit(struct reader *reader, unsigned *unit)
{
    for (int i = 0; i < 4; i++, advance(reader, 1)) {
        if (is_hex_digit((unsigned char)peek(reader)) == 0) /* the end, -1, is none */
            return expected(reader, "four hexadecimal digits after \\u");
    }
    *unit = json_string_unit(reader->next - 4);
    return true;
}

/* An escape, or the two of a surrogate pair. */
static bool skip_escape(struct reader *reader)
{
    struct json_position at = reader->at;
    unsigned unit = 0, low = 0;

    advance(reader, 1);
    if (!accept(reader, 'u')) {
        if (peek(reader) <= 0 || strchr("\"\\/bfnrt", peek(reader)) == NULL)
            return expected(reader, "one of \" \\ / b f n r t u after the backslash");
        advance(reader, 1);
        return true;
    }
    if (!read_unit(reader, &unit))
        return false;
    if (is_low_surrogate(unit))
        return fail(reader, at, "\\u%04x is a second half of a surrogate pair alone", unit);
    if (!is_high_surrogate(unit))
        return true;
    if (accept(reader, '\\') && accept(reader, 'u') && !read_unit(reader, &low))
        return false;
    return is_low_surrogate(low) ||
           fail(reader, at, "\\u%04x is a first half of a surrogate pair alone", unit);
}

/* One character that is neither the closing quote nor an escape. */
static bool skip_plain(struct reader *reader)
{
    int c = peek(reader);
    size_t len = 1;

    if (c == -1 || c == '\n' || c == '\r')
        return expected(reader, "'\"' at the end of the string");
    if (c < 0x20)
        return fail(reader, reader->at, "expected \\u%04x in a string, found byte 0x%02x",
                    (unsigned)c, (unsigned)c);
    if (c >= 0x80)
        len = utf8_sequence((const unsigned char *)reader->next,
                            (const unsigned char *)reader->end);
    if (len == 0)
        return fail(reader, reader->at, "expected UTF-8, found byte 0x%02x", (unsigned)c);
    advance(reader, len);
    return true;
}

/* Reads the string whose opening quote is next: decoded, with a NUL after it. */
static bool read_string(struct reader *reader, struct slice *text)
{
    const char *raw = reader->next + 1;
    size_t len;

    advance(reader, 1);
    while (!accept(reader, '"')) {
        if (peek(reader) == '\\' ? !skip_escape(reader) : !skip_plain(reader))
            return false;
    }
    len = (size_t)(reader->next - raw) - 1;
    len = json_string_decode(reader->string_end, len, slice_of(raw, len));
    *text = slice_of(reader->string_end, len);
    reader->string_end += len;
    *reader->string_end++ = '\0';
    return true;
}

/* --- numbers --- */

static bool skip_digits(struct reader *reader, const char *wanted)
{
    if (!is_digit(peek(reader)))
        return expected(reader, wanted);
    while (is_digit(peek(reader)))
        advance(reader, 1);
    return true;
}

/* Reads a number: `text` is in the source. */
static bool read_number(struct reader *reader, struct slice *text)
{
    const char *start = reader->next;

    accept(reader, '-');
    if (accept(reader, '0')) {
        if (is_digit(peek(reader)))
            return expected(reader, "no digit after a leading 0");
    } else if (!skip_digits(reader, "a digit after '-'")) {
        return false;
    }
    if (accept(reader, '.') && !skip_digits(reader, "a digit after the decimal point"))
        return false;
    if (accept(reader, 'e') || accept(reader, 'E')) {
        if (!accept(reader, '+'))
            accept(reader, '-');
        if (!skip_digits(reader, "a digit in the exponent"))
            return false;
    }
    *text = slice_of(start, (size_t)(reader->next - start));
    return true;
}

/* --- values --- */

static bool read_value(struct reader *reader, struct json_value *value);

/* NULL when out of memory. */
static struct json_value *new_value(struct json_value *parent)
{
    struct json_value *value = calloc(1, sizeof *value);

    if (value == NULL || parent == NULL)
        return value;
    value->parent = parent;
    value->index = parent->count++;
    return value;
}

/* The key of `member`, the last one of its object, and the colon. */
static bool read_key(struct reader *reader, struct json_value *member)
{
    const struct json_value *earlier = member->parent->first;
    char shown[64];

    member->key_at = reader->at;
    if (peek(reader) != '"')
        return expected(reader, earlier == member ? "a key in double quotes or '}'"
                                                  : "a key in double quotes after ','");
    if (!read_string(reader, &member->key))
        return false;
    for (; earlier != member; earlier = earlier->next) {
        if (slice_equal(earlier->key, member->key))
            return fail(reader, member->key_at, "duplicate key \"%s\", first at %zu:%zu",
                        log_escape(shown, sizeof shown, member->key), earlier->key_at.line,
                        earlier->key_at.column);
    }
    skip_space(reader);
    return accept(reader, ':') || expected(reader, "':' after the key");
}

/* The children of an array or object, and its brackets. */
static bool read_children(struct reader *reader, struct json_value *parent, char closing)
{
    struct json_value **link = &parent->first;
    bool more;

    if (reader->depth == DOCUMENT_MAX_DEPTH)
        return fail(reader, reader->at, "nested deeper than %d levels", DOCUMENT_MAX_DEPTH);
    reader->depth++;
    advance(reader, 1);
    skip_space(reader);
    more = peek(reader) != closing;
    for (; more; link = &(*link)->next) {
        struct json_value *child = *link = new_value(parent);

        if (child == NULL || (parent->type == JSON_OBJECT && !read_key(reader, child)) ||
            !read_value(reader, child))
            return false;
        reader->value = parent;
        skip_space(reader);
        more = accept(reader, ',');
        if (!more && peek(reader) != closing)
            return expected(reader, closing == ']' ? "',' or ']'" : "',' or '}'");
        skip_space(reader);
    }
    advance(reader, 1);
    reader->depth--;
    return true;
}

static bool read_word(struct reader *reader, struct json_value *value)
{
    struct slice word = next_word(reader);

    value->boolean = slice_is(word, "true");
    if (value->boolean || slice_is(word, "false"))
        value->type = JSON_BOOLEAN;
    else if (slice_is(word, "null"))
        value->type = JSON_NULL;
    else
        return expected(reader, "a value");
    reader->next += word.len;
    reader->at.column += word.len;
    return true;
}

static bool read_value(struct reader *reader, struct json_value *value)
{
    skip_space(reader);
    reader->value = value;
    value->at = reader->at;
    switch (peek(reader)) {
    case '{':
        value->type = JSON_OBJECT;
        return read_children(reader, value, '}');
    case '[':
        value->type = JSON_ARRAY;
        return read_children(reader, value, ']');
    case '"':
        value->type = JSON_STRING;
        return read_string(reader, &value->text);
    case '-':
        value->type = JSON_NUMBER;
        return read_number(reader, &value->text);
    default:
        value->type = JSON_NUMBER;
        return is_digit(peek(reader)) ? read_number(reader, &value->text)
                                      : read_word(reader, value);
    }
}

/* --- the document --- */

int document_read(struct document *document, struct slice source, struct document_error *error)
{
    const char *text = source.len > 0 ? source.data : "";
    struct reader reader = {.next = text, .end = text + source.len, .at = {1, 1}, .error = error};

    *error = (struct document_error){.path = ""};
    /* A decoded string is not longer than its source, and its NUL takes less than the quotes. */
    *document = (struct document){.root = new_value(NULL), .strings = malloc(source.len + 1)};
    reader.string_end = document->strings;
    reader.value = document->root;
    if (document->root != NULL && document->strings != NULL &&
        read_value(&reader, document->root)) {
        skip_space(&reader);
        if (peek(&reader) == -1 || expected(&reader, "the end of the file"))
            return STDIO_BUS_OK;
    }
    if (reader.value != NULL)
        document_path(error->path, sizeof error->path, reader.value);
    document_free(document);
    return error->text[0] != '\0' ? STDIO_BUS_EINVAL : STDIO_BUS_ERR;
}

static void free_values(struct json_value *value)
{
    while (value != NULL) {
        struct json_value *next = value->next;

        free_values(value->first);
        free(value);
        value = next;
    }
}

void document_free(struct document *document)
{
    free_values(document->root);
    free(document->strings);
    *document = (struct document){.root = NULL};
}

/* --- queries --- */

const struct json_value *document_member(const struct json_value *object, const char *key)
{
    const struct json_value *member;

    if (object == NULL || object->type != JSON_OBJECT)
        return NULL;
    for (member = object->first; member != NULL; member = member->next) {
        if (slice_is(member->key, key))
            return member;
    }
    return NULL;
}

const struct json_value *document_member_of(const struct json_value *object, const char *key,
                                            enum json_type type)
{
    const struct json_value *value = document_member(object, key);

    return value != NULL && value->type == type ? value : NULL;
}

bool document_integer(const struct json_value *value, int64_t *integer)
{
    struct decimal decimal;

    if (value->type != JSON_NUMBER)
        return false;
    decimal_read(&decimal, value->text);
    return decimal_integer(&decimal, integer);
}

const char *document_type_name(enum json_type type)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",       [JSON_BOOLEAN] = "a boolean", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",    [JSON_OBJECT] = "an object",
    };

    return names[type];
}

/* The bytes of a key that a path shows without quotes. */
#define PLAIN_BYTES "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

size_t document_path(char *to, size_t size, const struct json_value *value)
{
    const struct json_value *parent = value->parent;
    char key[64];
    size_t used;
    int n;

    to[0] = '\0';
    if (parent == NULL)
        return 0;
    used = document_path(to, size, parent);
    if (parent->type == JSON_ARRAY) {
        n = snprintf(to + used, size - used, "[%zu]", value->index);
    } else {
        bool plain = value->key.len > 0 && strspn(value->key.data, PLAIN_BYTES) == value->key.len;
        log_escape(key, sizeof key, value->key);
        n = snprintf(to + used, size - used, plain ? "%s%s" : "%s[\"%s\"]",
                     plain && used > 0 ? "." : "", key);
    }
    return used + (size_t)n < size ? used + (size_t)n : size - 1;
}

static void blank(char *text, size_t from, size_t to)
{
    for (; from < to; from++) {
        if (text[from] != '\n')
            text[from] = ' ';
    }
}

/* The end of the string that begins at `at`. */
static size_t end_of_string(const char *text, size_t at, size_t len)
{
    for (at++; at < len && text[at] != '"' && text[at] != '\n'; at++) {
        if (text[at] == '\\' && at + 1 < len)
            at++;
    }
    return at < len ? at + 1 : len;
}

/* The end of the comment that begins at `at`; `at` itself if none does. One that is never closed is
 * none. */
static size_t end_of_comment(const char *text, size_t at, size_t len)
{
    size_t end = at + 2;

    if (len - at < 2 || text[at] != '/')
        return at;
    if (text[at + 1] == '/') {
        while (end < len && text[end] != '\n')
            end++;
        return end;
    }
    if (text[at + 1] != '*')
        return at;
    while (len - end >= 2 && (text[end] != '*' || text[end + 1] != '/'))
        end++;
    return len - end >= 2 ? end + 2 : at;
}

static bool is_one_of(char c, const char *these)
{
    return c != '\0' && strchr(these, c) != NULL;
}

void comments_blank(char *text, size_t len)
{
    size_t at = 0, end, comma = len; /* comma: after a value, with nothing after it so far */
    char last = '[';                 /* before `at`, but for white space */

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        blank(text, 0, 3);
    while (at < len) {
        end = end_of_comment(text, at, len);
        if (end > at) {
            blank(text, at, end);
            at = end;
            continue;
        }
        if (is_one_of(text[at], "}]") && comma < len)
            text[comma] = ' ';
        if (!is_one_of(text[at], " \t\r\n")) {
            comma = text[at] == ',' && !is_one_of(last, "[{,:") ? at : len;
            last = text[at];
        }
        at = text[at] == '"' ? end_of_string(text, at, len) : at + 1;
    }
}
