#include "build_config.h"

#include "config/rmp_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "config/environment.h"

#define TYPE_MAX 255 /* bytes */

/* --- schemas --- */

static const struct key schema_list[] = {
    KEY_ROW("id", "The number in the header of a frame.", .kind = KEY_INTEGER, .required = true,
            .min = 1, .max = UINT16_MAX),
    KEY_ROW("type", "The type in the envelope.", .kind = KEY_TEXT, .required = true, .min = 1,
            .max = TYPE_MAX, .is_right = rmp_type_is_valid,
            .wanted = "must be family.kind.vN with a family of RMP, as in \"intent.my.thing.v1\""),
};

static const struct key_table schema_keys = {KEY_TABLE(schema_list),
                                             .help = "A schema of messages."};

/* Adds a schema that is valid by itself. */
static int add_schema(struct rmp_schemas *schemas, const struct json_value *schema)
{
    int64_t id;

    if (!document_integer(document_member(schema, "id"), &id))
        return STDIO_BUS_EINVAL;
    return rmp_schemas_add(schemas, (uint16_t)id, document_member(schema, "type")->text);
}

static void check_schemas(struct diagnostics *diagnostics, const struct json_value *schemas)
{
    struct rmp_schemas added = {.added = NULL};
    int status;

    if (!diagnostics_check_type(diagnostics, schemas, JSON_ARRAY, "an array of objects"))
        return;
    for (const struct json_value *schema = schemas->first; schema != NULL; schema = schema->next) {
        size_t before = diagnostics->errors;

        keys_check_object(diagnostics, schema, &schema_keys);
        status = diagnostics->errors == before ? add_schema(&added, schema) : STDIO_BUS_OK;
        if (status == STDIO_BUS_EINVAL)
            diagnostics_value(diagnostics, document_member(schema, "id"),
                              "is the id of another schema");
        else if (status != STDIO_BUS_OK)
            diagnostics_value(diagnostics, schema, "out of memory");
    }
    rmp_schemas_free(&added);
}

/* --- the socket --- */

static void check_socket(struct diagnostics *diagnostics, const struct json_value *path,
                         const char *directory)
{
    char to[RMP_SOCKET_MAX], why[RMP_SOCKET_REASON_MAX];

    if (path->text.len > 0 &&
        rmp_socket_expand(to, path->text.data, directory, why) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, path, "%s", why);
}

static void check_socket_path(struct diagnostics *diagnostics, const struct json_value *path)
{
    check_socket(diagnostics, path, "");
}

static void check_sockets_dir(struct diagnostics *diagnostics, const struct json_value *path)
{
    check_socket(diagnostics, path, RMP_SOCKET_NAME);
}

/* --- the history of runs --- */

static void check_history(struct diagnostics *diagnostics, const struct json_value *path)
{
    char to[RMP_HISTORY_PATH_MAX], why[VARIABLE_PROBLEM_MAX];
    int len;

    if (path->text.len == 0)
        return;
    len = variable_expand_path(to, sizeof to, path->text.data, why);
    if (len < 0)
        diagnostics_value(diagnostics, path, "%s", why);
    else if ((size_t)len >= sizeof to)
        diagnostics_value(diagnostics, path, "must be at most %d bytes long",
                          RMP_HISTORY_PATH_MAX - 1);
}

/* --- the object --- */

#define NUMBER(type, member, low, high, preset, text)                                              \
    {.name = #member,                                                                              \
     .help = (text),                                                                               \
     .kind = KEY_INTEGER,                                                                          \
     .change = CHANGE_PROGRAM,                                                                     \
     .has_default = true,                                                                          \
     .min = (low),                                                                                 \
     .max = (high),                                                                                \
     .standard = (preset),                                                                         \
     KEY_AT(struct rmp_config, member)},

static const struct key rmp_list[] = {
    KEY_ROW("socket_path", "The Unix socket of the topic bus; ~/, $NAME and ${NAME} are replaced.",
            .kind = KEY_TEXT, .change = CHANGE_PROGRAM, .check = check_socket_path,
            KEY_AT(struct rmp_config, socket_path)),
    KEY_ROW("sockets_dir", "The directory of rmp.sock, without socket_path.", .kind = KEY_TEXT,
            .change = CHANGE_PROGRAM, .check = check_sockets_dir,
            KEY_AT(struct rmp_config, sockets_dir)),
    KEY_ROW("ui_uids", "The users whose clients may decide about actions.",
            .check = access_check_uids, .schema = ACCESS_UIDS_SCHEMA),
    KEY_ROW("validate", "Bodies of the JSON dialect are checked as those of frames. Default: true.",
            .kind = KEY_BOOLEAN, .change = CHANGE_PROGRAM, KEY_AT(struct rmp_config, validate)),
    KEY_ROW("schemas", "Further schemas.", .kind = KEY_OBJECTS, .check = check_schemas,
            .members = &schema_keys),
    RMP_NUMBERS(NUMBER){.name = "history",
                        .help = "The directory of the files of the history. Default: none.",
                        .kind = KEY_TEXT,
                        .change = CHANGE_PROGRAM,
                        .check = check_history,
                        KEY_AT(struct rmp_config, history)},
    KEY_ROW("history_sync", "Each write of the history is synced. Default: false.",
            .kind = KEY_BOOLEAN, .change = CHANGE_PROGRAM, KEY_AT(struct rmp_config, history_sync)),
};

const struct key_table rmp_keys = {KEY_TABLE(rmp_list)};

/* --- reading --- */

static bool read_schemas(struct rmp_schemas *to, const struct json_value *schemas)
{
    const struct json_value *schema = schemas != NULL ? schemas->first : NULL;

    for (; schema != NULL; schema = schema->next) {
        if (add_schema(to, schema) != STDIO_BUS_OK)
            return false;
    }
    return true;
}

int rmp_keys_read(struct rmp_config *config, const struct json_value *rmp)
{
    const struct json_value *uids;

    if (rmp == NULL)
        return STDIO_BUS_OK;
    config->enabled = true;
    keys_apply(config, &rmp_keys, rmp);
    uids = document_member(rmp, "ui_uids");
    if (!keys_copy(config, &rmp_keys, rmp) ||
        !read_schemas(&config->schemas, document_member(rmp, "schemas")))
        return STDIO_BUS_ERR;
    return uids != NULL ? access_read_uids(&config->ui, uids) : STDIO_BUS_OK;
}

bool rmp_keys_differ(const struct rmp_config *before, const struct rmp_config *after)
{
    return before->enabled != after->enabled || before->ui.uid_count != after->ui.uid_count ||
           keys_differ(before, after, &rmp_keys, CHANGE_PROGRAM);
}

void rmp_keys_drop_history(struct rmp_config *config)
{
    free(config->history);
    config->history = NULL;
}

void rmp_keys_free(struct rmp_config *config)
{
    rmp_schemas_free(&config->schemas);
    keys_free(config, &rmp_keys);
    access_free(&config->ui);
    *config = (struct rmp_config){.enabled = false};
}

/* --- rmp socket --- */

#define IN_HOME "~/.runloop/sock"
#define IN_RUN "/run/runloop"

static int too_long(char reason[RMP_SOCKET_REASON_MAX], size_t len)
{
    snprintf(reason, RMP_SOCKET_REASON_MAX, UNIX_PATH_PROBLEM, len, UNIX_PATH_MAX);
    return STDIO_BUS_EINVAL;
}

int rmp_socket_expand(char to[RMP_SOCKET_MAX], const char *path, const char *name,
                      char reason[RMP_SOCKET_REASON_MAX])
{
    char why[VARIABLE_PROBLEM_MAX];
    int len = variable_expand_path(to, RMP_SOCKET_MAX, path, why);
    size_t name_len = strlen(name);

    if (len < 0) {
        snprintf(reason, RMP_SOCKET_REASON_MAX, "%s", why);
        return STDIO_BUS_EINVAL;
    }
    if ((size_t)len + name_len >= RMP_SOCKET_MAX)
        return too_long(reason, (size_t)len + name_len);
    memcpy(to + len, name, name_len + 1);
    return STDIO_BUS_OK;
}

/* The path that is set, if one is: *set. */
static int expand_set(char to[RMP_SOCKET_MAX], const struct rmp_place *place, bool *set,
                      char reason[RMP_SOCKET_REASON_MAX])
{
    const char *given = place->given;

    *set = true;
    if (given != NULL && strlen(given) >= RMP_SOCKET_MAX)
        return too_long(reason, strlen(given));
    if (given != NULL) {
        memcpy(to, given, strlen(given) + 1);
        return STDIO_BUS_OK;
    }
    if (place->socket_path != NULL)
        return rmp_socket_expand(to, place->socket_path, "", reason);
    if (place->sockets_dir != NULL)
        return rmp_socket_expand(to, place->sockets_dir, RMP_SOCKET_NAME, reason);
    *set = false;
    return STDIO_BUS_OK;
}

/* Whether a socket can be made at this path. */
static bool is_usable(char path[RMP_SOCKET_MAX])
{
    char *slash;
    bool usable;

    if (!directories_make_above(path))
        return false;
    slash = strrchr(path, '/');
    *slash = '\0';
    usable = access(path, W_OK | X_OK) == 0;
    *slash = '/';
    return usable;
}

int rmp_socket_make(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX])
{
    bool set;
    int status = expand_set(to, place, &set, reason);

    if (status != STDIO_BUS_OK)
        return status;
    if (set && directories_make_above(to))
        return STDIO_BUS_OK;
    if (!set &&
        ((rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK &&
          is_usable(to)) ||
         (rmp_socket_expand(to, IN_RUN, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK && is_usable(to))))
        return STDIO_BUS_OK;
    snprintf(reason, RMP_SOCKET_REASON_MAX, "cannot make the directory of %s%s: %s", to,
             set ? "" : ", nor " IN_HOME, strerror(errno));
    return STDIO_BUS_EINVAL;
}

int rmp_socket_find(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX])
{
    bool set;
    int status = expand_set(to, place, &set, reason);

    if (status != STDIO_BUS_OK || set)
        return status;
    if (rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason) == STDIO_BUS_OK &&
        access(to, F_OK) == 0)
        return STDIO_BUS_OK;
    if (access(IN_RUN RMP_SOCKET_NAME, F_OK) == 0)
        return rmp_socket_expand(to, IN_RUN, RMP_SOCKET_NAME, reason);
    return rmp_socket_expand(to, IN_HOME, RMP_SOCKET_NAME, reason);
}
