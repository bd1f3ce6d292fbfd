#include "build_config.h"

#include "config/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 5120 /* for a path as long as systems allow, and the problem */
#define PROBLEM_MAX 1024

/* Line 0: no position. An empty path: the root. */
static void report(struct diagnostics *diagnostics, bool is_error, struct json_position at,
                   const char *path, const char *problem)
{
    char text[TEXT_MAX], position[48] = "";

    if (at.line > 0)
        snprintf(position, sizeof position, "%zu:%zu:", at.line, at.column);
    snprintf(text, sizeof text, "%s:%s %s%s%s", diagnostics->name, position, path,
             path[0] != '\0' ? ": " : "", problem);
    for (char *p = text; *p != '\0'; p++) { /* the file's name may hold anything */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
    diagnostics->errors += is_error;
    diagnostics->report(diagnostics->user_data, is_error, text);
}

void diagnostics_file(struct diagnostics *diagnostics, const char *format, ...)
{
    char problem[PROBLEM_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    report(diagnostics, true, (struct json_position){0, 0}, "", problem);
}

void diagnostics_syntax(struct diagnostics *diagnostics, const struct document_error *error)
{
    report(diagnostics, true, error->at, error->path, error->text);
}

/* A value that is in no file is named by its key. */
static void name_value(char path[DOCUMENT_PATH_MAX], const struct json_value *value)
{
    if (value->at.line > 0)
        document_path(path, DOCUMENT_PATH_MAX, value);
    else
        snprintf(path, DOCUMENT_PATH_MAX, "%.*s", (int)value->key.len, value->key.data);
}

void diagnostics_value(struct diagnostics *diagnostics, const struct json_value *value,
                       const char *format, ...)
{
    char problem[PROBLEM_MAX], path[DOCUMENT_PATH_MAX];
    va_list args;

    name_value(path, value);
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    report(diagnostics, true, value->at, path, problem);
}

void diagnostics_warn(struct diagnostics *diagnostics, const struct json_value *member,
                      const char *format, ...)
{
    char problem[PROBLEM_MAX], path[DOCUMENT_PATH_MAX];
    va_list args;

    name_value(path, member);
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    report(diagnostics, false, member->key_at, path, problem);
}

void diagnostics_missing(struct diagnostics *diagnostics, const struct json_value *object,
                         const char *key)
{
    char path[DOCUMENT_PATH_MAX + 64];
    size_t used = document_path(path, DOCUMENT_PATH_MAX, object);

    snprintf(path + used, sizeof path - used, "%s%s", used > 0 ? "." : "", key);
    report(diagnostics, true, object->at, path, "is required");
}

bool diagnostics_is_comment(const struct json_value *member)
{
    return member->key.len > 0 && (member->key.data[0] == '_' || member->key.data[0] == '$');
}

bool diagnostics_check_type(struct diagnostics *diagnostics, const struct json_value *value,
                            enum json_type type, const char *wanted)
{
    if (value->type == type)
        return true;
    diagnostics_value(diagnostics, value, "must be %s, not %s", wanted,
                      document_type_name(value->type));
    return false;
}

bool diagnostics_check_string(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (!diagnostics_check_type(diagnostics, value, JSON_STRING, "a string"))
        return false;
    if (memchr(value->text.data, '\0', value->text.len) == NULL)
        return true;
    diagnostics_value(diagnostics, value, "must not contain the character \\u0000");
    return false;
}
