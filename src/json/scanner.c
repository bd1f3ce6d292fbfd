#include "build_config.h"

#include "json/scanner.h"

#include <string.h>

#include "base/archive.h"
#include "base/utf8.h"
#include "json/scanner_quick.h"
#include "json/scanner_text.h"
#include "json/string.h"

enum literal { LITERAL_TRUE, LITERAL_FALSE, LITERAL_NULL };

static const char *const literals[] = {"true", "false", "null"};

/* The byte at p cannot stand there. A control character is a better reason than `error`. */
__attribute__((cold)) static position unexpected_in_token(struct scanner *s, position p,
                                                          enum scan_error error)
{
    if (*p == '\n')
        error = SCAN_ERROR_CUT;
    else if (*p < ' ' && *p != '\t' && *p != '\r')
        error = SCAN_ERROR_SYNTAX;
    return fail(s, p, error);
}

/* The same between tokens, where a carriage return is white space, and a newline may be. */
__attribute__((cold)) static position unexpected(struct scanner *s, position p,
                                                 enum scan_error error)
{
    if (*p == '\r') {
        s->fields.oddities |= SCAN_UNTIDY;
        return p + 1;
    }
    return *p == '\n' && s->form == SCAN_SIZED ? p + 1 : unexpected_in_token(s, p, error);
}

static position unexpected_in_string(struct scanner *s, position p, enum scan_error error)
{
    if (*p == '\n')
        error = SCAN_ERROR_CUT;
    else if (*p < ' ')
        error = SCAN_ERROR_CONTROL;
    return fail(s, p, error);
}

static position before_object(struct scanner *s, const struct input *in, position p)
{
    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (*p == '\n' && s->form < SCAN_IN_ARRAY) {
        s->state = AT_BLANK_END;
        if (s->form == SCAN_AFTER_ARRAY)
            s->form = SCAN_LINE_OR_ARRAY;
        return p;
    }
    if (*p == '[' && s->form == SCAN_LINE_OR_ARRAY) {
        s->form = SCAN_IN_ARRAY;
        return p + 1;
    }
    if (s->form == SCAN_AFTER_ARRAY)
        return unexpected(s, p, SCAN_ERROR_AFTER_ARRAY);
    if (*p != '{')
        return unexpected(s, p, SCAN_ERROR_NOT_OBJECT);
    memset(&s->fields, 0, sizeof s->fields);
    s->fields.oddities = p > in->start ? SCAN_UNTIDY : 0;
    return open_level(s, p);
}

/* What is no newline after an object. */
__attribute__((cold)) static position after_element(struct scanner *s, position p)
{
    if (s->form != SCAN_IN_ARRAY || (*p != ',' && *p != ']'))
        return unexpected(s, p, SCAN_ERROR_TRAILING);
    if (*p == ']')
        s->form = SCAN_AFTER_ARRAY;
    s->fields.oddities |= SCAN_UNTIDY;
    s->state = AT_MESSAGE_END;
    return p;
}

static position after_object(struct scanner *s, const struct input *in, position p)
{
    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (*p != '\n' || s->form >= SCAN_IN_ARRAY)
        return after_element(s, p);
    s->state = AT_MESSAGE_END;
    return p;
}

static position string_start(struct scanner *s, const struct input *in, position p, bool key)
{
    token_start(s, in, p + 1);
    s->in_key = key;
    s->state = STRING;
    return p + 1;
}

static position string_hex(struct scanner *s, position p)
{
    if (is_hex_digit(*p) == 0)
        return unexpected_in_string(s, p, SCAN_ERROR_ESCAPE);
    if (--s->partial == 0)
        s->state = STRING;
    return p + 1;
}

/* The letters that are a whole escape after the backslash. */
static const bool escape_letters[256] = {
    ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
    ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true,
};

static bool are_hex_digits(position p)
{
    return (is_hex_digit(p[0]) & is_hex_digit(p[1]) & is_hex_digit(p[2]) & is_hex_digit(p[3])) == 1;
}

static position string_escape(struct scanner *s, const struct input *in, position p)
{
    s->state = STRING;
    if (escape_letters[*p])
        return p + 1;
    if (*p != 'u')
        return unexpected_in_string(s, p, SCAN_ERROR_ESCAPE);
    if (in->end - p > 4 && are_hex_digits(p + 1))
        return p + 5;
    s->state = STRING_HEX;
    s->partial = 4;
    return p + 1;
}

/* A run of non-ASCII characters. A character that is wrong, or not all there, is read byte by byte,
 * so that the error is found at its place. */
static position string_utf8_start(struct scanner *s, const struct input *in, position p)
{
    struct utf8_rest rest UNINITIALIZED;

    p = utf8_skip(p, in->end);
    if (p == in->end || *p < 0x80)
        return p;
    rest = utf8_rest_of(*p);
    if (rest.left == 0)
        return fail(s, p, SCAN_ERROR_UTF8);
    s->partial = rest.left;
    s->utf8_low = rest.low;
    s->utf8_high = rest.high;
    s->state = STRING_UTF8;
    return p + 1;
}

static position string_utf8(struct scanner *s, position p)
{
    if (*p < s->utf8_low || *p > s->utf8_high)
        return fail(s, p, *p == '\n' ? SCAN_ERROR_CUT : SCAN_ERROR_UTF8);
    s->utf8_low = 0x80;
    s->utf8_high = 0xBF;
    if (--s->partial == 0)
        s->state = STRING;
    return p + 1;
}

static position string_end(struct scanner *s, const struct input *in, position p)
{
    if (s->in_key)
        key_end(s, in, p);
    else
        value_end(s, in, p, SCAN_STRING);
    return p + 1;
}

static position string(struct scanner *s, struct input *in, position p)
{
    bool is_field = s->depth == 1 && (s->in_key || s->key != KEY_OTHER);

    while (s->state == STRING) {
        if (p == in->end || *p != '\\') /* one escape often follows another */
            p = scanner_text(&in->plain, p, is_field && !s->token_escaped, &s->token_escaped);
        if (p == in->end)
            return p;
        if (*p == '"')
            return string_end(s, in, p);
        if (*p >= 0x80) {
            p = string_utf8_start(s, in, p);
        } else if (*p == '\\') {
            s->token_escaped = true;
            s->state = STRING_ESCAPE;
            p++;
            if (p < in->end)
                p = string_escape(s, in, p);
        } else {
            return unexpected_in_string(s, p, SCAN_ERROR_CONTROL);
        }
    }
    return p;
}

static position key(struct scanner *s, struct input *in, position p)
{
    position next;

    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (*p == '}' && s->state == FIRST_KEY)
        return close_level(s, in, p);
    if (*p != '"')
        return unexpected(s, p, SCAN_ERROR_SYNTAX);
    next = scanner_quick(s, in, p);
    return next != p ? next : string_start(s, in, p, true);
}

static position colon(struct scanner *s, const struct input *in, position p)
{
    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (*p != ':')
        return unexpected(s, p, SCAN_ERROR_SYNTAX);
    s->state = VALUE;
    return p + 1;
}

static position literal_start(struct scanner *s, position p, enum literal literal)
{
    s->literal = (unsigned char)literal;
    s->partial = 1;
    s->state = LITERAL;
    return p + 1;
}

static position literal(struct scanner *s, const struct input *in, position p)
{
    const char *rest = literals[s->literal] + s->partial;

    if (*p != (unsigned char)*rest)
        return unexpected_in_token(s, p, SCAN_ERROR_SYNTAX);
    s->partial++;
    if (rest[1] == '\0')
        value_end(s, in, p + 1, s->literal == LITERAL_NULL ? SCAN_NULL : SCAN_OTHER);
    return p + 1;
}

static position digit(struct scanner *s, position p, enum state after)
{
    if (!is_digit(*p))
        return unexpected_in_token(s, p, SCAN_ERROR_NUMBER);
    s->state = (unsigned char)after;
    return p + 1;
}

/* A complete number may end here or continue. */
static position number_rest(struct scanner *s, const struct input *in, position p)
{
    bool fraction = s->state == NUMBER_FRACTION, exponent = s->state == NUMBER_EXPONENT;
    unsigned char letter = *p | 0x20;

    if (is_digit(*p) && s->state != NUMBER_ZERO)
        return p + 1;
    if (*p == '.' && !fraction && !exponent) {
        s->state = NUMBER_POINT;
        return p + 1;
    }
    if (letter == 'e' && !exponent) {
        s->state = NUMBER_E;
        return p + 1;
    }
    if (is_digit(*p) || *p == '.' || *p == '+' || *p == '-' || (letter >= 'a' && letter <= 'z'))
        return fail(s, p, SCAN_ERROR_NUMBER);
    value_end(s, in, p, SCAN_NUMBER);
    return p;
}

static position number(struct scanner *s, const struct input *in, position p)
{
    switch ((enum state)s->state) {
    case NUMBER_MINUS:
        return digit(s, p, *p == '0' ? NUMBER_ZERO : NUMBER_INTEGER);
    case NUMBER_POINT:
        return digit(s, p, NUMBER_FRACTION);
    case NUMBER_E:
        if (*p != '+' && *p != '-')
            return digit(s, p, NUMBER_EXPONENT);
        s->state = NUMBER_SIGN;
        return p + 1;
    case NUMBER_SIGN:
        return digit(s, p, NUMBER_EXPONENT);
    default:
        return number_rest(s, in, p);
    }
}

static position value_start(struct scanner *s, const struct input *in, position p)
{
    token_start(s, in, p);
    switch (*p) {
    case '"':
        return string_start(s, in, p, false);
    case '{':
    case '[':
        return open_level(s, p);
    case 't':
        return literal_start(s, p, LITERAL_TRUE);
    case 'f':
        return literal_start(s, p, LITERAL_FALSE);
    case 'n':
        return literal_start(s, p, LITERAL_NULL);
    case '-':
        s->state = NUMBER_MINUS;
        return p + 1;
    case '+':
    case '.':
        return fail(s, p, SCAN_ERROR_NUMBER);
    default:
        if (!is_digit(*p))
            return unexpected(s, p, SCAN_ERROR_SYNTAX);
        s->state = *p == '0' ? NUMBER_ZERO : NUMBER_INTEGER;
        return p + 1;
    }
}

static position value(struct scanner *s, struct input *in, position p)
{
    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (*p == ']' && s->state == FIRST_VALUE)
        return close_level(s, in, p);
    if (!in_object(s)) {
        position next = scanner_quick(s, in, p);
        if (next != p)
            return next;
    }
    return value_start(s, in, p);
}

static position after_value(struct scanner *s, const struct input *in, position p)
{
    p = skip_space(in, p);
    if (p == in->end)
        return p;
    if (closes_level(s, p))
        return close_level(s, in, p);
    if (*p != ',')
        return unexpected(s, p, SCAN_ERROR_SYNTAX);
    s->state = in_object(s) ? KEY : VALUE;
    return p + 1;
}

static position step(struct scanner *s, struct input *in, position p)
{
    switch ((enum state)s->state) {
    case BEFORE_OBJECT:
        return before_object(s, in, p);
    case FIRST_KEY:
    case KEY:
        return key(s, in, p);
    case COLON:
        return colon(s, in, p);
    case FIRST_VALUE:
    case VALUE:
        return value(s, in, p);
    case AFTER_VALUE:
        return after_value(s, in, p);
    case STRING:
        return string(s, in, p);
    case STRING_ESCAPE:
        return string_escape(s, in, p);
    case STRING_HEX:
        return string_hex(s, p);
    case STRING_UTF8:
        return string_utf8(s, p);
    case LITERAL:
        return literal(s, in, p);
    case AFTER_OBJECT:
        return after_object(s, in, p);
    default:
        return number(s, in, p);
    }
}

void scanner_next(struct scanner *scanner)
{
    scanner->position = 0;
    scanner->error = SCAN_ERROR_NONE;
    scanner->state = BEFORE_OBJECT;
    scanner->depth = 0;
}

void scanner_reset(struct scanner *scanner)
{
    scanner_next(scanner);
    scanner->form = SCAN_LINE;
}

enum scan_status scanner_end(struct scanner *scanner)
{
    if (scanner->state == AFTER_OBJECT)
        return SCAN_MESSAGE;
    scanner->error = SCAN_ERROR_CUT;
    return SCAN_INVALID;
}

enum scan_status scanner_run(struct scanner *scanner, const char *message, size_t len)
{
    struct input in UNINITIALIZED;
    position p;

    if (scanner->position >= len)
        return SCAN_MORE;
    in.start = (position)message;
    in.end = in.start + len;
    window_open(&in.plain, in.start, in.end);
    window_open(&in.digits, in.start, in.end);
    p = in.start + scanner->position;
    while (p < in.end && scanner->state < AT_MESSAGE_END)
        p = step(scanner, &in, p);
    scanner->position = (size_t)(p - in.start);
    if (scanner->state < AT_MESSAGE_END)
        return SCAN_MORE;
    if (scanner->state == FAILED)
        return SCAN_INVALID;
    scanner->position++;
    return scanner->state == AT_MESSAGE_END ? SCAN_MESSAGE : SCAN_BLANK;
}

const char *scan_error_text(enum scan_error error)
{
    static const char *const texts[] = {
        [SCAN_ERROR_NONE] = "no error",
        [SCAN_ERROR_SYNTAX] = "not valid JSON",
        [SCAN_ERROR_NOT_OBJECT] = "not a JSON object",
        [SCAN_ERROR_CUT] = "the line ends inside the JSON object",
        [SCAN_ERROR_TRAILING] = "more text behind the JSON object",
        [SCAN_ERROR_AFTER_ARRAY] = "more text after the array",
        [SCAN_ERROR_UTF8] = "invalid UTF-8",
        [SCAN_ERROR_CONTROL] = "a control character inside a string",
        [SCAN_ERROR_ESCAPE] = "an invalid escape sequence",
        [SCAN_ERROR_NUMBER] = "an invalid number",
        [SCAN_ERROR_DEPTH] = "nested too deeply",
    };

    return texts[error];
}

/* --- the archive --- */

void scanner_archive(struct archive *archive, struct scanner *scanner)
{
    static const struct archive_field place_fields[] = {
        ARCHIVE_INTEGERS(struct scan_field, offset, len),
        ARCHIVE_CHOICE(struct scan_field, type, SCAN_OTHER),
        ARCHIVE_FLAGS(struct scan_field, escaped),
    };
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct scanner, position, fields.oddities, partial, utf8_low, utf8_high,
                         token_start, levels, outer_levels),
        ARCHIVE_FLAGS(struct scanner, fields.has_result, fields.has_error, in_key, token_escaped,
                      splits_arrays),
        ARCHIVE_CHOICE(struct scanner, error, SCAN_ERROR_DEPTH),
        ARCHIVE_CHOICE(struct scanner, state, FAILED),
        ARCHIVE_CHOICE(struct scanner, key, KEY_POOL),
        ARCHIVE_CHOICE(struct scanner, literal, 2),
        ARCHIVE_CHOICE(struct scanner, form, SCAN_SIZED),
        ARCHIVE_CHOICE(struct scanner, depth, STDIO_BUS_MAX_DEPTH),
    };

    archive_mark(archive, "scanner");
    ARCHIVE_FIELDS(archive, scanner, fields);
    ARCHIVE_FIELDS(archive, &scanner->fields.id, place_fields);
    ARCHIVE_FIELDS(archive, &scanner->fields.session_id, place_fields);
    ARCHIVE_FIELDS(archive, &scanner->fields.method, place_fields);
    ARCHIVE_FIELDS(archive, &scanner->fields.pool, place_fields);
}
