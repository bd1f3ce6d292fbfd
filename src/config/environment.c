#include "build_config.h"

#include "config/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define NAME_MAX_LEN 255 /* of a variable that a value names */

extern char **environ;

/* ---- values --------------------------------------------------------------------------------- */

enum fault { FAULT_NONE, FAULT_UNCLOSED, FAULT_NAME, FAULT_UNSET };

static bool is_name(struct slice name)
{
    size_t i;

    for (i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_LEN;
}

/* Finds what "${NAME}" at `at` stands for, and how long that is; `name` is set in any case. */
static enum fault look_up(const char *at, struct slice *name, const char **value)
{
    char copy[NAME_MAX_LEN + 1];
    const char *end = strchr(at, '}');

    *name = slice_of(at + 2, end != NULL ? (size_t)(end - at) - 2 : strlen(at + 2));
    if (end == NULL)
        return FAULT_UNCLOSED;
    if (!is_name(*name))
        return FAULT_NAME;
    memcpy(copy, name->data, name->len);
    copy[name->len] = '\0';
    *value = getenv(copy);
    return *value != NULL ? FAULT_NONE : FAULT_UNSET;
}

/* Writes the value with all names replaced to `to`, unless that is NULL. Returns the length, or 0
 * with *fault and *name set. */
static size_t expand(const char *value, char *to, enum fault *fault, struct slice *name)
{
    size_t len = 0;

    *fault = FAULT_NONE;
    while (*value != '\0') {
        const char *part = value;
        size_t part_len = 1;

        if (value[0] == '$' && value[1] == '{') {
            *fault = look_up(value, name, &part);
            if (*fault != FAULT_NONE)
                return 0;
            part_len = strlen(part);
            value = name->data + name->len;
        } else if (value[0] == '$' && value[1] == '$') {
            value++;
        }
        if (to != NULL)
            memcpy(to + len, part, part_len);
        len += part_len;
        value++;
    }
    return len;
}

/* ---- the rules ------------------------------------------------------------------------------ */

static void check_value(struct config_report *report, const struct json_value *value)
{
    enum fault fault;
    struct slice name;
    char shown[64];

    if (!config_check_string(report, value))
        return;
    expand(value->text.data, NULL, &fault, &name);
    if (fault == FAULT_UNCLOSED)
        config_report_value(report, value, "\"${\" without a \"}\"; \"$$\" stands for a \"$\"");
    else if (fault != FAULT_NONE)
        config_report_value(report, value, "%s: \"%s\"",
                            fault == FAULT_NAME ? "not the name of a variable"
                                                : "not set in the environment",
                            log_escape(shown, sizeof shown, name));
}

void environment_check(struct config_report *report, const struct json_value *env)
{
    const struct json_value *value;

    if (!config_check_type(report, env, JSON_OBJECT, "an object"))
        return;
    for (value = env->first; value != NULL; value = value->next) {
        if (value->key.len == 0 || memchr(value->key.data, '=', value->key.len) != NULL ||
            memchr(value->key.data, '\0', value->key.len) != NULL)
            config_report_value(report, value, "no variable can have this name");
        check_value(report, value);
    }
}

/* ---- building ------------------------------------------------------------------------------- */

/* Whether `name` with a '=' behind it is what the entry begins with. */
static bool is_entry_of(const char *entry, struct slice name)
{
    return strncmp(entry, name.data, name.len) == 0 && entry[name.len] == '=';
}

/* What whoever started us said to us alone. */
static bool is_ours(const char *entry)
{
    static const char *const names[] = {"NOTIFY_SOCKET",   "LISTEN_FDS",    "LISTEN_PID",
                                        "LISTEN_FDNAMES",  "WATCHDOG_USEC", "WATCHDOG_PID"};
    static const char prefix[] = "STDIO_BUS_";
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_entry_of(entry, slice_of(names[i], strlen(names[i]))))
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

/* The variables in one piece of memory, the pointers in front. A first round only counts. */
struct block {
    char **entries; /* NULL in the first round */
    char *bytes;
    size_t count, size;
};

/* Where an entry of this length goes, or NULL. */
static char *place(struct block *block, size_t len)
{
    char *to = NULL;

    if (block->entries != NULL)
        to = block->entries[block->count] = block->bytes + block->size;
    block->count++;
    block->size += len + 1;
    return to;
}

static void add_inherited(struct block *block, const char *entry)
{
    size_t len = strlen(entry);
    char *to = place(block, len);

    if (to != NULL)
        memcpy(to, entry, len + 1);
}

static void add_set(struct block *block, const struct json_value *value)
{
    enum fault fault;
    struct slice name;
    size_t key_len = value->key.len, len = expand(value->text.data, NULL, &fault, &name);
    char *to = place(block, key_len + 1 + len);

    if (to == NULL)
        return;
    memcpy(to, value->key.data, key_len);
    to[key_len] = '=';
    expand(value->text.data, to + key_len + 1, &fault, &name);
    to[key_len + 1 + len] = '\0';
}

static void fill(struct block *block, const struct json_value *pool)
{
    const struct json_value *env = json_member(pool, "env"), *value;
    const struct json_value *clear_env = json_member(pool, "clear_env");
    char **inherited = clear_env != NULL && clear_env->boolean ? NULL : environ;

    for (; inherited != NULL && *inherited != NULL; inherited++) {
        if (!is_ours(*inherited) && !is_set_by(env, *inherited))
            add_inherited(block, *inherited);
    }
    for (value = env != NULL ? env->first : NULL; value != NULL; value = value->next)
        add_set(block, value);
}

char **environment_build(const struct json_value *pool)
{
    struct block block = {NULL, NULL, 0, 0};
    size_t count;

    fill(&block, pool);
    count = block.count;
    block.entries = malloc((count + 1) * sizeof(*block.entries) + block.size);
    if (block.entries == NULL)
        return NULL;
    block.bytes = (char *)(block.entries + count + 1);
    block.count = block.size = 0;
    fill(&block, pool);
    block.entries[count] = NULL;
    return block.entries;
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
