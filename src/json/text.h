/* JSON that is written into memory that grows. */
#ifndef STDIO_BUS_JSON_TEXT_H
#define STDIO_BUS_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Zeroed: empty. */
struct json_text {
    char *data;
    size_t len, capacity;
    bool failed; /* out of memory: nothing is added any more */
};

/* Adds JSON as it is. */
void json_text_add(struct json_text *text, struct slice json);
void json_text_literal(struct json_text *text, const char *json);
void json_text_format(struct json_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* at most 127 bytes */

/* Adds JSON with parts of it replaced. */
void json_text_splice(struct json_text *text, struct slice json, const struct splice_edit *edits,
                      unsigned count);

/* Adds a string in quotes. Bytes that are not UTF-8 become \ufffd. */
void json_text_string(struct json_text *text, struct slice string);

static inline struct slice json_text_slice(const struct json_text *text)
{
    return slice_of(text->data, text->len);
}

/* Frees the memory: the text is empty again. */
void json_text_free(struct json_text *text);

/* --- An object of JSON that is written member by member. --- */

/* Each adds one member to the object or, where the key is NULL, one element to the array that was
 * begun last; its comma comes by itself. A string that is NULL is null. */
void row_string(struct json_text *text, const char *key, const char *string);
void row_slice(struct json_text *text, const char *key, struct slice string);
void row_number(struct json_text *text, const char *key, int64_t number);
void row_boolean(struct json_text *text, const char *key, bool boolean);

/* Begin and end an object or an array within the one that was begun last. */
void row_begin(struct json_text *text, const char *key, char bracket);
void row_end(struct json_text *text, char bracket);

#endif
