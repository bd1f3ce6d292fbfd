/* How a problem of the configuration is told: "FILE:LINE:COLUMN: KEY.PATH: what is wrong". */
#ifndef STDIO_BUS_CONFIG_REPORT_H
#define STDIO_BUS_CONFIG_REPORT_H

#include <stdarg.h>
#include <stdbool.h>

#include "config/config.h"
#include "format/json.h"

struct config_report {
    const char *name; /* the file's */
    config_report_fn *fn;
    void *user_data;
    size_t errors; /* reported so far */
};

/* A problem of the file as a whole: "FILE: TEXT". */
void config_report_file(struct config_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What json_read said. */
void config_report_syntax(struct config_report *report, const struct json_error *error);

/* A value that breaks a rule. */
void config_report_value(struct config_report *report, const struct json_value *value,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A key that `object` must have and has not; the position is the object's. */
void config_report_missing(struct config_report *report, const struct json_value *object,
                           const char *key);

/* A warning about a key, `member` being its value. */
void config_warn_key(struct config_report *report, const struct json_value *member,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether the value is of this type; if not, that is reported. `wanted` is the type in words; "or"
 * may stand in it. */
bool config_check_type(struct config_report *report, const struct json_value *value,
                       enum json_type type, const char *wanted);

/* The same for a string that becomes one of C. */
bool config_check_string(struct config_report *report, const struct json_value *value);

#endif
