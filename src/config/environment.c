#include "build_config.h"

#include "config/environment.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

extern char **environ;

/* --- values --- */

/* The bytes that are written: of several variables, or of one value. */
struct output {
    char *to; /* NULL: they are only counted */
    size_t len;
};

static void append(struct output *out, const char *bytes, size_t len)
{
    if (out->to != NULL)
        memcpy(out->to + out->len, bytes, len);
    out->len += len;
}

/* Appends the value with all names replaced. After a fault *name is the name. */
static enum variable_fault expand(const char *value, struct output *out, struct slice *name)
{
    enum variable_fault fault;
    const char *found;

    for (; *value != '\0'; value++) {
        if (value[0] == '$' && value[1] == '{') {
            fault = variable_find_braced(value, name, &found);
            if (fault != VARIABLE_FOUND)
                return fault;
            append(out, found, strlen(found));
            value = name->data + name->len;
            continue;
        }
        if (value[0] == '$' && value[1] == '$')
            value++;
        append(out, value, 1);
    }
    return VARIABLE_FOUND;
}

/* --- checks --- */

static void check_value(struct diagnostics *diagnostics, const struct json_value *value)
{
    struct output counted = {.to = NULL};
    enum variable_fault fault;
    struct slice name;
    char shown[64];

    if (!diagnostics_check_string(diagnostics, value))
        return;
    fault = expand(value->text.data, &counted, &name);
    if (fault == VARIABLE_UNCLOSED)
        diagnostics_value(diagnostics, value, "\"${\" without a \"}\"; \"$$\" stands for a \"$\"");
    else if (fault != VARIABLE_FOUND)
        diagnostics_value(diagnostics, value, "%s: \"%s\"",
                          fault == VARIABLE_NO_NAME ? "not the name of a variable"
                                                    : "not set in the environment",
                          log_escape(shown, sizeof shown, name));
}

void environment_check(struct diagnostics *diagnostics, const struct json_value *env)
{
    const struct json_value *value;

    if (!diagnostics_check_type(diagnostics, env, JSON_OBJECT, "an object"))
        return;
    for (value = env->first; value != NULL; value = value->next) {
        if (value->key.len == 0 || memchr(value->key.data, '=', value->key.len) != NULL ||
            memchr(value->key.data, '\0', value->key.len) != NULL)
            diagnostics_value(diagnostics, value, "no variable can have this name");
        check_value(diagnostics, value);
    }
}

/* --- building --- */

/* True if the entry begins with `name` and a '='. */
static bool is_entry_of(const char *entry, struct slice name)
{
    return strncmp(entry, name.data, name.len) == 0 && entry[name.len] == '=';
}

/* A variable for the daemon alone, set by its service manager. */
static bool is_private(const char *entry)
{
    static const char *const names[] = {"NOTIFY_SOCKET",  "LISTEN_FDS",    "LISTEN_PID",
                                        "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID"};
    static const char prefix[] = "STDIO_BUS_";
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_entry_of(entry, slice_of_text(names[i])))
            return true;
    }
    return strncmp(entry, prefix, sizeof prefix - 1) == 0;
}

static bool is_set_by(const struct json_value *env, const char *entry)
{
    const struct json_value *value;

    for (value = env != NULL ? env->first : NULL; value != NULL; value = value->next) {
        if (is_entry_of(entry, value->key))
            return true;
    }
    return false;
}

static void append_variable(struct output *out, struct slice name, const char *value)
{
    struct slice unknown;

    append(out, name.data, name.len);
    append(out, "=", 1);
    expand(value, out, &unknown);
    append(out, "", 1);
}

/* Appends the variables, with a NUL after each. Returns how many they are. */
static size_t append_variables(struct output *out, const struct json_value *pool)
{
    const struct json_value *env = document_member(pool, "env"), *value;
    const struct json_value *headers = document_member(pool, "headers");
    const struct json_value *clear_env = document_member(pool, "clear_env");
    char **inherited = clear_env != NULL && clear_env->boolean ? NULL : environ;
    char name[ENVIRONMENT_FIELD_MAX];
    size_t count = 0;

    for (; inherited != NULL && *inherited != NULL; inherited++) {
        if (is_private(*inherited) || is_set_by(env, *inherited))
            continue;
        append(out, *inherited, strlen(*inherited) + 1);
        count++;
    }
    for (value = env != NULL ? env->first : NULL; value != NULL; value = value->next, count++)
        append_variable(out, value->key, value->text.data);
    for (value = headers != NULL ? headers->first : NULL; value != NULL;
         value = value->next, count++) {
        snprintf(name, sizeof name, ENVIRONMENT_FIELD, value->index + 1);
        append_variable(out, slice_of_text(name), value->text.data);
    }
    return count;
}

char **environment_build(const struct json_value *pool)
{
    struct output out = {.to = NULL};
    size_t count = append_variables(&out, pool);
    char **envp = malloc((count + 1) * sizeof *envp + out.len), *entry;

    if (envp == NULL)
        return NULL;
    entry = (char *)(envp + count + 1);
    out = (struct output){.to = entry};
    append_variables(&out, pool);
    for (size_t i = 0; i < count; i++, entry += strlen(entry) + 1)
        envp[i] = entry;
    envp[count] = NULL;
    return envp;
}

const char *environment_get(char *const *envp, const char *name)
{
    size_t i, len = strlen(name);

    for (i = 0; envp[i] != NULL; i++) {
        if (is_entry_of(envp[i], slice_of(name, len)))
            return envp[i] + len + 1;
    }
    return NULL;
}

/* --- variables of the environment --- */

#define NAME_MAX_LEN 255

/* The number of bytes at the beginning of the text that can be a name. */
static size_t name_len(struct slice text)
{
    size_t i;

    for (i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool letter = c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        if (!letter && (i == 0 || c < '0' || c > '9'))
            break;
    }
    return i;
}

enum variable_fault variable_find(struct slice name, const char **value)
{
    char copy[NAME_MAX_LEN + 1];

    if (name.len == 0 || name.len > NAME_MAX_LEN || name_len(name) != name.len)
        return VARIABLE_NO_NAME;
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    *value = getenv(copy);
    return *value != NULL ? VARIABLE_FOUND : VARIABLE_UNSET;
}

enum variable_fault variable_find_braced(const char *at, struct slice *name, const char **value)
{
    const char *end = strchr(at, '}');

    *name = slice_of(at + 2, end != NULL ? (size_t)(end - at) - 2 : strlen(at + 2));
    return end != NULL ? variable_find(*name, value) : VARIABLE_UNCLOSED;
}

/* --- paths --- */

struct path_output {
    char *to;
    size_t size, len;
};

static void append_path(struct path_output *out, const char *bytes, size_t len)
{
    if (out->len < out->size && len < out->size - out->len)
        memcpy(out->to + out->len, bytes, len);
    out->len += len;
}

static int fail_path(enum variable_fault fault, struct slice name,
                     char problem[VARIABLE_PROBLEM_MAX])
{
    char shown[64];

    log_escape(shown, sizeof shown, name);
    if (fault == VARIABLE_UNCLOSED)
        snprintf(problem, VARIABLE_PROBLEM_MAX, "\"${\" without a \"}\"");
    else
        snprintf(problem, VARIABLE_PROBLEM_MAX,
                 fault == VARIABLE_UNSET ? "%s is not set in the environment"
                                         : "\"%s\" is not the name of a variable",
                 shown);
    return -1;
}

/* Appends the value that *path names, and moves *path past that name. */
static enum variable_fault expand_path(struct path_output *out, const char **path,
                                       struct slice *name)
{
    const char *value = NULL;
    enum variable_fault fault;

    if ((*path)[1] == '{') {
        fault = variable_find_braced(*path, name, &value);
        *path = name->data + name->len + 1;
    } else {
        *name = slice_of(*path + 1, name_len(slice_of(*path + 1, strlen(*path + 1))));
        fault = variable_find(*name, &value);
        *path = name->data + name->len;
    }
    if (value != NULL)
        append_path(out, value, strlen(value));
    return fault;
}

int variable_expand_path(char *to, size_t size, const char *path,
                         char problem[VARIABLE_PROBLEM_MAX])
{
    struct path_output out = {.to = to, .size = size};
    struct slice name = {"HOME", 4};
    enum variable_fault fault = VARIABLE_FOUND;
    const char *home = NULL;

    if (path[0] == '~' && path[1] == '/') {
        fault = variable_find(name, &home);
        if (home != NULL)
            append_path(&out, home, strlen(home));
        path++;
    }
    while (fault == VARIABLE_FOUND && *path != '\0') { /* after a fault it may be past the end */
        if (path[0] == '$' && (path[1] == '{' || name_len(slice_of(path + 1, 1)) == 1)) {
            fault = expand_path(&out, &path, &name);
            continue;
        }
        append_path(&out, path++, 1);
    }
    if (fault != VARIABLE_FOUND)
        return fail_path(fault, name, problem);
    if (out.len < size)
        to[out.len] = '\0';
    return out.len < INT_MAX ? (int)out.len : INT_MAX;
}
