/* Lists of objects as tables, for a terminal. */
#ifndef STDIO_BUS_CLI_CTL_TABLE_H
#define STDIO_BUS_CLI_CTL_TABLE_H

#include <stdbool.h>

#include "json/document.h"
#include "json/text.h"

enum ctl_kind {
    CTL_TEXT,
    CTL_NUMBER,
    CTL_PROCESS, /* 0: none */
    CTL_BYTES,
    CTL_TIME, /* milliseconds; negative: none */
    CTL_BOOLEAN
};

struct ctl_column {
    const char *key, *title; /* the key NULL: the last column was before */
    enum ctl_kind kind;
};

#define CTL_CELL_MAX 160

/* The value as text: without control characters, whatever a client has sent. */
void ctl_cell(char to[CTL_CELL_MAX], const struct json_value *value, enum ctl_kind kind);

/* Adds a cell: text begins at the left, anything else ends at the right. */
void ctl_table_cell(struct json_text *to, const char *cell, enum ctl_kind kind, size_t width);

/* Adds the objects, a line each. */
void ctl_table_add(struct json_text *to, const struct json_value *list,
                   const struct ctl_column *columns);

#endif
