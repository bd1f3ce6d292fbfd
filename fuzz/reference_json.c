#include "build_config.h"

#include "reference_json.h"

#include <stdlib.h>
#include <string.h>

/* Each function that reads returns true, or false at the first byte that cannot stand where it
 * stands (error is set, `at` is its place) or at the end of the text (error is not set). */
struct reader {
    const unsigned char *text;
    size_t len, at;
    bool one_line; /* a newline is the end, not white space */
    unsigned depth, max_depth;
    enum scan_error error;
    struct scan_fields fields;
};

static int peek(const struct reader *r)
{
    return r->at < r->len ? r->text[r->at] : -1;
}

/* The next byte is wrong. A control character is a better reason than `error`. */
static bool wrong(struct reader *r, enum scan_error error, enum scan_error for_control)
{
    int c = peek(r);

    if (c < 0)
        return false;
    if (c == '\n' && r->one_line)
        error = SCAN_ERROR_CUT;
    else if (c < ' ' && !(for_control == SCAN_ERROR_SYNTAX && strchr("\t\r", c) != NULL && c != 0))
        error = for_control;
    r->error = error;
    return false;
}

static bool wrong_outside(struct reader *r, enum scan_error error)
{
    return wrong(r, error, SCAN_ERROR_SYNTAX);
}

static bool wrong_inside(struct reader *r, enum scan_error error)
{
    return wrong(r, error, error == SCAN_ERROR_UTF8 ? SCAN_ERROR_UTF8 : SCAN_ERROR_CONTROL);
}

static void skip_space(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r' ||
           (peek(r) == '\n' && !r->one_line))
        r->at++;
}

static bool read_byte(struct reader *r, int byte, enum scan_error error)
{
    if (peek(r) != byte)
        return wrong_outside(r, error);
    r->at++;
    return true;
}

static bool read_word(struct reader *r, const char *word)
{
    for (; *word != '\0'; word++) {
        if (!read_byte(r, *word, SCAN_ERROR_SYNTAX))
            return false;
    }
    return true;
}

static bool read_digits(struct reader *r)
{
    if (peek(r) < '0' || peek(r) > '9')
        return wrong_outside(r, SCAN_ERROR_NUMBER);
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return true;
}

static bool read_number(struct reader *r)
{
    if (peek(r) == '-')
        r->at++;
    if (peek(r) == '0')
        r->at++;
    else if (!read_digits(r))
        return false;
    if (peek(r) == '.') {
        r->at++;
        if (!read_digits(r))
            return false;
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        return read_digits(r);
    }
    return true;
}

/* The well-formed sequences (Unicode, table 3-7). */
static const struct sequence {
    int first_low, first_high, second_low, second_high, len;
} sequences[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool read_character(struct reader *r)
{
    const struct sequence *sequence = sequences, *end = sequences + 8;

    while (sequence < end && (peek(r) < sequence->first_low || peek(r) > sequence->first_high))
        sequence++;
    if (sequence == end)
        return wrong_inside(r, SCAN_ERROR_UTF8);
    r->at++;
    for (int i = 1; i < sequence->len; i++, r->at++) {
        int low = i == 1 ? sequence->second_low : 0x80;
        int high = i == 1 ? sequence->second_high : 0xBF;

        if (peek(r) < low || peek(r) > high)
            return wrong_inside(r, SCAN_ERROR_UTF8);
    }
    return true;
}

static bool is_one_of(int c, const char *set)
{
    return c > 0 && strchr(set, c) != NULL;
}

static bool read_escape(struct reader *r)
{
    r->at++;
    if (peek(r) != 'u') {
        if (!is_one_of(peek(r), "\"\\/bfnrt"))
            return wrong_inside(r, SCAN_ERROR_ESCAPE);
        r->at++;
        return true;
    }
    r->at++;
    for (int i = 0; i < 4; i++, r->at++) {
        if (!is_one_of(peek(r), "0123456789abcdefABCDEF"))
            return wrong_inside(r, SCAN_ERROR_ESCAPE);
    }
    return true;
}

/* From its opening quote on. */
static bool read_string(struct reader *r)
{
    if (!read_byte(r, '"', SCAN_ERROR_SYNTAX))
        return false;
    for (;;) {
        int c = peek(r);
        bool good;

        if (c < 0)
            return false;
        if (c == '"') {
            r->at++;
            return true;
        }
        if (c == '\\') {
            good = read_escape(r);
        } else if (c < ' ') {
            good = wrong_inside(r, SCAN_ERROR_CONTROL);
        } else if (c >= 0x80) {
            good = read_character(r);
        } else {
            r->at++;
            good = true;
        }
        if (!good)
            return false;
    }
}

static bool read_value(struct reader *r);

/* Notes a member of the outermost object, whose key stands between two places. */
static void note_member(struct reader *r, size_t key, size_t key_end, size_t value)
{
    char name[4096];
    const char *text = (const char *)r->text;
    struct scan_field *field = NULL;
    size_t len = key_end - key;

    if (len > sizeof name)
        return; /* not one of ours, however it is escaped */
    len = reference_decode(name, text + key, len);
    if (len == 2 && memcmp(name, "id", len) == 0)
        field = &r->fields.id;
    else if (len == 9 && memcmp(name, "sessionId", len) == 0)
        field = &r->fields.session_id;
    else if (len == 6 && memcmp(name, "method", len) == 0)
        field = &r->fields.method;
    else if (len == 4 && memcmp(name, "pool", len) == 0)
        field = &r->fields.pool;
    else if (len == 6 && memcmp(name, "result", len) == 0)
        r->fields.has_result = true;
    else if (len == 5 && memcmp(name, "error", len) == 0)
        r->fields.has_error = true;
    if (field == NULL)
        return;
    *field = (struct scan_field){value, r->at - value, SCAN_OTHER, false};
    if (text[value] == '"') {
        *field = (struct scan_field){value + 1, r->at - value - 2, SCAN_STRING, false};
        field->escaped = memchr(text + field->offset, '\\', field->len) != NULL;
    } else if (text[value] == 'n') {
        field->type = SCAN_NULL;
    } else if (is_one_of(text[value], "-0123456789")) {
        field->type = SCAN_NUMBER;
    }
}

static bool read_member(struct reader *r)
{
    size_t key = r->at + 1, key_end, value;

    if (!read_string(r))
        return false;
    key_end = r->at - 1;
    skip_space(r);
    if (!read_byte(r, ':', SCAN_ERROR_SYNTAX))
        return false;
    skip_space(r);
    value = r->at;
    if (!read_value(r))
        return false;
    if (r->depth == 1)
        note_member(r, key, key_end, value);
    return true;
}

static bool leave_level(struct reader *r)
{
    r->depth--;
    r->at++;
    return true;
}

/* An object or array, from its opening bracket on. */
static bool read_level(struct reader *r, bool (*read_element)(struct reader *r), int close)
{
    if (r->depth == r->max_depth)
        return wrong_outside(r, SCAN_ERROR_DEPTH);
    r->depth++;
    r->at++;
    skip_space(r);
    if (peek(r) == close)
        return leave_level(r);
    do {
        skip_space(r);
        if (!read_element(r))
            return false;
        skip_space(r);
        if (peek(r) == close)
            return leave_level(r);
    } while (read_byte(r, ',', SCAN_ERROR_SYNTAX));
    return false;
}

static bool read_value(struct reader *r)
{
    switch (peek(r)) {
    case '{':
        return read_level(r, read_member, '}');
    case '[':
        return read_level(r, read_value, ']');
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true");
    case 'f':
        return read_word(r, "false");
    case 'n':
        return read_word(r, "null");
    default:
        if (!is_one_of(peek(r), "-0123456789"))
            return wrong_outside(r, SCAN_ERROR_SYNTAX);
        return read_number(r);
    }
}

/* Returns the status; `at` is the place to be reported. */
static enum scan_status read_line(struct reader *r)
{
    skip_space(r);
    if (peek(r) == '\n') {
        r->at++;
        return SCAN_BLANK;
    }
    if (peek(r) == '{' ? read_level(r, read_member, '}')
                       : wrong_outside(r, SCAN_ERROR_NOT_OBJECT)) {
        skip_space(r);
        if (read_byte(r, '\n', SCAN_ERROR_TRAILING))
            return SCAN_MESSAGE;
    }
    return r->error == SCAN_ERROR_NONE ? SCAN_MORE : SCAN_INVALID;
}

void reference_line(struct reference_result *result, const char *text, size_t len)
{
    struct reader reader = {.text = (const unsigned char *)text,
                            .len = len,
                            .one_line = true,
                            .max_depth = STDIO_BUS_MAX_DEPTH};

    result->status = read_line(&reader);
    result->position = reader.at;
    result->error = reader.error;
    result->fields = reader.fields;
}

bool reference_document(const char *text, size_t len, unsigned max_depth)
{
    struct reader reader = {
        .text = (const unsigned char *)text, .len = len, .max_depth = max_depth};

    skip_space(&reader);
    if (!read_value(&reader))
        return false;
    skip_space(&reader);
    return reader.at == len;
}

static unsigned unit_at(const char *digits)
{
    char text[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};

    return (unsigned)strtoul(text, NULL, 16);
}

static size_t encode(char *to, unsigned code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 + code / 0x40);
        to[1] = (char)(0x80 + code % 0x40);
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 + code / 0x1000);
        to[1] = (char)(0x80 + code / 0x40 % 0x40);
        to[2] = (char)(0x80 + code % 0x40);
        return 3;
    }
    to[0] = (char)(0xF0 + code / 0x40000);
    to[1] = (char)(0x80 + code / 0x1000 % 0x40);
    to[2] = (char)(0x80 + code / 0x40 % 0x40);
    to[3] = (char)(0x80 + code % 0x40);
    return 4;
}

size_t reference_decode(char *to, const char *raw, size_t len)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    size_t at = 0, out = 0;

    while (at < len) {
        unsigned code, low;

        if (raw[at] != '\\') {
            to[out++] = raw[at++];
        } else if (raw[at + 1] != 'u') {
            const char *letter = strchr(letters, raw[at + 1]);

            to[out++] = letter != NULL ? meanings[letter - letters] : raw[at + 1];
            at += 2;
        } else {
            code = unit_at(raw + at + 2);
            at += 6;
            low = at + 6 <= len && raw[at] == '\\' && raw[at + 1] == 'u' ? unit_at(raw + at + 2)
                                                                         : 0;
            if (code >= 0xD800 && code < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
                at += 6;
            }
            out += encode(to + out, code);
        }
    }
    return out;
}
