/* The key "include": files with further pools. */
#ifndef STDIO_BUS_CONFIG_INCLUDE_H
#define STDIO_BUS_CONFIG_INCLUDE_H

#include "config/diagnostics.h"

struct included_file;

struct includes {
    struct included_file *first, *last;
};

/* Checks the type of the key. */
void include_check(struct diagnostics *diagnostics, const struct json_value *include);

/* Reads the files that a document includes, and moves their pools to those of the document, which
 * is freed before includes_free. Errors are reported. */
void includes_read(struct includes *includes, struct json_value *root,
                   struct diagnostics *diagnostics);

/* Zeroed ones are fine. */
void includes_free(struct includes *includes);

#endif
