/* A configuration that is read from memory, and the reports about it. */
#ifndef CHECK_CONFIG_FIXTURE_H
#define CHECK_CONFIG_FIXTURE_H

#include "base/error.h"
#include "config/config.h"
#include "suite.h"

/* One pool, whose further members begin at 2:1. */
#define POOL "{\"pools\": [{\"id\": \"a\", \"command\": \"%s\", \"instances\": 1,\n%s}]}"

static struct config config;
static char reports[16384]; /* one line each: 'E' or 'W', a blank, the text */

static inline void note_report(void *user_data, bool is_error, const char *text)
{
    size_t used = strlen(reports);

    ck_assert_ptr_eq(user_data, reports);
    ck_assert_ptr_null(strchr(text, '\n'));
    snprintf(reports + used, sizeof reports - used, "%c %s\n", is_error ? 'E' : 'W', text);
}

static inline void free_config(void)
{
    config_free(&config);
    reports[0] = '\0';
}

static inline void expect_nothing(void)
{
    static const struct config nothing;

    ck_assert_ptr_null(config.pools);
    ck_assert_uint_eq(config.pool_count, 0);
    ck_assert_mem_eq(&config.limits, &nothing.limits, sizeof nothing.limits);
    ck_assert(!config.strict);
}

/* The reports are `expected`, and with an error among them nothing is left. */
static inline void expect(int code, const char *expected)
{
    ck_assert_str_eq(reports, expected);
    if (strncmp(expected, "E ", 2) == 0 || strstr(expected, "\nE ") != NULL) {
        ck_assert_int_eq(code, STDIO_BUS_EINVAL);
        expect_nothing();
    } else {
        ck_assert_int_eq(code, STDIO_BUS_OK);
    }
}

static inline void expect_text(const char *text, const char *expected)
{
    free_config();
    expect(config_read_text(&config, text, strlen(text), "c.json", note_report, reports), expected);
}

static inline void expect_command(const char *command, const char *members, const char *expected)
{
    char text[4096];

    snprintf(text, sizeof text, POOL, command, members);
    expect_text(text, expected);
}

/* The report that the program is not in PATH. Static. */
static inline const char *not_in_path(const char *at, const char *name, int error, const char *path)
{
    static char text[2048];

    snprintf(text, sizeof text,
             "E %s: cannot run \"%s\", looked up in PATH: %s; if \"command -v %s\" in a terminal "
             "prints a path, write that; PATH is \"%s\"\n",
             at, name, strerror(error), name, path);
    return text;
}

#endif
