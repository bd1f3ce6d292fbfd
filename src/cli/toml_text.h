/* The words of TOML: keys, strings, blanks and comments, with their places. */
#ifndef STDIO_BUS_CLI_TOML_TEXT_H
#define STDIO_BUS_CLI_TOML_TEXT_H

#include "json/document.h"

struct toml_text {
    const char *p, *end;
    size_t line;
    const char *seen; /* a byte of the line, and its column */
    size_t column;
    int code; /* STDIO_BUS_OK until there is an error; then nothing is to be read any more */
    struct document_error *error;
};

struct toml_key {
    char *text; /* decoded, with a NUL after it; the caller frees it. NULL: there is none */
    size_t len;
    struct json_position at;
};

void toml_text_open(struct toml_text *text, struct slice source, struct document_error *error);

/* Where the text is. */
struct json_position toml_text_place(struct toml_text *text);

/* STDIO_BUS_EINVAL, with the reason. */
void toml_text_fail(struct toml_text *text, struct json_position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same: this was expected here. */
void toml_text_expected(struct toml_text *text, const char *what);

/* The next byte; NUL at the end. */
static inline char toml_text_next(const struct toml_text *text)
{
    if (text->p == text->end)
        return '\0';
    return *text->p;
}

/* Goes past the byte; false: it is not there. */
bool toml_text_take(struct toml_text *text, char byte);

/* Goes past spaces and tabs; past comments and the ends of lines, too. */
void toml_text_blanks(struct toml_text *text);
void toml_text_space(struct toml_text *text);

/* The end of a line, with blanks and a comment before it. */
void toml_text_line_end(struct toml_text *text);

/* A key without dots, bare or quoted. False: there is an error, and nothing to be freed. */
bool toml_text_key(struct toml_text *text, struct toml_key *key);

/* A string at its quote. *to is decoded, with a NUL after it; the caller frees it in any case.
 * False: there is an error. */
bool toml_text_string(struct toml_text *text, char **to, size_t *len);

/* A number, a date or a word, as written. */
struct slice toml_text_word(struct toml_text *text);

#endif
