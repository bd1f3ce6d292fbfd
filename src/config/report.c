#include "build_config.h"

#include "config/report.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 5120 /* a path as long as systems allow, and the rest */

/* Line 0 stands for no position, an empty path for the root. */
static void tell(struct config_report *report, bool is_error, struct json_position at,
                 const char *path, const char *problem)
{
    char text[TEXT_MAX], position[48] = "";
    size_t i;

    if (at.line > 0)
        snprintf(position, sizeof(position), "%zu:%zu:", at.line, at.column);
    snprintf(text, sizeof(text), "%s:%s %s%s%s", report->name, position, path,
             path[0] != '\0' ? ": " : "", problem);
    for (i = 0; text[i] != '\0'; i++) { /* the file's name may hold anything */
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?';
    }
    report->errors += is_error;
    report->fn(report->user_data, is_error, text);
}

void config_report_file(struct config_report *report, const char *format, ...)
{
    char problem[256];
    va_list args;

    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    tell(report, true, (struct json_position){0, 0}, "", problem);
}

void config_report_syntax(struct config_report *report, const struct json_error *error)
{
    tell(report, true, error->at, error->path, error->text);
}

void config_report_value(struct config_report *report, const struct json_value *value,
                         const char *format, ...)
{
    char problem[1024], path[JSON_PATH_MAX];
    va_list args;

    json_path(path, sizeof(path), value);
    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    tell(report, true, value->at, path, problem);
}

void config_report_missing(struct config_report *report, const struct json_value *object,
                           const char *key)
{
    char path[JSON_PATH_MAX + 64];
    size_t used = json_path(path, JSON_PATH_MAX, object);

    snprintf(path + used, sizeof(path) - used, "%s%s", used > 0 ? "." : "", key);
    tell(report, true, object->at, path, "is required");
}

void config_warn_key(struct config_report *report, const struct json_value *member,
                     const char *format, ...)
{
    char problem[256], path[JSON_PATH_MAX];
    va_list args;

    json_path(path, sizeof(path), member);
    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    tell(report, false, member->key_at, path, problem);
}

bool config_check_type(struct config_report *report, const struct json_value *value,
                       enum json_type type, const char *wanted)
{
    if (value->type == type)
        return true;
    config_report_value(report, value, "must be %s, not %s", wanted, json_type_name(value->type));
    return false;
}

bool config_check_string(struct config_report *report, const struct json_value *value)
{
    if (!config_check_type(report, value, JSON_STRING, "a string"))
        return false;
    if (memchr(value->text.data, '\0', value->text.len) == NULL)
        return true;
    config_report_value(report, value, "must not contain the character \\u0000");
    return false;
}
