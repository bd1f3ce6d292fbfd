/* Lists of objects as tables, for a terminal. A table is as wide as the terminal at most. If its
 * columns need more, long texts are cut, and then columns are left out, those of the highest rank
 * first; so are those of text in which no row has anything, unless their rank is 0. */
#ifndef STDIO_BUS_CLI_CTL_TABLE_H
#define STDIO_BUS_CLI_CTL_TABLE_H

#include <stdbool.h>

#include "json/document.h"
#include "json/text.h"

enum ctl_kind {
    CTL_TEXT,
    CTL_NUMBER,  /* with all its digits */
    CTL_COUNT,   /* a large one is shortened */
    CTL_PROCESS, /* 0: none */
    CTL_BYTES,
    CTL_TIME, /* milliseconds; negative: none */
    CTL_BOOLEAN
};

struct ctl_column {
    const char *key, *title; /* the key NULL: the last column was before */
    enum ctl_kind kind;
    unsigned char rank; /* 0: it is never left out */
    unsigned char
        least; /* a number is so wide even if no cell is; a longer text is cut to this before
                     * another column is left out. 0: no matter; 12 */
};

#define CTL_CELL_MAX 160

/* The value as text: without control characters, whatever a client has sent. */
void ctl_cell(char to[CTL_CELL_MAX], const struct json_value *value, enum ctl_kind kind);
void ctl_number(char to[CTL_CELL_MAX], int64_t number, enum ctl_kind kind);

/* Adds a cell: text begins at the left, anything else ends at the right. */
void ctl_table_cell(struct json_text *to, const char *cell, enum ctl_kind kind, size_t width);

/* The rows of a table, of any type. */
struct ctl_rows {
    const void *first; /* NULL: none */
    const void *(*next)(const void *row);
    void (*cell)(char to[CTL_CELL_MAX], const void *row, const struct ctl_column *column);
};

/* Adds the titles and a line for each row, none of more columns of a terminal than `width`, unless
 * the columns of rank 0 alone have more. */
void ctl_table_add(struct json_text *to, const struct ctl_rows *rows,
                   const struct ctl_column *columns, size_t width);

/* The same of an array of objects. */
void ctl_table_add_list(struct json_text *to, const struct json_value *list,
                        const struct ctl_column *columns, size_t width);

#endif
