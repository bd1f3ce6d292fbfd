#include "build_config.h"

#include "config/validation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "config/advice.h"
#include "config/command.h"
#include "config/environment.h"
#include "config/include.h"
#include "config/listen.h"
#include "config/pool_mode.h"
#include "config/pool_name.h"
#include "config/rmp_keys.h"
#include "config/rmp_pool.h"
#include "config/rmp_socket.h"
#include "config/rules.h"
#include "config/sources.h"
#include "config/transport_keys.h"
#include "framing/framing.h"

/* --- keys that must fit the protocol of their pool --- */

static bool has_protocol(const struct json_value *pool, enum pool_protocol wanted)
{
    const struct json_value *protocol = document_member(pool, "protocol");

    return protocol != NULL && protocol->type == JSON_STRING &&
           pool_mode_word(protocol, pool_mode_protocol_words) + 1 == (int)wanted;
}

static void check_clients(struct diagnostics *diagnostics, const struct json_value *clients)
{
    if (has_protocol(clients->parent, PROTOCOL_LSP) &&
        pool_mode_word(clients, pool_mode_clients_words) != CLIENTS_EXCLUSIVE)
        diagnostics_value(diagnostics, clients,
                          "must be \"exclusive\" with \"protocol\": \"lsp\": a language server "
                          "keeps the documents of one editor");
}

static void check_exit(struct diagnostics *diagnostics, const struct json_value *word)
{
    if (!has_protocol(word->parent, PROTOCOL_MCP) &&
        pool_mode_word(word, pool_mode_exit_words) + 1 == EXIT_REPLAYS)
        diagnostics_value(diagnostics, word,
                          "\"replay\" needs \"protocol\": \"mcp\": other conversations cannot be "
                          "begun again");
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define INSTANCES_MAX 1024 /* workers of one pool */
#define WORKERS_MAX 4096   /* workers of all pools */
#define GIB 1073741824
#define DAY_SEC 86400
#define WEEK_SEC 604800

/* --- checks of one value --- */

/* Refused where the system has no such call: the author relies on it. */
static void check_no_new_privs(struct diagnostics *diagnostics, const struct json_value *value)
{
    rules_check_boolean(diagnostics, value);
#ifndef HAVE_NO_NEW_PRIVS
    if (value->type == JSON_BOOLEAN && value->boolean)
        diagnostics_value(diagnostics, value, "this system has no prctl(PR_SET_NO_NEW_PRIVS)");
#endif
}

static void check_framing(struct diagnostics *diagnostics, const struct json_value *framing)
{
    if (diagnostics_check_string(diagnostics, framing) && framing_named(framing->text.data) == NULL)
        diagnostics_value(diagnostics, framing, "must be " FRAMING_NAMES);
}

/* --- pools --- */

static void check_id(struct diagnostics *diagnostics, const struct json_value *id)
{
    if (rules_check_filled(diagnostics, id) && id->text.len > POOL_ID_MAX)
        diagnostics_value(diagnostics, id, "must be at most %d bytes long", POOL_ID_MAX);
}

/* The id of a pool, if it is a string. */
static const struct json_value *id_of(const struct json_value *pool)
{
    const struct json_value *id = pool->type == JSON_OBJECT ? document_member(pool, "id") : NULL;

    return id != NULL && id->type == JSON_STRING && id->text.len > 0 ? id : NULL;
}

/* Pools come from several files: the list of all of them is that of `pools`. */
static void check_unique_id(struct diagnostics *diagnostics, const struct json_value *pools,
                            const struct json_value *pool)
{
    const struct json_value *id = id_of(pool), *other, *earlier;
    char shown[64], path[DOCUMENT_PATH_MAX], place[DIAGNOSTICS_PLACE_MAX];

    for (other = pools->first; id != NULL && other != pool; other = other->next) {
        earlier = id_of(other);
        if (earlier == NULL || !slice_equal(earlier->text, id->text))
            continue;
        document_path(path, sizeof path, other);
        diagnostics_value(diagnostics, id, "\"%s\" is the id of %s already, at %s",
                          log_escape(shown, sizeof shown, id->text), path,
                          diagnostics_place(place, diagnostics, earlier, id));
        return;
    }
}

static void check_args(struct diagnostics *diagnostics, const struct json_value *args)
{
    if (!diagnostics_check_type(diagnostics, args, JSON_ARRAY, "an array of strings"))
        return;
    for (const struct json_value *arg = args->first; arg != NULL; arg = arg->next)
        diagnostics_check_string(diagnostics, arg);
}

/* The errno because of which no program can run in that directory, or 0. */
static int directory_error(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || (S_ISDIR(status.st_mode) && access(path, X_OK) != 0))
        return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

static void check_cwd(struct diagnostics *diagnostics, const struct json_value *cwd)
{
    char shown[512];
    int error;

    if (!rules_check_filled(diagnostics, cwd) || sources_replace_files(diagnostics->sources))
        return;
    error = directory_error(cwd->text.data);
    if (error != 0)
        diagnostics_value(diagnostics, cwd, "cannot work in \"%s\": %s",
                          log_escape(shown, sizeof shown, cwd->text), strerror(error));
}

static void check_control(struct diagnostics *diagnostics, const struct json_value *path)
{
    char to[RMP_SOCKET_MAX], why[RMP_SOCKET_REASON_MAX];

    if (rules_check_filled(diagnostics, path) &&
        rmp_socket_expand(to, path->text.data, "", why) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, path, "%s", why);
}

static const char *const bad_output_words[] = {"terminate", "skip", NULL};

static const char *const stderr_words[] = {"inherit", "log", NULL};

static const struct rule pool_rules[] = {
    {.key = "id", .check = check_id, .required = true},
    {.key = "command", .check = rules_check_string, .required = true, .of_command = true},
    {.key = "args", .check = check_args},
    {.key = "env", .check = environment_check, .of_command = true},
    {.key = "clear_env", .check = rules_check_boolean, .of_command = true},
    {.key = "cwd", .check = check_cwd, .of_command = true},
    {.key = "no_new_privs", .check = check_no_new_privs},
    {.key = "core", .check = rules_check_boolean},
    {.key = "stderr", .words = stderr_words},
    {.key = "on_bad_output", .words = bad_output_words},
    {.key = "instances", .min = 1, .max = INSTANCES_MAX},
    {.key = "framing", .check = check_framing},
    {.key = "clients", .words = pool_mode_clients_words, .check = check_clients},
    {.key = "session", .words = pool_mode_session_words},
    {.key = "ids", .words = pool_mode_ids_words},
    {.key = "protocol", .words = pool_mode_protocol_words},
    {.key = "on_worker_exit", .words = pool_mode_exit_words, .check = check_exit},
    {.key = "spare", .max = POOL_MODE_SPARE_MAX},
    {.key = "rmp", .check = rmp_pool_check},
    {.key = "busy_timeout_sec", .max = POOL_MODE_TIMEOUT_MAX},
    {.key = "request_timeout_sec", .max = POOL_MODE_TIMEOUT_MAX},
};

static void check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    if (!diagnostics_check_type(diagnostics, pool, JSON_OBJECT, "an object"))
        return;
    if (rules_check_members(diagnostics, pool, pool_rules, COUNT(pool_rules)) &&
        !sources_replace_files(diagnostics->sources))
        command_check(diagnostics, pool);
    rules_warn_unknown(diagnostics, pool, pool_rules, COUNT(pool_rules));
}

/* The workers of the pool; 0 if the key is not valid. */
static int64_t count_instances(const struct json_value *pool)
{
    const struct json_value *value = pool->type == JSON_OBJECT ? document_member(pool, "instances")
                                                               : NULL;
    int64_t count;

    if (value != NULL && (!document_integer(value, &count) || count < 1 || count > INSTANCES_MAX))
        return 0;
    return pool->type == JSON_OBJECT ? pool_mode_instances(pool) : 0;
}

/* Spec 9.2 to the letter has no default. */
static void check_strict(struct diagnostics *diagnostics, const struct json_value *pools,
                         const struct json_value *pool)
{
    const struct json_value *strict = document_member(pools->parent, "strict");

    if (strict != NULL && strict->boolean && pool->type == JSON_OBJECT &&
        document_member(pool, "instances") == NULL)
        diagnostics_missing(diagnostics, pool, "instances");
}

static void check_pools(struct diagnostics *diagnostics, const struct json_value *pools)
{
    int64_t workers = 0;

    if (!diagnostics_check_type(diagnostics, pools, JSON_ARRAY, "an array"))
        return;
    if (pools->first == NULL)
        diagnostics_value(diagnostics, pools, "must contain at least one pool");
    for (const struct json_value *pool = pools->first; pool != NULL; pool = pool->next) {
        check_unique_id(diagnostics, pools, pool);
        check_pool(diagnostics, pool);
        check_strict(diagnostics, pools, pool);
        rmp_pool_check_unique(diagnostics, pools, pool);
        workers += count_instances(pool);
    }
    if (workers > WORKERS_MAX)
        diagnostics_value(diagnostics, pools, "the instances of all pools must be <= %d, not %lld",
                          WORKERS_MAX, (long long)workers);
}

/* --- the other objects --- */

#define MEMORY_MAX (SIZE_MAX > UINT32_MAX ? 1LL << 40 : GIB)

#define LIMIT(name, low, high)                                                                     \
    {                                                                                              \
        .key = #name, .min = (low), .max = (high), .size = sizeof((struct limits *)NULL)->name,    \
        .offset = offsetof(struct limits, name)                                                    \
    }

static const struct rule limit_rules[] = {
    LIMIT(max_input_buffer, 1, GIB),
    LIMIT(max_message, 1, GIB),
    LIMIT(max_output_queue, 1, GIB),
    LIMIT(max_memory, 1048576, MEMORY_MAX),
    LIMIT(max_restarts, 0, 1000),
    LIMIT(restart_window_sec, 1, DAY_SEC),
    LIMIT(drain_timeout_sec, 0, DAY_SEC),
    LIMIT(backpressure_timeout_sec, 1, DAY_SEC),
    LIMIT(abandoned_id_sec, 1, DAY_SEC),
    LIMIT(frame_timeout_sec, 1, DAY_SEC),
    LIMIT(half_close_sec, 1, DAY_SEC),
    LIMIT(slow_client_timeout_sec, 1, 60),
    LIMIT(max_connections, 1, 1000000),
    LIMIT(max_sessions, 1, 1000000),
    LIMIT(max_pending_requests, 1, 1000000),
    LIMIT(session_idle_sec, 1, WEEK_SEC),
    LIMIT(max_session_requests, 1, 65536),
    LIMIT(max_resume, 0, GIB),
    LIMIT(max_resume_total, 0, GIB),
    LIMIT(max_requests_per_connection, 0, 1000000000),
    LIMIT(ping_sec, 0, DAY_SEC),
    LIMIT(max_requests_per_client, 0, 1000000),
    LIMIT(max_message_rate, 0, 1000000),
    LIMIT(idle_timeout_sec, 0, DAY_SEC),
};

/* A message that is not refused before its pool is known has to fit into its half of the memory. */
static void check_max_message(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *object = document_member(root, "limits"), *value;
    struct limits limits = LIMITS_DEFAULT;

    value = object != NULL && diagnostics->errors == 0 ? document_member(object, "max_message")
                                                       : NULL;
    if (value == NULL)
        return;
    validation_apply_limits(&limits, object);
    if (limits.max_message < limits.max_input_buffer)
        diagnostics_value(diagnostics, value, "must be at least max_input_buffer (%zu)",
                          limits.max_input_buffer);
    else if (limits.max_message > limits.max_memory / 2)
        diagnostics_value(diagnostics, value, "must be at most half of max_memory (%zu)",
                          limits.max_memory / 2);
}

static void report_no_pools(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *include = document_member(root, "include");

    if (include != NULL && diagnostics->errors == 0)
        diagnostics_value(diagnostics, include, "no file has a pool");
    else if (include == NULL)
        diagnostics_missing(diagnostics, root, "pools");
}

void validation_check(struct diagnostics *diagnostics, const struct json_value *root)
{
    static const struct rule rules[] = {
        {.key = "pools", .check = check_pools},
        {.key = "include", .check = include_check},
        {.key = "limits", .members = limit_rules, .member_count = COUNT(limit_rules)},
        {.key = "listen", .check = listen_check},
        {.key = "metrics", .check = listen_check_metrics},
        {.key = "transport", .check = transport_keys_check},
        {.key = "rmp", .check = rmp_keys_check},
        {.key = "strict", .check = rules_check_boolean},
        {.key = "control", .check = check_control},
        {.key = "mcpServers", .check = advice_check_servers},
    };

    if (root->type == JSON_OBJECT && document_member(root, "pools") == NULL &&
        document_member(root, "rmp") == NULL)
        report_no_pools(diagnostics, root);
    rules_check_object(diagnostics, root, rules, COUNT(rules));
    check_max_message(diagnostics, root);
    if (diagnostics->errors == 0)
        advice_check(diagnostics, root);
}

void validation_apply_limits(struct limits *limits, const struct json_value *object)
{
    rules_apply(limits, limit_rules, COUNT(limit_rules), object);
    if (document_member(object, "max_input_buffer") != NULL)
        limits->max_frame_body = limits->max_input_buffer;
    if (document_member(object, "max_message") != NULL)
        return;
    if (limits->max_message > limits->max_memory / 4)
        limits->max_message = limits->max_memory / 4;
    if (limits->max_message < limits->max_input_buffer)
        limits->max_message = limits->max_input_buffer;
}
