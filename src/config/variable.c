#include "build_config.h"

#include "config/variable.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

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

static void append(struct path_output *out, const char *bytes, size_t len)
{
    if (out->len < out->size && len < out->size - out->len)
        memcpy(out->to + out->len, bytes, len);
    out->len += len;
}

static int fail(enum variable_fault fault, struct slice name, char problem[VARIABLE_PROBLEM_MAX])
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
static enum variable_fault expand(struct path_output *out, const char **path, struct slice *name)
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
        append(out, value, strlen(value));
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
            append(&out, home, strlen(home));
        path++;
    }
    while (fault == VARIABLE_FOUND && *path != '\0') { /* after a fault it may be past the end */
        if (path[0] == '$' && (path[1] == '{' || name_len(slice_of(path + 1, 1)) == 1)) {
            fault = expand(&out, &path, &name);
            continue;
        }
        append(&out, path++, 1);
    }
    if (fault != VARIABLE_FOUND)
        return fail(fault, name, problem);
    if (out.len < size)
        to[out.len] = '\0';
    return out.len < INT_MAX ? (int)out.len : INT_MAX;
}
