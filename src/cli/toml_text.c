#include "build_config.h"

#include "cli/toml_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "json/string.h"

void toml_text_open(struct toml_text *text, struct slice source, struct document_error *error)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* an editor may have written it */

    memset(error, 0, sizeof *error);
    *text = (struct toml_text){
        .p = source.data, .end = source.data + source.len, .line = 1, .column = 1, .error = error};
    if (source.len >= sizeof mark - 1 && memcmp(source.data, mark, sizeof mark - 1) == 0)
        text->p += sizeof mark - 1;
    text->seen = text->p;
}

struct json_position toml_text_place(struct toml_text *text)
{
    for (; text->seen < text->p; text->seen++)
        text->column += (*text->seen & 0xC0) != 0x80;
    return (struct json_position){text->line, text->column};
}

void toml_text_fail(struct toml_text *text, struct json_position at, const char *format, ...)
{
    va_list arguments;

    if (text->code != STDIO_BUS_OK)
        return;
    text->code = STDIO_BUS_EINVAL;
    text->error->at = at;
    va_start(arguments, format);
    vsnprintf(text->error->text, sizeof text->error->text, format, arguments);
    va_end(arguments);
}

void toml_text_expected(struct toml_text *text, const char *what)
{
    const char *p = text->p;

    if (p == text->end)
        toml_text_fail(text, toml_text_place(text), "expected %s, found the end of the file", what);
    else if (*p == '\n' || *p == '\r')
        toml_text_fail(text, toml_text_place(text), "expected %s, found the end of the line", what);
    else if (*p > ' ' && *p < 0x7F)
        toml_text_fail(text, toml_text_place(text), "expected %s, found %c", what, *p);
    else
        toml_text_fail(text, toml_text_place(text), "expected %s", what);
}

bool toml_text_take(struct toml_text *text, char byte)
{
    if (text->p == text->end || *text->p != byte)
        return false;
    text->p++;
    return true;
}

/* --- between words --- */

void toml_text_blanks(struct toml_text *text)
{
    while (text->p < text->end && (*text->p == ' ' || *text->p == '\t'))
        text->p++;
}

/* Goes past one, LF or CRLF. False: there is none. */
static bool take_newline(struct toml_text *text)
{
    if (text->end - text->p > 1 && text->p[0] == '\r' && text->p[1] == '\n')
        text->p++;
    if (!toml_text_take(text, '\n'))
        return false;
    text->line++;
    text->seen = text->p;
    text->column = 1;
    return true;
}

/* A character that may stand in a comment, or in a string as it is: its length, or 0. */
static size_t plain_len(const struct toml_text *text)
{
    unsigned char c = (unsigned char)*text->p;
    uint32_t code;

    if (c >= 0x80)
        return utf8_read(slice_of(text->p, (size_t)(text->end - text->p)), &code);
    return (c >= ' ' && c != 0x7F) || c == '\t';
}

static void take_comment(struct toml_text *text)
{
    size_t len;

    if (!toml_text_take(text, '#'))
        return;
    while (text->p < text->end && (len = plain_len(text)) > 0)
        text->p += len;
}

void toml_text_space(struct toml_text *text)
{
    do {
        toml_text_blanks(text);
        take_comment(text);
    } while (take_newline(text));
}

void toml_text_line_end(struct toml_text *text)
{
    toml_text_blanks(text);
    take_comment(text);
    if (text->p < text->end && !take_newline(text))
        toml_text_expected(text, "the end of the line");
}

/* --- strings --- */

#define STRING_END "a string has no end"

/* A string being read: its kind, and what it is decoded to. */
struct decoding {
    char quote;
    bool many; /* lines: three quotes at each end */
    bool bare; /* no escapes */
    char *to;
    size_t len;
};

/* Goes past the end of the string, if it is here. Two more quotes may belong to one with three. */
static bool take_end(struct toml_text *text, struct decoding *string)
{
    size_t left = (size_t)(text->end - text->p), count = 0, needed = string->many ? 3 : 1;

    while (count < left && count < (string->many ? 5 : 1) && text->p[count] == string->quote)
        count++;
    if (count < needed)
        return false;
    text->p += count;
    for (; count > needed; count--)
        string->to[string->len++] = string->quote;
    return true;
}

/* The number of this many hexadecimal digits, a multiple of four; above all characters: there are
 * fewer. */
static uint32_t take_hex(struct toml_text *text, unsigned digits)
{
    uint32_t code = 0;

    for (; digits > 0; digits -= 4) {
        if (text->end - text->p < 4)
            return UINT32_MAX;
        for (int i = 0; i < 4; i++) {
            if (!is_hex_digit((unsigned char)text->p[i]))
                return UINT32_MAX;
        }
        code = code << 16 | json_string_unit(text->p);
        text->p += 4;
    }
    return code;
}

static void take_escape(struct toml_text *text, struct decoding *string)
{
    static const char names[] = "btnfr\"\\", bytes[] = "\b\t\n\f\r\"\\";
    struct json_position at = toml_text_place(text);
    const char *name;
    uint32_t code;
    char c;

    text->p++;
    c = toml_text_next(text);
    name = c != '\0' ? strchr(names, c) : NULL;
    if (name != NULL) {
        text->p++;
        string->to[string->len++] = bytes[name - names];
    } else if (c == 'u' || c == 'U') {
        text->p++;
        code = take_hex(text, c == 'u' ? 4 : 8);
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            toml_text_fail(text, at, "no character has this escape");
        else
            string->len += utf8_write(string->to + string->len, code);
    } else if (string->many) { /* the rest of the line is blank, and what follows it */
        toml_text_blanks(text);
        if (!take_newline(text))
            toml_text_fail(text, at, "unknown escape");
        do
            toml_text_blanks(text);
        while (take_newline(text));
    } else {
        toml_text_fail(text, at, "unknown escape");
    }
}

static void take_plain(struct toml_text *text, struct decoding *string)
{
    const char *start = text->p;
    size_t len = plain_len(text);

    if (len == 0 && string->many && take_newline(text)) {
        string->to[string->len++] = '\n';
    } else if (len == 0) {
        if (*start == '\n' || *start == '\r')
            toml_text_fail(text, toml_text_place(text), STRING_END " in its line");
        else
            toml_text_fail(text, toml_text_place(text), "a string must be UTF-8 without controls");
    } else {
        memcpy(string->to + string->len, start, len);
        string->len += len;
        text->p += len;
    }
}

/* Room for the decoded string, which is no longer than what is written up to its end. */
static size_t room_for(const struct toml_text *text, const struct decoding *string)
{
    const char *p = text->p;

    for (; p < text->end && (string->many || *p != '\n'); p++) {
        if (*p == '\\' && !string->bare && p + 1 < text->end)
            p++;
        else if (*p == string->quote &&
                 (!string->many || (text->end - p > 2 && p[1] == *p && p[2] == *p)))
            break;
    }
    return (size_t)(p - text->p) + 3; /* two quotes more, and a NUL */
}

static void open_string(struct toml_text *text, struct decoding *string)
{
    const char *p = text->p;

    *string = (struct decoding){.quote = *p, .bare = *p == '\''};
    string->many = text->end - p > 2 && p[1] == *p && p[2] == *p;
    text->p += string->many ? 3 : 1;
    if (string->many)
        take_newline(text);
}

bool toml_text_string(struct toml_text *text, char **to, size_t *len)
{
    struct decoding string;

    open_string(text, &string);
    *to = string.to = malloc(room_for(text, &string));
    if (string.to == NULL) {
        text->code = STDIO_BUS_ERR;
        return false;
    }
    while (text->code == STDIO_BUS_OK && text->p < text->end && !take_end(text, &string)) {
        if (*text->p == '\\' && !string.bare)
            take_escape(text, &string);
        else
            take_plain(text, &string);
        if (text->p == text->end)
            toml_text_fail(text, toml_text_place(text), STRING_END);
    }
    *len = string.len;
    string.to[string.len] = '\0';
    return text->code == STDIO_BUS_OK;
}

/* --- words --- */

static size_t count_of(const struct toml_text *text, const char *characters)
{
    const char *p = text->p;

    while (p < text->end && *p != '\0' && strchr(characters, *p) != NULL)
        p++;
    return (size_t)(p - text->p);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool toml_text_key(struct toml_text *text, struct toml_key *key)
{
    size_t len = count_of(text, LETTERS DIGITS "-_");

    *key = (struct toml_key){.at = toml_text_place(text)};
    if (len == 0 && text->p < text->end && (*text->p == '"' || *text->p == '\'')) {
        size_t line = text->line;

        if (toml_text_string(text, &key->text, &key->len) && text->line != line)
            toml_text_fail(text, key->at, "a key is one line");
        if (text->code == STDIO_BUS_OK)
            return true;
        free(key->text);
        key->text = NULL;
        return false;
    }
    if (len == 0) {
        toml_text_expected(text, "a key");
        return false;
    }
    key->text = malloc(len + 1);
    if (key->text == NULL) {
        text->code = STDIO_BUS_ERR;
        return false;
    }
    memcpy(key->text, text->p, len);
    key->text[len] = '\0';
    key->len = len;
    text->p += len;
    return true;
}

struct slice toml_text_word(struct toml_text *text)
{
    struct slice word = slice_of(text->p, count_of(text, LETTERS DIGITS "+-.:_"));

    if (word.len == 0)
        toml_text_expected(text, "a value");
    else if (strchr(DIGITS "+-", word.data[0]) == NULL && !slice_is(word, "true") &&
             !slice_is(word, "false") && !slice_is(word, "inf") && !slice_is(word, "nan"))
        toml_text_fail(text, toml_text_place(text), "expected a value: text stands in quotes");
    text->p += word.len;
    return word;
}
