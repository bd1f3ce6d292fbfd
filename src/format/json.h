/* A strict JSON reader for the configuration (spec 9): the grammar of RFC 8259 and nothing more,
 * UTF-8 checked, no duplicate keys, at most JSON_MAX_DEPTH levels. It keeps where each value
 * stands, so that the rules of the configuration can point at it. Messages on the wire never come
 * here: they are format/scanner.h's. */
#ifndef STDIO_BUS_FORMAT_JSON_H
#define STDIO_BUS_FORMAT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define JSON_MAX_DEPTH 64 /* objects and arrays within each other, the outermost included */
#define JSON_PATH_MAX 256 /* room that suffices for the path of a sensible configuration's value */

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Both count from 1. A line ends at a newline; the column counts characters (code points, not
 * bytes; a tab is one). */
struct json_position {
    size_t line, column;
};

struct json_value {
    enum json_type type;
    bool boolean;            /* of a JSON_BOOLEAN */
    struct slice text;       /* JSON_NUMBER: as written, points into the source. JSON_STRING:
                              * decoded, with a NUL behind it; may contain NULs */
    struct json_position at; /* its first character */

    struct json_value *parent; /* NULL: the root */
    size_t index;              /* its place among the parent's children, from 0 */
    struct slice key;          /* in an object: decoded, with a NUL behind it */
    struct json_position key_at;

    struct json_value *first; /* children of an array or object, in the order of the source */
    struct json_value *next;  /* the parent's next child */
    size_t count;             /* children */

    struct json_value *older; /* json.c's own: every value of the document */
};

struct json_document {
    struct json_value *root;
    struct json_value *newest; /* the head of all values, by `older` */
    char *strings;             /* the decoded strings */
};

struct json_error {
    struct json_position at;  /* meaningless when out of memory */
    char path[JSON_PATH_MAX]; /* of the value being read, as json_path writes it; "" at the root */
    char text[160];           /* what was expected and what was found; one line */
};

/* Reads one value and the white space around it. Returns STDIO_BUS_OK; STDIO_BUS_EINVAL for text
 * that is not strict JSON, and *error says where and why; STDIO_BUS_ERR when out of memory. After
 * a failure the document holds nothing. `source` must outlive the document. */
int json_read(struct json_document *document, struct slice source, struct json_error *error);

/* Frees all values and strings; a zeroed document is fine. */
void json_free(struct json_document *document);

/* The value of `key` in `object`; NULL when there is none. */
const struct json_value *json_member(const struct json_value *object, const char *key);

/* The number as an integer. 12, 12.0 and 1.2e1 are the same one. Returns false when the value is
 * not a number or not integral; one beyond INT64_MAX or -INT64_MAX becomes that. */
bool json_integer(const struct json_value *value, int64_t *integer);

/* "an object", "null", "a string" ... Static. */
const char *json_type_name(enum json_type type);

/* Writes the way from the root to the value: pools[1].instances, limits["odd key"]; "" for the
 * root. Cut to `size - 1` bytes, NUL-terminated; `size` > 0. Returns the length written. */
size_t json_path(char *to, size_t size, const struct json_value *value);

#endif
