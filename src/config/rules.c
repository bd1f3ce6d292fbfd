#include "build_config.h"

#include "config/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "config/command.h"
#include "config/environment.h"
#include "config/keys.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what all values share ------------------------------------------------------------------ */

static bool check_filled_string(struct config_report *report, const struct json_value *value)
{
    if (!config_check_string(report, value))
        return false;
    if (value->text.len > 0)
        return true;
    config_report_value(report, value, "must not be empty");
    return false;
}

static bool check_integer(struct config_report *report, const struct json_value *value, int64_t min,
                          int64_t max)
{
    int64_t integer;

    if (value->type != JSON_NUMBER)
        config_report_value(report, value, "must be an integer >= %lld, not %s", (long long)min,
                            json_type_name(value->type));
    else if (!json_integer(value, &integer) || integer < min)
        config_report_value(report, value, "must be an integer >= %lld", (long long)min);
    else if (integer > max)
        config_report_value(report, value, "must be an integer <= %lld", (long long)max);
    else
        return true;
    return false;
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* The id that a pool before this one has as well, or NULL. */
static const struct json_value *earlier_id(const struct json_value *id)
{
    const struct json_value *pool = id->parent, *other, *other_id;

    for (other = pool->parent->first; other != pool; other = other->next) {
        other_id = other->type == JSON_OBJECT ? json_member(other, "id") : NULL;
        if (other_id != NULL && other_id->type == JSON_STRING &&
            slice_equal(other_id->text, id->text))
            return other_id;
    }
    return NULL;
}

static void check_id(struct config_report *report, const struct json_value *id)
{
    const struct json_value *earlier;
    char shown[64], path[JSON_PATH_MAX];

    if (!check_filled_string(report, id))
        return;
    if (id->text.len > CONFIG_POOL_ID_MAX) {
        config_report_value(report, id, "must be at most %d bytes long", CONFIG_POOL_ID_MAX);
        return;
    }
    earlier = earlier_id(id);
    if (earlier == NULL)
        return;
    json_path(path, sizeof(path), earlier->parent);
    config_report_value(report, id, "\"%s\" is the id of %s already, at %zu:%zu",
                        log_escape(shown, sizeof(shown), id->text), path, earlier->at.line,
                        earlier->at.column);
}

static void check_command(struct config_report *report, const struct json_value *command)
{
    check_filled_string(report, command);
}

/* That there is something to run, looked for as the workers will. What that depends on is right. */
static void check_runnable(struct config_report *report, const struct json_value *pool)
{
    const struct json_value *command = json_member(pool, "command");
    const struct json_value *cwd = json_member(pool, "cwd");
    char **envp = environment_build(pool);
    char shown[512];
    int error = ENOMEM;

    if (envp != NULL)
        error = command_check(command->text.data, environment_get(envp, "PATH"),
                              cwd != NULL ? cwd->text.data : NULL);
    free(envp);
    if (error == 0)
        return;
    log_escape(shown, sizeof(shown), command->text);
    config_report_value(report, command, "cannot run \"%s\"%s: %s", shown,
                        strchr(command->text.data, '/') == NULL ? ", looked up in PATH" : "",
                        strerror(error));
}

static void check_boolean(struct config_report *report, const struct json_value *value)
{
    config_check_type(report, value, JSON_BOOLEAN, "true or false");
}

/* Why nothing can run there; 0: it can. */
static int why_not_in(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || (S_ISDIR(status.st_mode) && access(path, X_OK) != 0))
        return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

static void check_cwd(struct config_report *report, const struct json_value *cwd)
{
    char shown[512];
    int error;

    if (!check_filled_string(report, cwd))
        return;
    error = why_not_in(cwd->text.data);
    if (error != 0)
        config_report_value(report, cwd, "cannot work in \"%s\": %s",
                            log_escape(shown, sizeof(shown), cwd->text), strerror(error));
}

static void check_args(struct config_report *report, const struct json_value *args)
{
    const struct json_value *arg;

    if (!config_check_type(report, args, JSON_ARRAY, "an array of strings"))
        return;
    for (arg = args->first; arg != NULL; arg = arg->next)
        config_check_string(report, arg);
}

static void check_framing(struct config_report *report, const struct json_value *framing)
{
    if (config_check_string(report, framing) && framing_named(framing->text.data) == NULL)
        config_report_value(report, framing, "must be " FRAMING_NAMES);
}

static void check_instances(struct config_report *report, const struct json_value *instances)
{
    check_integer(report, instances, 1, CONFIG_INSTANCES_MAX);
}

static void check_word(struct config_report *report, const struct json_value *value,
                       const char *const *words)
{
    char list[100];
    size_t len = 0;
    int i;

    if (!config_check_type(report, value, JSON_STRING, "a string") ||
        sharing_word(value, words) >= 0)
        return;
    for (i = 0; words[i] != NULL; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s\"%s\"",
                                i == 0                 ? ""
                                : words[i + 1] == NULL ? " or "
                                                       : ", ",
                                words[i]);
    config_report_value(report, value, "must be %s", list);
}

static void check_on_bad_output(struct config_report *report, const struct json_value *value)
{
    static const char *const words[] = {"terminate", "skip", NULL};

    if (config_check_string(report, value))
        check_word(report, value, words);
}

static void check_clients(struct config_report *report, const struct json_value *value)
{
    check_word(report, value, sharing_clients_words);
}

static void check_session(struct config_report *report, const struct json_value *value)
{
    check_word(report, value, sharing_session_words);
}

static void check_ids(struct config_report *report, const struct json_value *value)
{
    check_word(report, value, sharing_ids_words);
}

static void check_protocol(struct config_report *report, const struct json_value *value)
{
    check_word(report, value, sharing_protocol_words);
}

static void check_spare(struct config_report *report, const struct json_value *value)
{
    check_integer(report, value, 0, SHARING_SPARE_MAX);
}

static void check_timeout(struct config_report *report, const struct json_value *value)
{
    check_integer(report, value, 0, SHARING_TIMEOUT_MAX);
}

static const struct pool_rule {
    const char *key;
    bool required;
    void (*check)(struct config_report *report, const struct json_value *value);
} pool_rules[] = {
    {"id", true, check_id},
    {"command", true, check_command},
    {"args", false, check_args},
    {"env", false, environment_check},
    {"clear_env", false, check_boolean},
    {"cwd", false, check_cwd},
    {"on_bad_output", false, check_on_bad_output},
    {"instances", true, check_instances},
    {"framing", false, check_framing},
    {"clients", false, check_clients},
    {"session", false, check_session},
    {"ids", false, check_ids},
    {"protocol", false, check_protocol},
    {"spare", false, check_spare},
    {"busy_timeout_sec", false, check_timeout},
    {"request_timeout_sec", false, check_timeout},
};

/* Whether what is run depends on this key. */
static bool is_to_run(const char *key)
{
    static const char *const keys[] = {"command", "env", "clear_env", "cwd"};
    size_t i;

    for (i = 0; i < COUNT(keys); i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

static void check_pool(struct config_report *report, const struct json_value *pool)
{
    const char *known[COUNT(pool_rules)];
    const struct json_value *value;
    bool runnable = true;
    size_t i;

    if (!config_check_type(report, pool, JSON_OBJECT, "an object"))
        return;
    for (i = 0; i < COUNT(pool_rules); i++) {
        size_t before = report->errors;

        known[i] = pool_rules[i].key;
        value = json_member(pool, known[i]);
        if (value != NULL)
            pool_rules[i].check(report, value);
        else if (pool_rules[i].required)
            config_report_missing(report, pool, known[i]);
        if (report->errors > before && is_to_run(known[i]))
            runnable = false;
    }
    if (runnable)
        check_runnable(report, pool);
    config_warn_unknown_keys(report, pool, known, COUNT(known));
}

/* Workers of the pool; 0 when its rules are broken. */
static int64_t count_instances(const struct json_value *pool)
{
    const struct json_value *value =
        pool->type == JSON_OBJECT ? json_member(pool, "instances") : NULL;
    int64_t count;

    if (value == NULL || !json_integer(value, &count) || count < 1 || count > CONFIG_INSTANCES_MAX)
        return 0;
    return count;
}

static void check_pools(struct config_report *report, const struct json_value *pools)
{
    const struct json_value *pool;
    int64_t workers = 0;

    if (!config_check_type(report, pools, JSON_ARRAY, "an array"))
        return;
    if (pools->first == NULL)
        config_report_value(report, pools, "must contain at least one pool");
    for (pool = pools->first; pool != NULL; pool = pool->next) {
        check_pool(report, pool);
        workers += count_instances(pool);
    }
    if (workers > CONFIG_WORKERS_MAX)
        config_report_value(report, pools, "the instances of all pools must be <= %d, not %lld",
                            CONFIG_WORKERS_MAX, (long long)workers);
}

/* ---- limits --------------------------------------------------------------------------------- */

#define GIB 1073741824

static const struct limit_rule {
    const char *key;
    enum { OF_SIZE_T, OF_UNSIGNED } type;
    int64_t min, max;
    size_t offset;
} limit_rules[] = {
#define LIMIT(field, type, min, max) {#field, type, min, max, offsetof(struct limits, field)}
    LIMIT(max_input_buffer, OF_SIZE_T, 1024, GIB),
    LIMIT(max_output_queue, OF_SIZE_T, 1024, GIB),
    LIMIT(max_restarts, OF_UNSIGNED, 0, 1000),
    LIMIT(restart_window_sec, OF_UNSIGNED, 1, 86400),
    LIMIT(drain_timeout_sec, OF_UNSIGNED, 0, 86400),
    LIMIT(backpressure_timeout_sec, OF_UNSIGNED, 1, 86400),
    LIMIT(frame_timeout_sec, OF_UNSIGNED, 1, 86400),
    LIMIT(max_connections, OF_SIZE_T, 1, 1000000),
    LIMIT(max_sessions, OF_SIZE_T, 1, 1000000),
    LIMIT(max_pending_requests, OF_SIZE_T, 1, 1000000),
#undef LIMIT
};

static void check_limits(struct config_report *report, const struct json_value *limits)
{
    const char *known[COUNT(limit_rules)];
    const struct json_value *value;
    size_t i;

    if (!config_check_type(report, limits, JSON_OBJECT, "an object"))
        return;
    for (i = 0; i < COUNT(limit_rules); i++) {
        known[i] = limit_rules[i].key;
        value = json_member(limits, known[i]);
        if (value != NULL)
            check_integer(report, value, limit_rules[i].min, limit_rules[i].max);
    }
    config_warn_unknown_keys(report, limits, known, COUNT(known));
}

void rules_apply_limits(struct limits *limits, const struct json_value *object)
{
    const struct json_value *value;
    int64_t integer;
    size_t i;

    for (i = 0; i < COUNT(limit_rules); i++) {
        char *field = (char *)limits + limit_rules[i].offset;

        value = json_member(object, limit_rules[i].key);
        if (value == NULL || !json_integer(value, &integer))
            continue;
        if (limit_rules[i].type == OF_SIZE_T)
            *(size_t *)(void *)field = (size_t)integer;
        else
            *(unsigned *)(void *)field = (unsigned)integer;
    }
    if (json_member(object, "max_input_buffer") != NULL)
        limits->max_frame_body = limits->max_input_buffer;
}

/* ---- clients ------------------------------------------------------------------------------- */

static void check_listen(struct config_report *report, const struct json_value *listen)
{
    static const char *const known[] = {"framing"};
    const struct json_value *framing;

    if (!config_check_type(report, listen, JSON_OBJECT, "an object"))
        return;
    framing = json_member(listen, "framing");
    if (framing != NULL)
        check_framing(report, framing);
    config_warn_unknown_keys(report, listen, known, COUNT(known));
}

/* ---- the whole ------------------------------------------------------------------------------ */

void rules_check(struct config_report *report, const struct json_value *root)
{
    static const char *const known[] = {"pools", "limits", "listen", "strict"};
    const struct json_value *pools, *limits, *listen, *strict;

    if (!config_check_type(report, root, JSON_OBJECT, "an object"))
        return;
    pools = json_member(root, "pools");
    limits = json_member(root, "limits");
    listen = json_member(root, "listen");
    strict = json_member(root, "strict");
    if (pools != NULL)
        check_pools(report, pools);
    else
        config_report_missing(report, root, "pools");
    if (limits != NULL)
        check_limits(report, limits);
    if (listen != NULL)
        check_listen(report, listen);
    if (strict != NULL)
        config_check_type(report, strict, JSON_BOOLEAN, "true or false");
    config_warn_unknown_keys(report, root, known, COUNT(known));
}
