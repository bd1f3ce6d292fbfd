#include "build_config.h"

#include "cli/ctl_top.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/ctl_table.h"
#include "cli/screen.h"

#define INTERVAL_MS 1000
#define ROWS 10         /* of each table, where stdout is no terminal */
#define ROWS_MAX 100    /* where it is a tall one */
#define LINES_BESIDE 11 /* the rows of both tables */
#define BAR_WIDTH 8
#define DRAINED ", drained"
#define ALL "{\"limit\":10000}"

const char *const ctl_top_orders[] = {
    [TOP_BY_MESSAGES] = "messages", [TOP_BY_BYTES] = "bytes",  [TOP_BY_REQUESTS] = "requests",
    [TOP_BY_QUEUE] = "queue",       [TOP_BY_QUEUE + 1] = NULL,
};

/* A client or a worker, and what it has carried since the last look. */
struct row {
    int64_t number, messages, bytes;
    int64_t rate, bytes_rate; /* a second */
    char program[48], name[48], state[40];
    char bar[BAR_WIDTH + 1]; /* of the queue: the eighths of the limit that are taken */
    int64_t requests, queue;
    int64_t order; /* the number that the rows are sorted by */
    unsigned char style;
    const struct row *next; /* that is shown */
};

struct rows {
    struct row *at;
    size_t count, capacity;
};

enum { CLIENTS, WORKERS, KINDS };

struct top {
    struct control_link *link;
    enum ctl_top_order order;
    struct rows rows[KINDS];
    int64_t measured_ms; /* 0: not yet */
    size_t width, height;
    bool is_screen;
    struct screen_text out;
};

/* --- a look at the daemon --- */

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

/* False with link->reason: the daemon did not answer, or out of memory. */
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

static int by_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->order != y->order ? (x->order < y->order) - (x->order > y->order) : by_number(a, b);
}

/* Sets the rates: what there is more than in the rows of before, which are sorted by number. */
static void compare_rows(struct rows *now, const struct rows *before, int64_t elapsed_ms)
{
    size_t i;

    for (i = 0; i < now->count; i++) {
        struct row *row = &now->at[i];
        const struct row *old = before->count > 0 ? bsearch(row, before->at, before->count,
                                                            sizeof *before->at, by_number)
                                                  : NULL;

        row->rate = (row->messages - (old != NULL ? old->messages : 0)) * 1000 / elapsed_ms;
        row->bytes_rate = (row->bytes - (old != NULL ? old->bytes : 0)) * 1000 / elapsed_ms;
    }
}

/* Replaces the rows, with the rates since the last call. False with link->reason. */
static bool measure_top(struct top *top)
{
    int64_t now_ms = clock_now_ms();
    int64_t elapsed_ms = now_ms - top->measured_ms;
    int i;

    for (i = 0; i < KINDS; i++) {
        struct rows now = {.at = NULL}, *before = &top->rows[i];

        if (!read_rows(top->link, &now, i == WORKERS)) {
            free(now.at);
            return false;
        }
        if (before->count > 0)
            qsort(before->at, before->count, sizeof *before->at, by_number);
        compare_rows(&now, before, elapsed_ms > 0 ? elapsed_ms : 1);
        free(before->at);
        *before = now;
    }
    top->measured_ms = now_ms;
    return true;
}

/* --- what is shown --- */

/* Widths that last from one frame to the next, as a rule. */
#define RATES                                                                                      \
    {"rate", "MSGS/S", CTL_COUNT, 0, 7}, {"bytes_rate", "BYTES/S", CTL_BYTES, 0, 8},               \
        {"requests", "REQUESTS", CTL_COUNT, 1, 0}, {"queue", "QUEUE", CTL_BYTES, 3, 8},            \
    {                                                                                              \
        "bar", "FULL", CTL_TEXT, 3, BAR_WIDTH                                                      \
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
    if (strcmp(key, "bar") == 0)
        return row->bar;
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

/* Sets what the row is sorted by, its bar and its style. */
static void finish_row(struct row *row, const struct top *top, int64_t queue_max)
{
    const int64_t orders[] = {row->rate, row->bytes_rate, row->requests, row->queue};
    int64_t eighths = 0;

    if (row->queue > 0 && queue_max > 0)
        eighths = row->queue < queue_max ? 1 + row->queue * (BAR_WIDTH - 1) / queue_max : BAR_WIDTH;
    memset(row->bar, '#', (size_t)eighths);
    memset(row->bar + eighths, '.', (size_t)(BAR_WIDTH - eighths));
    row->bar[BAR_WIDTH] = '\0';
    row->order = orders[top->order];
    if (eighths == BAR_WIDTH || strncmp(row->state, "failed", 6) == 0)
        row->style = SCREEN_ERROR;
    else if (strncmp(row->state, "stopped", 7) == 0 || strstr(row->state, DRAINED) != NULL)
        row->style = SCREEN_DIM;
    else if (strcmp(row->state, "-") != 0 && strcmp(row->state, "running") != 0)
        row->style = SCREEN_WARNING; /* a client that is held; a worker that starts or ends */
    else
        row->style = SCREEN_PLAIN;
}

static void add_style(struct top *top, unsigned char style)
{
    if (top->out.count < SCREEN_LINES_MAX)
        top->out.styles[top->out.count++] = style;
}

static void add_rows(struct top *top, int kind, size_t most)
{
    struct json_text *to = &top->out.text;
    struct rows *rows = &top->rows[kind];
    struct ctl_rows shown = {NULL, next_row, row_cell};
    size_t i, count = rows->count < most ? rows->count : most;

    for (i = count; i > 0; i--) {
        rows->at[i - 1].next = shown.first;
        shown.first = &rows->at[i - 1];
    }
    json_text_literal(to, "\n");
    add_style(top, SCREEN_PLAIN);
    ctl_table_add(to, &shown, kind == WORKERS ? worker_columns : client_columns, top->width);
    add_style(top, SCREEN_HEAD);
    for (i = 0; i < count; i++)
        add_style(top, rows->at[i].style);
    if (rows->count > count) {
        json_text_format(to, "... %zu in all\n", rows->count);
        add_style(top, SCREEN_DIM);
    }
}

static void add_head(struct top *top, const struct json_value *status)
{
    struct json_text *to = &top->out.text;
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
    add_style(top, SCREEN_HEAD);
    add_style(top, SCREEN_PLAIN);
}

static void add_keys(struct top *top)
{
    json_text_format(&top->out.text,
                     "\nby %s; m: messages, b: bytes, r: requests, u: queue; q: end",
                     ctl_top_orders[top->order]);
    add_style(top, SCREEN_PLAIN);
    add_style(top, SCREEN_DIM);
}

/* How many rows each table may have: one that has few leaves its lines to the other. */
static void share_lines(const struct top *top, size_t most[KINDS])
{
    size_t lines = top->height > LINES_BESIDE + KINDS ? top->height - LINES_BESIDE : KINDS;
    size_t workers = top->rows[WORKERS].count, clients = top->rows[CLIENTS].count;

    most[CLIENTS] = most[WORKERS] = ROWS;
    if (!top->is_screen)
        return;
    most[WORKERS] = workers < lines / 2 ? workers : lines / 2;
    most[CLIENTS] = clients < lines - most[WORKERS] ? clients : lines - most[WORKERS];
    most[WORKERS] = workers < lines - most[CLIENTS] ? workers : lines - most[CLIENTS];
    for (int i = 0; i < KINDS; i++)
        most[i] = most[i] < ROWS_MAX ? most[i] : ROWS_MAX;
}

/* False with link->reason. */
static bool make_frame(struct top *top)
{
    struct slice line;
    const struct json_value *status = control_link_ask(top->link, "status", NULL, &line);
    size_t most[KINDS];
    int64_t queue_max;

    if (status == NULL)
        return false;
    top->out.count = 0;
    json_text_free(&top->out.text);
    top->width = terminal_width(STDOUT_FILENO);
    top->height = terminal_height(STDOUT_FILENO);
    queue_max = document_number(status, "max_output_queue");
    add_head(top, status);
    share_lines(top, most);
    for (int i = 0; i < KINDS; i++) {
        struct rows *rows = &top->rows[i];

        for (size_t row = 0; row < rows->count; row++)
            finish_row(&rows->at[row], top, queue_max);
        if (rows->count > 0)
            qsort(rows->at, rows->count, sizeof *rows->at, by_order);
        add_rows(top, i, most[i]);
    }
    if (top->is_screen)
        add_keys(top);
    return true;
}

/* Prints the frame. Returns the exit status, with link->reason unless it is EXIT_DONE. */
static int show_frame(struct top *top)
{
    struct json_text *text = &top->out.text;
    int status = STDIO_BUS_ERR;

    errno = ENOMEM;
    if (!text->failed && top->is_screen)
        status = screen_show(&top->out);
    else if (!text->failed &&
             terminal_lines(stdout, TERMINAL_TEXT, json_text_slice(text)) == STDIO_BUS_OK &&
             fflush(stdout) != EOF)
        status = STDIO_BUS_OK;
    if (status == STDIO_BUS_OK)
        return EXIT_DONE;
    snprintf(top->link->reason, sizeof top->link->reason, "cannot write to stdout: %s",
             strerror(errno));
    return EXIT_OS_ERROR;
}

static int next_frame(struct top *top)
{
    return make_frame(top) ? show_frame(top) : EXIT_NO_DAEMON;
}

/* Waits until it is time to measure again. False: q was typed, or stdin has ended. *status: that of
 * the frames that a key asked for. */
static bool wait_for_keys(struct top *top, int *status)
{
    int64_t until = top->measured_ms + INTERVAL_MS, left;

    while (*status == EXIT_DONE && (left = until - clock_now_ms()) > 0) {
        int key = screen_key((int)left);
        int order = 0;

        if (key == SCREEN_END || key == 'q' || key == 'Q' || key == 4 /* Ctrl-D */)
            return false;
        while (ctl_top_orders[order] != NULL && key != ctl_top_orders[order][0])
            order++;
        if (key == 'u') /* q is taken */
            order = TOP_BY_QUEUE;
        if (ctl_top_orders[order] != NULL)
            top->order = (enum ctl_top_order)order;
        if (ctl_top_orders[order] != NULL || key == SCREEN_REDRAW)
            *status = next_frame(top);
    }
    return true;
}

int ctl_top_run(struct control_link *link, enum ctl_top_order order)
{
    struct top top = {.link = link, .order = order};
    bool good = measure_top(&top);
    int status = good ? EXIT_DONE : EXIT_NO_DAEMON;

    if (good && !screen_open()) {
        poll(NULL, 0, INTERVAL_MS);
        status = measure_top(&top) ? next_frame(&top) : EXIT_NO_DAEMON;
    } else if (good) {
        top.is_screen = true;
        status = next_frame(&top); /* rates come with the next one */
        while (status == EXIT_DONE && wait_for_keys(&top, &status) && status == EXIT_DONE)
            status = measure_top(&top) ? next_frame(&top) : EXIT_NO_DAEMON;
        screen_close();
    }
    json_text_free(&top.out.text);
    free(top.rows[CLIENTS].at);
    free(top.rows[WORKERS].at);
    return status;
}
