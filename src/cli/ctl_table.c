#include "build_config.h"

#include "cli/ctl_table.h"

#include <stdio.h>
#include <string.h>

#include "base/terminal.h"

#define COLUMNS_MAX 16
#define GAP 2         /* between two columns */
#define TEXT_LEAST 12 /* where a column has none of its own */

/* Three digits, or four: "12.3", "1023". */
static void write_scaled(char to[CTL_CELL_MAX], double value, const char *separator,
                         const char *unit)
{
    snprintf(to, CTL_CELL_MAX, value < 99.95 ? "%.1f%s%s" : "%.0f%s%s", value, separator, unit);
}

static void write_bytes(char to[CTL_CELL_MAX], int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1023.5 && unit < sizeof units / sizeof units[0] - 1) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(to, CTL_CELL_MAX, "%lld B", (long long)bytes);
    else
        write_scaled(to, value, " ", units[unit]);
}

static void write_count(char to[CTL_CELL_MAX], int64_t count)
{
    static const char *const units[] = {"M", "G", "T", "P", "E"};
    double value = (double)count / 1000000;
    size_t unit = 0;

    if (count < 10000000) {
        snprintf(to, CTL_CELL_MAX, "%lld", (long long)count);
        return;
    }
    for (; value >= 999.5; unit++)
        value /= 1000;
    write_scaled(to, value, "", units[unit]);
}

static void write_time(char to[CTL_CELL_MAX], int64_t ms)
{
    long long seconds = (long long)ms / 1000;

    if (ms < 0)
        snprintf(to, CTL_CELL_MAX, "-");
    else if (ms < 10000)
        snprintf(to, CTL_CELL_MAX, "%lld.%03lld s", seconds, (long long)ms % 1000);
    else if (seconds < 120)
        snprintf(to, CTL_CELL_MAX, "%lld s", seconds);
    else if (seconds < 7200)
        snprintf(to, CTL_CELL_MAX, "%lld min", seconds / 60);
    else if (seconds < 172800)
        snprintf(to, CTL_CELL_MAX, "%lld h", seconds / 3600);
    else
        snprintf(to, CTL_CELL_MAX, "%lld d", seconds / 86400);
}

void ctl_number(char to[CTL_CELL_MAX], int64_t number, enum ctl_kind kind)
{
    if (kind == CTL_BYTES)
        write_bytes(to, number);
    else if (kind == CTL_COUNT)
        write_count(to, number);
    else if (kind == CTL_TIME)
        write_time(to, number);
    else if (kind == CTL_PROCESS && number <= 0)
        snprintf(to, CTL_CELL_MAX, "-");
    else
        snprintf(to, CTL_CELL_MAX, "%lld", (long long)number);
}

void ctl_cell(char to[CTL_CELL_MAX], const struct json_value *value, enum ctl_kind kind)
{
    int64_t number = 0;

    snprintf(to, CTL_CELL_MAX, "-");
    if (value == NULL || value->type == JSON_NULL)
        return;
    if (value->type == JSON_STRING)
        terminal_text(to, CTL_CELL_MAX, value->text);
    else if (value->type == JSON_BOOLEAN)
        snprintf(to, CTL_CELL_MAX, "%s", value->boolean ? "yes" : "no");
    else if (document_integer(value, &number))
        ctl_number(to, number, kind);
}

/* --- the widths of the columns --- */

/* What the columns are without any limit, the least that they can be, and what they become. */
struct layout {
    size_t natural[COLUMNS_MAX], width[COLUMNS_MAX];
    bool left_out[COLUMNS_MAX];
};

static void widen(size_t *width, size_t to)
{
    if (*width < to)
        *width = to;
}

/* To which the column may be cut. */
static size_t least_of(const struct ctl_column *column, size_t natural)
{
    size_t least = column->least > 0 ? column->least : TEXT_LEAST;

    return column->kind == CTL_TEXT && natural > least ? least : natural;
}

static void measure(struct layout *layout, const struct ctl_rows *rows,
                    const struct ctl_column *columns)
{
    const void *row;
    char cell[CTL_CELL_MAX];
    size_t i;

    for (i = 0; columns[i].key != NULL; i++) {
        layout->left_out[i] = columns[i].rank > 0 && columns[i].kind == CTL_TEXT &&
                              rows->first != NULL;
        layout->natural[i] = strlen(columns[i].title);
        if (columns[i].kind != CTL_TEXT)
            widen(&layout->natural[i], columns[i].least);
    }
    for (row = rows->first; row != NULL; row = rows->next(row)) {
        for (i = 0; columns[i].key != NULL; i++) {
            rows->cell(cell, row, &columns[i]);
            widen(&layout->natural[i], terminal_columns(cell));
            layout->left_out[i] = layout->left_out[i] && strcmp(cell, "-") == 0;
        }
    }
    for (i = 0; columns[i].key != NULL; i++)
        layout->width[i] = least_of(&columns[i], layout->natural[i]);
}

static size_t width_of(const struct layout *layout, const struct ctl_column *columns)
{
    size_t sum = 0, i;

    for (i = 0; columns[i].key != NULL; i++) {
        if (!layout->left_out[i])
            sum += layout->width[i] + (sum > 0 ? GAP : 0);
    }
    return sum;
}

/* False: there are only those of rank 0. */
static bool leave_out(struct layout *layout, const struct ctl_column *columns)
{
    unsigned highest = 0;
    size_t i;

    for (i = 0; columns[i].key != NULL; i++) {
        if (!layout->left_out[i] && columns[i].rank > highest)
            highest = columns[i].rank;
    }
    for (i = 0; highest > 0 && columns[i].key != NULL; i++)
        layout->left_out[i] = layout->left_out[i] || columns[i].rank == highest;
    return highest > 0;
}

/* The narrowest of the texts that are cut; the number of columns if none is. */
static size_t narrowest(const struct layout *layout, const struct ctl_column *columns)
{
    size_t i, found = COLUMNS_MAX;

    for (i = 0; columns[i].key != NULL; i++) {
        if (!layout->left_out[i] && layout->width[i] < layout->natural[i] &&
            (found == COLUMNS_MAX || layout->width[i] < layout->width[found]))
            found = i;
    }
    return found;
}

static void fit(struct layout *layout, const struct ctl_column *columns, size_t width)
{
    size_t used, i;

    while (width_of(layout, columns) > width && leave_out(layout, columns))
        ;
    for (used = width_of(layout, columns); used < width; used++) {
        i = narrowest(layout, columns);
        if (i == COLUMNS_MAX)
            return;
        layout->width[i]++;
    }
}

/* --- the table --- */

static void pad(struct json_text *to, size_t width, size_t len)
{
    for (; len < width; len++)
        json_text_literal(to, " ");
}

void ctl_table_cell(struct json_text *to, const char *cell, enum ctl_kind kind, size_t width)
{
    if (kind != CTL_TEXT)
        pad(to, width, terminal_columns(cell));
    json_text_literal(to, cell);
    if (kind == CTL_TEXT)
        pad(to, width, terminal_columns(cell));
}

static bool is_last(const struct layout *layout, const struct ctl_column *columns, size_t i)
{
    do
        i++;
    while (columns[i].key != NULL && layout->left_out[i]);
    return columns[i].key == NULL;
}

/* A row, or the titles. No blanks at the end of a line. */
static void add_line(struct json_text *to, const struct ctl_rows *rows, const void *row,
                     const struct ctl_column *columns, const struct layout *layout)
{
    char cell[CTL_CELL_MAX];
    size_t i;

    for (i = 0; columns[i].key != NULL; i++) {
        bool ends = is_last(layout, columns, i);

        if (layout->left_out[i])
            continue;
        if (row != NULL)
            rows->cell(cell, row, &columns[i]);
        else
            snprintf(cell, sizeof cell, "%s", columns[i].title);
        terminal_cut(cell, layout->width[i]);
        ctl_table_cell(to, cell, columns[i].kind,
                       ends && columns[i].kind == CTL_TEXT ? 0 : layout->width[i]);
        pad(to, ends ? 0 : GAP, 0);
    }
    json_text_literal(to, "\n");
}

void ctl_table_add(struct json_text *to, const struct ctl_rows *rows,
                   const struct ctl_column *columns, size_t width)
{
    struct layout layout = {.natural = {0}};
    const void *row;

    measure(&layout, rows, columns);
    fit(&layout, columns, width);
    add_line(to, rows, NULL, columns, &layout);
    for (row = rows->first; row != NULL; row = rows->next(row))
        add_line(to, rows, row, columns, &layout);
}

/* --- of JSON --- */

static const void *next_value(const void *row)
{
    return ((const struct json_value *)row)->next;
}

static void member_cell(char to[CTL_CELL_MAX], const void *row, const struct ctl_column *column)
{
    ctl_cell(to, document_member(row, column->key), column->kind);
}

void ctl_table_add_list(struct json_text *to, const struct json_value *list,
                        const struct ctl_column *columns, size_t width)
{
    const struct ctl_rows rows = {list->first, next_value, member_cell};

    ctl_table_add(to, &rows, columns, width);
}
