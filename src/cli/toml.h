/* TOML 1.0, as the configurations of programs have it: tables, arrays of tables, dotted keys,
 * strings of all four kinds, arrays, inline tables and comments. Numbers and dates are kept as they
 * are written, and not checked. */
#ifndef STDIO_BUS_CLI_TOML_H
#define STDIO_BUS_CLI_TOML_H

#include "json/document.h"

#define TOML_MAX_DEPTH 64 /* arrays and inline tables within each other */

struct toml {
    struct json_value *root; /* tables are objects; numbers and dates are JSON_NUMBER */
    struct toml_node *nodes; /* of all values; the root is the last one */
};

/* Reads the text, whose line ends are LF or CRLF. Values and errors are as those of document_read,
 * with "there twice" for a key or table that was defined before; the text must outlive the values.
 * STDIO_BUS_EINVAL: place and reason are in *error; STDIO_BUS_ERR: out of memory. toml_free in any
 * case. */
int toml_read(struct toml *toml, struct slice source, struct document_error *error);

void toml_free(struct toml *toml);

#endif
