/* The words of JSON: characters, strings, numbers. json.c's own lower half. */
#ifndef STDIO_BUS_FORMAT_JSON_TOKEN_H
#define STDIO_BUS_FORMAT_JSON_TOKEN_H

#include "format/json.h"

/* Every function that reads returns true, or false after it noted the error. */
struct json_reader {
    const char *next, *end;   /* what is not yet read */
    struct json_position at;  /* of `next` */
    char *string_end;         /* where the next decoded string goes; there is room */
    struct json_value *value; /* the one being read, for the error's path; or NULL */
    struct json_error *error;
    unsigned depth;
};

/* Notes the error; returns false. */
bool json_fail(struct json_reader *reader, struct json_position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same: "expected EXPECTED, found (what stands next)". */
bool json_fail_expected(struct json_reader *reader, const char *expected);

/* The next byte, or -1 at the end. */
static inline int json_peek(const struct json_reader *reader)
{
    return reader->next < reader->end ? (unsigned char)*reader->next : -1;
}

/* Past one character of `bytes` bytes that is no newline. */
static inline void json_advance(struct json_reader *reader, size_t bytes)
{
    reader->next += bytes;
    reader->at.column++;
}

/* Past `c`, which is no newline, when it stands next; false otherwise. */
bool json_accept(struct json_reader *reader, char c);

/* Past white space. */
void json_skip_space(struct json_reader *reader);

/* The run of letters, digits and underscores that stands next. */
struct slice json_word(const struct json_reader *reader);

/* Decodes the string whose opening quote stands next; puts a NUL behind it. */
bool json_read_string(struct json_reader *reader, struct slice *text);

/* Past the number that starts here; `text` is what stands in the source. */
bool json_read_number(struct json_reader *reader, struct slice *text);

#endif
