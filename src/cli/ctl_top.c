#include "build_config.h"

#include "cli/ctl_top.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/terminal.h"
#include "cli/ctl_table.h"

#define INTERVAL_MS 1000
#define ROWS 10
#define DRAINED ", drained"
#define ALL "{\"limit\":10000}"

/* A client or a worker, and what it has carried since the last look. */
struct row {
    int64_t number, messages, bytes;
    int64_t rate, bytes_rate; /* a second */
    char program[48], name[48], state[40];
    int64_t requests, queue;
    const struct row *next; /* that is shown */
};

struct rows {
    struct row *at;
    size_t count, capacity;
};

static void read_row(struct row *row, const struct json_value *object, bool is_worker)
{
    const struct json_value *drained;
    char cell[CTL_CELL_MAX];

    *row = (struct row){
        .number = document_number(object, is_worker ? "worker" : "client"),
        .messages = document_number(object, "messages_in") +
                    document_number(object, "messages_out"),
        .bytes = document_number(object, "bytes_in") + document_number(object, "bytes_out"),
        .requests = document_number(object, "requests"),
        .queue = document_number(object, "queue"),
    };
    ctl_cell(cell, document_member(object, "program"), CTL_TEXT);
    terminal_text(row->program, sizeof row->program, slice_of_text(cell));
    ctl_cell(cell, document_member(object, is_worker ? "pool" : "peer"), CTL_TEXT);
    terminal_text(row->name, sizeof row->name, slice_of_text(cell));
    ctl_cell(cell, document_member(object, is_worker ? "state" : "held_for"), CTL_TEXT);
    drained = document_member(object, "drained");
    terminal_text(row->state, sizeof row->state - strlen(DRAINED), slice_of_text(cell));
    if (drained != NULL && drained->boolean)
        memcpy(row->state + strlen(row->state), DRAINED, sizeof DRAINED);
}

/* False: the daemon did not answer, or out of memory. */
static bool read_rows(struct control_link *link, struct rows *rows, bool is_worker)
{
    const char *name = is_worker ? "workers" : "clients";
    struct slice line;
    const struct json_value *result = control_link_ask(link, name, ALL, &line), *list, *object;
    struct row *grown;

    list = result != NULL ? document_member(result, name) : NULL;
    if (list == NULL)
        return false;
    rows->count = 0;
    grown = array_grow(rows->at, &rows->capacity, list->count + 1, sizeof *rows->at);
    if (grown == NULL) {
        snprintf(link->reason, sizeof link->reason, "out of memory");
        return false;
    }
    rows->at = grown;
    for (object = list->first; object != NULL; object = object->next)
        read_row(&rows->at[rows->count++], object, is_worker);
    return true;
}

static int by_number(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static int by_rate(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->bytes_rate != y->bytes_rate && x->rate == y->rate)
        return x->bytes_rate < y->bytes_rate ? 1 : -1;
    return (x->rate < y->rate) - (x->rate > y->rate);
}

/* The difference to what there was before; both are per second. */
static void compare(struct rows *now, const struct rows *before)
{
    size_t i;

    for (i = 0; i < now->count; i++) {
        struct row *row = &now->at[i];
        const struct row *old = before->count > 0 ? bsearch(row, before->at, before->count,
                                                            sizeof *before->at, by_number)
                                                  : NULL;

        row->rate = row->messages - (old != NULL ? old->messages : 0);
        row->bytes_rate = row->bytes - (old != NULL ? old->bytes : 0);
    }
    qsort(now->at, now->count, sizeof *now->at, by_rate);
}

/* Widths that last from one frame to the next, as a rule. */
#define RATES                                                                                      \
    {"rate", "MSGS/S", CTL_COUNT, 0, 7}, {"bytes_rate", "BYTES/S", CTL_BYTES, 0, 8},               \
        {"requests", "REQUESTS", CTL_COUNT, 1, 0},                                                 \
    {                                                                                              \
        "queue", "QUEUE", CTL_BYTES, 3, 8                                                          \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, CTL_TEXT, 0, 0                                                                 \
    }

static const struct ctl_column client_columns[] = {
    {"number", "CLIENT", CTL_NUMBER, 0, 0}, RATES,
    {"program", "PROGRAM", CTL_TEXT, 0, 0}, {"name", "PEER", CTL_TEXT, 4, 24},
    {"state", "HELD FOR", CTL_TEXT, 2, 0},  END,
};

static const struct ctl_column worker_columns[] = {
    {"number", "WORKER", CTL_NUMBER, 0, 0}, RATES, {"name", "POOL", CTL_TEXT, 0, 0},
    {"state", "STATE", CTL_TEXT, 0, 0},     END,
};

static const void *next_row(const void *row)
{
    return ((const struct row *)row)->next;
}

static const char *text_of(const struct row *row, const char *key)
{
    if (strcmp(key, "program") == 0)
        return row->program;
    return strcmp(key, "name") == 0 ? row->name : row->state;
}

static int64_t number_of(const struct row *row, const char *key)
{
    if (strcmp(key, "number") == 0)
        return row->number;
    if (strcmp(key, "rate") == 0)
        return row->rate;
    if (strcmp(key, "bytes_rate") == 0)
        return row->bytes_rate;
    return strcmp(key, "requests") == 0 ? row->requests : row->queue;
}

static void row_cell(char to[CTL_CELL_MAX], const void *row, const struct ctl_column *column)
{
    if (column->kind == CTL_TEXT)
        snprintf(to, CTL_CELL_MAX, "%s", text_of(row, column->key));
    else
        ctl_number(to, number_of(row, column->key), column->kind);
}

static void add_rows(struct json_text *to, struct rows *rows, bool is_worker, size_t width)
{
    struct ctl_rows shown = {NULL, next_row, row_cell};
    size_t i;

    for (i = rows->count < ROWS ? rows->count : ROWS; i > 0; i--) {
        rows->at[i - 1].next = shown.first;
        shown.first = &rows->at[i - 1];
    }
    json_text_literal(to, "\n");
    ctl_table_add(to, &shown, is_worker ? worker_columns : client_columns, width);
    if (rows->count > ROWS)
        json_text_format(to, "... %zu in all\n", rows->count);
}

static void add_head(struct json_text *to, const struct json_value *status)
{
    char runs[CTL_CELL_MAX], memory[CTL_CELL_MAX], version[CTL_CELL_MAX];

    ctl_cell(version, document_member(status, "version"), CTL_TEXT);
    ctl_cell(runs, document_member(status, "runs_ms"), CTL_TIME);
    ctl_cell(memory, document_member(status, "memory"), CTL_BYTES);
    json_text_literal(to, "stdio_bus ");
    json_text_literal(to, version);
    json_text_format(to, ", process %lld, runs for %s\n", (long long)document_number(status, "pid"),
                     runs);
    json_text_format(to, "%lld clients, %lld requests, %lld sessions, buffers %s\n",
                     (long long)document_number(status, "clients"),
                     (long long)document_number(status, "requests"),
                     (long long)document_number(status, "sessions"), memory);
}

bool ctl_top_frame(struct control_link *link, struct json_text *to, size_t width)
{
    struct rows before[2] = {{.at = NULL}, {.at = NULL}}, now[2] = {{.at = NULL}, {.at = NULL}};
    const struct json_value *status;
    struct slice line;
    bool good = read_rows(link, &before[0], false) && read_rows(link, &before[1], true);
    int i;

    if (good)
        poll(NULL, 0, INTERVAL_MS);
    good = good && read_rows(link, &now[0], false) && read_rows(link, &now[1], true);
    status = good ? control_link_ask(link, "status", NULL, &line) : NULL;
    if (status != NULL)
        add_head(to, status);
    for (i = 0; i < 2; i++) {
        if (status != NULL) {
            compare(&now[i], &before[i]);
            add_rows(to, &now[i], i == 1, width);
        }
        free(before[i].at);
        free(now[i].at);
    }
    return status != NULL;
}
