/* Reports of the problems of a configuration: "FILE:LINE:COLUMN: KEY.PATH: what is wrong". */
#ifndef STDIO_BUS_CONFIG_DIAGNOSTICS_H
#define STDIO_BUS_CONFIG_DIAGNOSTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "json/document.h"

#define DIAGNOSTICS_PLACE_MAX 300

/* Gets each problem. `text` is one complete line without newline:
 * "FILE:LINE:COLUMN: pools[1].instances: must be an integer >= 1". */
typedef void diagnostics_fn(void *user_data, bool is_error, const char *text);

struct sources;

struct diagnostics {
    const char *name; /* of the file */
    bool is_file;     /* the name is a path */
    diagnostics_fn *report;
    void *user_data;
    size_t errors;           /* reported so far */
    struct sources *sources; /* of the files that are read; NULL: their texts are not kept */
};

/* A problem of the file as a whole: "FILE: TEXT". */
void diagnostics_file(struct diagnostics *diagnostics, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The error of document_read. */
void diagnostics_syntax(struct diagnostics *diagnostics, const struct document_error *error);

/* A value that breaks a rule. */
void diagnostics_value(struct diagnostics *diagnostics, const struct json_value *value,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A required key that `object` lacks; the position is the object's. */
void diagnostics_missing(struct diagnostics *diagnostics, const struct json_value *object,
                         const char *key);

/* A warning about a key; `member` is its value. */
void diagnostics_warn(struct diagnostics *diagnostics, const struct json_value *member,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Where a value is, for a report about `other`: "3:7", or "FILE:3:7" if the files differ. */
const char *diagnostics_place(char to[DIAGNOSTICS_PLACE_MAX], const struct diagnostics *diagnostics,
                              const struct json_value *value, const struct json_value *other);

/* Whether the key of a member is for other readers: "_comment", "$schema" and the like. */
bool diagnostics_is_comment(const struct json_value *member);

/* Checks the type of a value and reports a wrong one. `wanted` is the type in words, as in "true or
 * false". */
bool diagnostics_check_type(struct diagnostics *diagnostics, const struct json_value *value,
                            enum json_type type, const char *wanted);

/* The same for a string, which must have no NUL. */
bool diagnostics_check_string(struct diagnostics *diagnostics, const struct json_value *value);

#endif
