/* The tables of stdio_bus ctl. */
#include "build_config.h"

#include "cli/ctl_table.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/terminal.h"
#include "cli/ctl_columns.h"
#include "suite.h"

#define LONG                                                                                       \
    "a very long name, \xc3\xa9\xe4\xbd\xa0, as of a program that has much to say of itself"
#define LARGE "9223372036854775807"

/* The table of a list of this JSON, NUL-terminated, to be freed. */
static char *table_of(const char *json, const struct ctl_column *columns, size_t width)
{
    struct json_text to = {.data = NULL};
    struct document document;
    struct document_error error;

    ck_assert_int_eq(document_read(&document, slice_of_text(json), &error), 0);
    ctl_table_add_list(&to, document.root, columns, width);
    json_text_add(&to, slice_of("", 1));
    ck_assert(!to.failed);
    document_free(&document);
    return to.data;
}

/* --- cells --- */

static const struct {
    const char *value;
    enum ctl_kind kind;
    const char *cell;
} cells[] = {
    {"9999999", CTL_COUNT, "9999999"}, {"10000000", CTL_COUNT, "10.0M"},
    {"99949999", CTL_COUNT, "99.9M"},  {"99950000", CTL_COUNT, "100M"},
    {"999499999", CTL_COUNT, "999M"},  {"999500000", CTL_COUNT, "1.0G"},
    {LARGE, CTL_COUNT, "9.2E"},        {LARGE, CTL_NUMBER, LARGE},
    {"-5", CTL_COUNT, "-5"},           {"1023", CTL_BYTES, "1023 B"},
    {"1024", CTL_BYTES, "1.0 KiB"},    {"102348", CTL_BYTES, "99.9 KiB"},
    {"102349", CTL_BYTES, "100 KiB"},  {"1048063", CTL_BYTES, "1023 KiB"},
    {"1048064", CTL_BYTES, "1.0 MiB"}, {LARGE, CTL_BYTES, "8.0 EiB"},
    {"0", CTL_PROCESS, "-"},           {"-1", CTL_TIME, "-"},
    {"9999", CTL_TIME, "9.999 s"},     {"null", CTL_COUNT, "-"},
    {"true", CTL_BOOLEAN, "yes"},      {"\"\\u001b[2J\"", CTL_TEXT, "\\x1b[2J"},
};

TEST_ROWS(ctl_cells, COUNT(cells))
{
    char cell[CTL_CELL_MAX];
    struct document document;
    struct document_error error;

    ck_assert_int_eq(document_read(&document, slice_of_text(cells[row].value), &error), 0);
    ctl_cell(cell, document.root, cells[row].kind);
    ck_assert_str_eq(cell, cells[row].cell);
    document_free(&document);
}

/* --- tables --- */

static void expect_width(const char *table, size_t width)
{
    for (const char *at = table, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char line[512];

        ck_assert_uint_lt((size_t)(end - at), sizeof line);
        memcpy(line, at, (size_t)(end - at));
        line[end - at] = '\0';
        ck_assert_msg(terminal_columns(line) <= width, "more than %zu columns: %s", width, line);
        ck_assert_msg(end == at || end[-1] != ' ', "a blank at the end: %s", line);
    }
}

static const struct {
    const struct ctl_column *columns;
    const char *titles[8]; /* of 80 columns, with long texts and large numbers */
} tables[] = {
    {ctl_pool_columns, {"POOL", "RUNNING", "OF", "FAILED", "REQUESTS", "RESTARTS", "URL"}},
    {ctl_worker_columns, {"WORKER", "POOL", "STATE", "PID", "REQUESTS"}},
    {ctl_client_columns, {"CLIENT", "PROGRAM", "PEER", "REQUESTS"}},
    {ctl_session_columns, {"SESSION", "CLIENT", "WORKER"}},
    {ctl_request_columns, {"REQUEST", "FROM", "TO", "AGE"}},
};

/* An element of the list, each of whose texts is long and each of whose numbers is large. */
static void add_extreme(struct json_text *json, const struct ctl_column *columns)
{
    json_text_literal(json, "{");
    for (size_t i = 0; columns[i].key != NULL; i++)
        json_text_format(json, "%s\"%s\":%s", i > 0 ? "," : "", columns[i].key,
                         columns[i].kind == CTL_TEXT      ? "\"" LONG "\""
                         : columns[i].kind == CTL_BOOLEAN ? "false"
                                                          : LARGE);
    json_text_literal(json, "}");
}

static char *extreme_table(const struct ctl_column *columns, size_t width)
{
    struct json_text json = {.data = NULL};
    char *table;

    json_text_literal(&json, "[{},");
    add_extreme(&json, columns);
    json_text_add(&json, slice_of("]", 2));
    table = table_of(json.data, columns, width);
    json_text_free(&json);
    return table;
}

/* Whether the first line has this title, between blanks. */
static bool has_title(const char *table, const char *title)
{
    size_t line = strcspn(table, "\n"), len = strlen(title);
    const char *at = table;

    while ((at = strstr(at, title)) != NULL && at < table + line) {
        if ((at == table || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\n'))
            return true;
        at += len;
    }
    return false;
}

TEST_ROWS(ctl_table_of_long_names_and_large_numbers_fits, COUNT(tables))
{
    char *table = extreme_table(tables[row].columns, 80);

    expect_width(table, 80);
    for (size_t i = 0; tables[row].titles[i] != NULL; i++)
        ck_assert_msg(has_title(table, tables[row].titles[i]), "no %s: %s", tables[row].titles[i],
                      table);
    ck_assert_ptr_nonnull(strstr(table, "a very lo"));
    ck_assert_ptr_nonnull(strstr(table, "..."));
    free(table);
}

/* The wider the terminal, the more columns it shows; with room for all, nothing is cut. */
TEST_ROWS(ctl_table_uses_the_width, COUNT(tables))
{
    size_t before = 0;

    for (size_t width = 60; width <= 500; width += 5) {
        char *table = extreme_table(tables[row].columns, width);
        size_t titles = 0;

        expect_width(table, width);
        for (size_t i = 0; tables[row].columns[i].key != NULL; i++)
            titles += has_title(table, tables[row].columns[i].title);
        ck_assert_uint_ge(titles, before);
        before = titles;
        if (width == 500) {
            ck_assert_ptr_null(strstr(table, "..."));
            for (size_t i = 0; tables[row].columns[i].key != NULL; i++)
                ck_assert(has_title(table, tables[row].columns[i].title));
        }
        free(table);
    }
}

TEST(ctl_table_shares_the_room_among_texts)
{
    char *table = table_of("[{\"session\":\"0123456789abcdef0123456789abcdef\","
                           "\"client\":\"client=1\",\"worker\":\"worker=2 pid=4711 and more\"}]",
                           ctl_session_columns, 50);

    ck_assert_str_eq(table, "SESSION              CLIENT    WORKER\n"
                            "0123456789abcdef...  client=1  worker=2 pid=471...\n");
    free(table);
}

TEST(ctl_table_without_rows)
{
    char *table = table_of("[]", ctl_request_columns, 80);

    ck_assert_str_eq(table, "REQUEST  FROM  TO  AGE\n");
    free(table);
}

/* --- the terminal --- */

TEST(terminal_cuts_after_a_character)
{
    static const char *const shown[] = {"",
                                        "\xc3\xa9",
                                        "\xc3\xa9\xe4\xbd\xa0",
                                        "\xc3\xa9\xe4\xbd\xa0"
                                        "a",
                                        "\xc3\xa9...",
                                        "\xc3\xa9\xe4\xbd\xa0"
                                        "abc"};

    for (size_t columns = 0; columns < COUNT(shown); columns++) {
        char text[] = "\xc3\xa9\xe4\xbd\xa0"
                      "abc";

        terminal_cut(text, columns);
        ck_assert_str_eq(text, shown[columns]);
    }
}

TEST(terminal_width_is_that_of_the_terminal)
{
    struct winsize size = {.ws_row = 24, .ws_col = 133};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);

    if (terminal < 0) /* no /dev/pts */
        return;
    ck_assert_uint_eq(terminal_width(terminal), TERMINAL_WIDTH); /* 0: it does not say */
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    ck_assert_uint_eq(terminal_width(terminal), 133);
    close(terminal);
    ck_assert_uint_eq(terminal_width(terminal), TERMINAL_WIDTH);
}
