/* A strict JSON reader for the configuration (spec 9): the grammar of RFC 8259, UTF-8 checked, no
 * duplicate keys, at most DOCUMENT_MAX_DEPTH levels. Each value has its place in the text, for the
 * error messages of the configuration. Messages on the wire are read by json/scanner.h. */
#ifndef STDIO_BUS_JSON_DOCUMENT_H
#define STDIO_BUS_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define DOCUMENT_MAX_DEPTH 64 /* objects and arrays within each other, the outermost included */
#define DOCUMENT_PATH_MAX 256 /* room for the path of a value in a sensible configuration */

/* Both count from 1. A line ends at a newline; the column counts characters (code points, not
 * bytes; a tab is one). */
struct json_position {
    size_t line, column;
};

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_type type;
    bool boolean;            /* of a JSON_BOOLEAN */
    struct slice text;       /* JSON_NUMBER: as written, in the source. JSON_STRING: decoded, with a
                              * NUL after it; may contain NULs */
    struct json_position at; /* of its first character */

    struct json_value *parent; /* NULL: the root */
    size_t index;              /* its place among the parent's children, from 0 */
    struct slice key;          /* in an object: decoded, with a NUL after it. Of a root: the name
                                * of its file, if that was included */
    struct json_position key_at;

    struct json_value *first; /* children of an array or object, in the order of the source */
    struct json_value *next;  /* the parent's next child */
    size_t count;             /* children */
};

struct document {
    struct json_value *root;
    char *strings; /* the decoded strings */
};

struct document_error {
    struct json_position at;      /* meaningless when out of memory */
    char path[DOCUMENT_PATH_MAX]; /* of the value being read, as document_path writes it */
    char text[160];               /* one line: what was expected, what was found */
};

/* Reads one value and the white space around it. Returns STDIO_BUS_OK; STDIO_BUS_EINVAL for text
 * that is not strict JSON, with place and reason in *error; STDIO_BUS_ERR when out of memory. After
 * a failure the document holds nothing. `source` must outlive the document. */
int document_read(struct document *document, struct slice source, struct document_error *error);

/* Frees all values and strings. A zeroed document is fine. */
void document_free(struct document *document);

/* The value of `key` in `object`; NULL if there is none, or if that is no object, or NULL. */
const struct json_value *document_member(const struct json_value *object, const char *key);

/* The same, but NULL also if the value is not of this type. */
const struct json_value *document_member_of(const struct json_value *object, const char *key,
                                            enum json_type type);

/* The number as an integer; 12, 12.0 and 1.2e1 are the same. Returns false if the value is not a
 * number or not integral; one beyond INT64_MAX or -INT64_MAX becomes that. */
bool document_integer(const struct json_value *value, int64_t *integer);

/* The member as such an integer; 0 if there is none, or it is no integer. */
static inline int64_t document_number(const struct json_value *object, const char *key)
{
    const struct json_value *value = document_member(object, key);
    int64_t number;

    return value != NULL && document_integer(value, &number) ? number : 0;
}

/* "an object", "null", "a string" ... Static. */
const char *document_type_name(enum json_type type);

/* Writes the path from the root to the value: pools[1].instances, limits["odd key"]; "" for the
 * root. Cut to `size - 1` bytes, NUL-terminated; `size` > 0. Returns the length written. */
size_t document_path(char *to, size_t size, const struct json_value *value);

/* --- JSON as editors have it in their settings: with comments and trailing commas. --- */

/* Replaces each comment, each comma between a value and a closing bracket, and a byte order mark by
 * spaces. All other bytes keep their lines, and their columns but for those after a mark or comment
 * that is not ASCII. Text that is no JSON all the same stays none. */
void comments_blank(char *text, size_t len);

#endif
