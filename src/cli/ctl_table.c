#include "build_config.h"

#include "cli/ctl_table.h"

#include <stdio.h>
#include <string.h>

#include "base/terminal.h"

#define COLUMNS_MAX 16

static void write_bytes(char to[CTL_CELL_MAX], int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit < sizeof units / sizeof units[0] - 1) {
        value /= 1024;
        unit++;
    }
    snprintf(to, CTL_CELL_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
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

void ctl_cell(char to[CTL_CELL_MAX], const struct json_value *value, enum ctl_kind kind)
{
    int64_t number = 0;

    snprintf(to, CTL_CELL_MAX, "-");
    if (value == NULL || value->type == JSON_NULL)
        return;
    if (value->type == JSON_STRING) {
        terminal_text(to, CTL_CELL_MAX, value->text);
    } else if (value->type == JSON_BOOLEAN) {
        snprintf(to, CTL_CELL_MAX, "%s", value->boolean ? "yes" : "no");
    } else if (document_integer(value, &number)) {
        if (kind == CTL_BYTES)
            write_bytes(to, number);
        else if (kind == CTL_TIME)
            write_time(to, number);
        else if (kind != CTL_PROCESS || number > 0)
            snprintf(to, CTL_CELL_MAX, "%lld", (long long)number);
    }
}

static void measure(size_t widths[COLUMNS_MAX], const struct json_value *list,
                    const struct ctl_column *columns)
{
    const struct json_value *row;
    char cell[CTL_CELL_MAX];
    size_t i;

    for (i = 0; columns[i].key != NULL; i++)
        widths[i] = strlen(columns[i].title);
    for (row = list->first; row != NULL; row = row->next) {
        for (i = 0; columns[i].key != NULL; i++) {
            ctl_cell(cell, document_member(row, columns[i].key), columns[i].kind);
            if (terminal_columns(cell) > widths[i])
                widths[i] = terminal_columns(cell);
        }
    }
}

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

/* No blanks at the end of a line. */
static void add_cell(struct json_text *to, const char *cell, const struct ctl_column *column,
                     size_t width)
{
    bool is_last = column[1].key == NULL;

    ctl_table_cell(to, cell, column->kind, is_last && column->kind == CTL_TEXT ? 0 : width);
    json_text_literal(to, is_last ? "\n" : "  ");
}

void ctl_table_add(struct json_text *to, const struct json_value *list,
                   const struct ctl_column *columns)
{
    size_t widths[COLUMNS_MAX] = {0}, i;
    const struct json_value *row;
    char cell[CTL_CELL_MAX];

    measure(widths, list, columns);
    for (i = 0; columns[i].key != NULL; i++)
        add_cell(to, columns[i].title, &columns[i], widths[i]);
    for (row = list->first; row != NULL; row = row->next) {
        for (i = 0; columns[i].key != NULL; i++) {
            ctl_cell(cell, document_member(row, columns[i].key), columns[i].kind);
            add_cell(to, cell, &columns[i], widths[i]);
        }
    }
}
