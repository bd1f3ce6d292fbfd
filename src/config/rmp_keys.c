#include "build_config.h"

#include "config/rmp_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "config/rmp_socket.h"
#include "config/rules.h"
#include "config/variable.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define GIB 1073741824
#define HOUR_MS 3600000
#define YEAR_MS 31536000000
#define YEAR_SEC 31536000
#define HISTORY_MAX 65536 /* events of a run, and runs */
#define HISTORY_BYTES_MIN 4096
#define TYPE_MAX 255 /* bytes */

/* --- schemas --- */

static void check_type(struct diagnostics *diagnostics, const struct json_value *type)
{
    if (!rules_check_filled(diagnostics, type))
        return;
    if (type->text.len > TYPE_MAX)
        diagnostics_value(diagnostics, type, "must be at most %d bytes long", TYPE_MAX);
    else if (!rmp_type_is_valid(type->text))
        diagnostics_value(diagnostics, type,
                          "must be family.kind.vN with a family of RMP, as in "
                          "\"intent.my.thing.v1\"");
}

static const struct rule schema_rules[] = {
    {.key = "id", .required = true, .min = 1, .max = UINT16_MAX},
    {.key = "type", .required = true, .check = check_type},
};

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

        rules_check_object(diagnostics, schema, schema_rules, COUNT(schema_rules));
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

    if (diagnostics_check_string(diagnostics, path) && path->text.len > 0 &&
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

    if (!diagnostics_check_string(diagnostics, path) || path->text.len == 0)
        return;
    len = variable_expand_path(to, sizeof to, path->text.data, why);
    if (len < 0)
        diagnostics_value(diagnostics, path, "%s", why);
    else if ((size_t)len >= sizeof to)
        diagnostics_value(diagnostics, path, "must be at most %d bytes long",
                          RMP_HISTORY_PATH_MAX - 1);
}

/* --- the object --- */

#define INTEGER(name, low, high)                                                                   \
    {                                                                                              \
        .key = #name, .min = (low), .max = (high),                                                 \
        .size = sizeof((struct rmp_config *)NULL)->name,                                           \
        .offset = offsetof(struct rmp_config, name)                                                \
    }

static const struct rule rmp_rules[] = {
    {.key = "socket_path", .check = check_socket_path},
    {.key = "sockets_dir", .check = check_sockets_dir},
    INTEGER(max_body, 1, GIB),
    INTEGER(max_ttl_ms, 1, YEAR_MS),
    INTEGER(metrics_interval_ms, 0, HOUR_MS),
    {.key = "ui_uids", .check = access_check_uids},
    {.key = "validate", .check = rules_check_boolean},
    {.key = "schemas", .check = check_schemas},
    INTEGER(history_events, 0, HISTORY_MAX),
    INTEGER(history_run_bytes, HISTORY_BYTES_MIN, GIB),
    INTEGER(history_runs, 1, HISTORY_MAX),
    INTEGER(history_bytes, HISTORY_BYTES_MIN, GIB),
    INTEGER(history_sec, 1, YEAR_SEC),
    {.key = "history", .check = check_history},
    {.key = "history_sync", .check = rules_check_boolean},
};

void rmp_keys_check(struct diagnostics *diagnostics, const struct json_value *rmp)
{
    rules_check_object(diagnostics, rmp, rmp_rules, COUNT(rmp_rules));
}

/* --- reading --- */

/* Copies a string that is there and not empty. */
static bool copy_string(char **to, const struct json_value *string)
{
    if (string == NULL || string->text.len == 0)
        return true;
    *to = malloc(string->text.len + 1);
    if (*to == NULL)
        return false;
    memcpy(*to, string->text.data, string->text.len + 1);
    return true;
}

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
    const struct json_value *validate, *uids, *sync;

    if (rmp == NULL)
        return STDIO_BUS_OK;
    config->enabled = true;
    rules_apply(config, rmp_rules, COUNT(rmp_rules), rmp);
    validate = document_member(rmp, "validate");
    if (validate != NULL)
        config->validate = validate->boolean;
    sync = document_member(rmp, "history_sync");
    config->history_sync = sync != NULL && sync->boolean;
    uids = document_member(rmp, "ui_uids");
    if (!copy_string(&config->socket_path, document_member(rmp, "socket_path")) ||
        !copy_string(&config->sockets_dir, document_member(rmp, "sockets_dir")) ||
        !copy_string(&config->history, document_member(rmp, "history")) ||
        !read_schemas(&config->schemas, document_member(rmp, "schemas")))
        return STDIO_BUS_ERR;
    return uids != NULL ? access_read_uids(&config->ui, uids) : STDIO_BUS_OK;
}

void rmp_keys_drop_history(struct rmp_config *config)
{
    free(config->history);
    config->history = NULL;
}

void rmp_keys_free(struct rmp_config *config)
{
    rmp_schemas_free(&config->schemas);
    free(config->socket_path);
    free(config->sockets_dir);
    free(config->history);
    access_free(&config->ui);
    *config = (struct rmp_config){.enabled = false};
}
