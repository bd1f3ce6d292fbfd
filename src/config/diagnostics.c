#include "build_config.h"

#include "base/assert.h"
#include "config/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 5120 /* for a path as long as systems allow, and the problem */
#define PROBLEM_MAX 1024

/* The file of a value: that of the configuration, or an included one. */
static const char *file_of(const struct diagnostics *diagnostics, const struct json_value *value)
{
    while (value != NULL && value->parent != NULL)
        value = value->parent;
    return value != NULL && value->key.len > 0 ? value->key.data : diagnostics->name;
}

/* Line 0: no position. An empty path: the root. */
static void report(struct diagnostics *diagnostics, bool is_error, const char *name,
                   struct json_position at, const char *path, const char *problem)
{
    char text[TEXT_MAX], position[48] = "";

    if (at.line > 0)
        snprintf(position, sizeof position, "%zu:%zu:", at.line, at.column);
    snprintf(text, sizeof text, "%s:%s %s%s%s", name, position, path, path[0] != '\0' ? ": " : "",
             problem);
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
    report(diagnostics, true, diagnostics->name, (struct json_position){0, 0}, "", problem);
}

void diagnostics_syntax(struct diagnostics *diagnostics, const struct document_error *error)
{
    report(diagnostics, true, diagnostics->name, error->at, error->path, error->text);
}

/* A value that is in no file is named by its key. */
static void report_value(struct diagnostics *diagnostics, bool is_error,
                         const struct json_value *value, const char *format, va_list args)
{
    char problem[PROBLEM_MAX], path[DOCUMENT_PATH_MAX];

    vsnprintf(problem, sizeof problem, format, args);
    if (value->at.line > 0)
        document_path(path, sizeof path, value);
    else
        snprintf(path, sizeof path, "%.*s", (int)value->key.len, value->key.data);
    report(diagnostics, is_error, file_of(diagnostics, value), is_error ? value->at : value->key_at,
           path, problem);
}

void diagnostics_value(struct diagnostics *diagnostics, const struct json_value *value,
                       const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_value(diagnostics, true, value, format, args);
    va_end(args);
}

void diagnostics_warn(struct diagnostics *diagnostics, const struct json_value *member,
                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_value(diagnostics, false, member, format, args);
    va_end(args);
}

void diagnostics_missing(struct diagnostics *diagnostics, const struct json_value *object,
                         const char *key)
{
    char path[DOCUMENT_PATH_MAX + 64];
    size_t used = document_path(path, DOCUMENT_PATH_MAX, object);

    ASSERT(object != NULL);
    snprintf(path + used, sizeof path - used, "%s%s", used > 0 ? "." : "", key);
    report(diagnostics, true, file_of(diagnostics, object), object->at, path, "is required");
}

const char *diagnostics_place(char to[DIAGNOSTICS_PLACE_MAX], const struct diagnostics *diagnostics,
                              const struct json_value *value, const struct json_value *other)
{
    const char *file = file_of(diagnostics, value);
    bool is_same = strcmp(file, file_of(diagnostics, other)) == 0;

    (void)snprintf(to, DIAGNOSTICS_PLACE_MAX, "%.200s%s%zu:%zu", is_same ? "" : file,
                   is_same ? "" : ":", value->at.line, value->at.column);
    return to;
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
