#include "build_config.h"

#include "config/validation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "config/access.h"
#include "config/advice.h"
#include "config/command.h"
#include "config/environment.h"
#include "config/mode_keys.h"
#include "config/pool_mode.h"
#include "config/rmp_pool.h"
#include "config/spelling.h"
#include "config/token.h"
#include "config/transport_keys.h"
#include "framing/framing.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define POOL_ID_MAX 256    /* bytes */
#define INSTANCES_MAX 1024 /* workers of one pool */
#define WORKERS_MAX 4096   /* workers of all pools */
#define GIB 1073741824
#define DAY_SEC 86400

typedef void check_fn(struct diagnostics *diagnostics, const struct json_value *value);

/* The rule for a key, of one of four kinds: a word, which may have a check too, an integer, an
 * object with keys of its own, or a check. */
struct rule {
    const char *key;
    const char *const *words; /* the values; ends with NULL */
    int64_t min, max;         /* of an integer; max > 0 */
    const struct rule *members;
    size_t member_count;
    check_fn *check;
    bool required;
    bool of_command;     /* decides which program is executed */
    size_t size, offset; /* limits: the member of struct limits */
};

/* --- checks of one value --- */

static void check_boolean(struct diagnostics *diagnostics, const struct json_value *value)
{
    diagnostics_check_type(diagnostics, value, JSON_BOOLEAN, "true or false");
}

/* Refused where the system has no such call: the author relies on it. */
static void check_no_new_privs(struct diagnostics *diagnostics, const struct json_value *value)
{
    check_boolean(diagnostics, value);
#ifndef HAVE_NO_NEW_PRIVS
    if (value->type == JSON_BOOLEAN && value->boolean)
        diagnostics_value(diagnostics, value, "this system has no prctl(PR_SET_NO_NEW_PRIVS)");
#endif
}

static bool is_filled_string(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (!diagnostics_check_string(diagnostics, value))
        return false;
    if (value->text.len > 0)
        return true;
    diagnostics_value(diagnostics, value, "must not be empty");
    return false;
}

static void check_filled_string(struct diagnostics *diagnostics, const struct json_value *value)
{
    is_filled_string(diagnostics, value);
}

static void check_integer(struct diagnostics *diagnostics, const struct json_value *value,
                          long long min, long long max)
{
    int64_t integer;

    if (value->type != JSON_NUMBER)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld, not %s", min,
                          document_type_name(value->type));
    else if (!document_integer(value, &integer) || integer < min)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld", min);
    else if (integer > max)
        diagnostics_value(diagnostics, value, "must be an integer <= %lld", max);
}

static bool check_word(struct diagnostics *diagnostics, const struct json_value *value,
                       const char *const *words)
{
    char list[100];
    size_t len = 0;

    if (!diagnostics_check_type(diagnostics, value, JSON_STRING, "a string"))
        return false;
    if (pool_mode_word(value, words) >= 0)
        return true;
    for (int i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        len += (size_t)snprintf(list + len, sizeof list - len, "%s\"%s\"", before, words[i]);
    }
    diagnostics_value(diagnostics, value, "must be %s", list);
    return false;
}

static void check_framing(struct diagnostics *diagnostics, const struct json_value *framing)
{
    if (diagnostics_check_string(diagnostics, framing) && framing_named(framing->text.data) == NULL)
        diagnostics_value(diagnostics, framing, "must be " FRAMING_NAMES);
}

/* --- unknown keys --- */

/* The key of a rule that is likely to be meant, or NULL. */
static const char *nearest(struct slice key, const struct rule *rules, size_t count)
{
    const char *found = NULL;
    size_t least = SPELLING_MAX;

    if (key.len > SPELLING_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(rules[i].key),
               distance = spelling_distance(key, slice_of(rules[i].key, len));
        if (distance < least && distance <= (len < 6 ? 1 : len / 3)) {
            least = distance;
            found = rules[i].key;
        }
    }
    return found;
}

/* Warns about each key without a rule and names the key that is likely to be meant. */
static void warn_unknown(struct diagnostics *diagnostics, const struct json_value *object,
                         const struct rule *rules, size_t count)
{
    const struct json_value *member;

    for (member = object->first; member != NULL; member = member->next) {
        const char *near = nearest(member->key, rules, count);

        if (diagnostics_is_comment(member))
            continue;
        if (near == NULL)
            diagnostics_warn(diagnostics, member, "unknown key");
        else if (!slice_equal(member->key, slice_of(near, strlen(near))))
            diagnostics_warn(diagnostics, member, "unknown key, did you mean \"%s\"?", near);
    }
}

/* --- objects --- */

static bool check_members(struct diagnostics *diagnostics, const struct json_value *object,
                          const struct rule *rules, size_t count);

static void check_object(struct diagnostics *diagnostics, const struct json_value *value,
                         const struct rule *rules, size_t count)
{
    if (!diagnostics_check_type(diagnostics, value, JSON_OBJECT, "an object"))
        return;
    check_members(diagnostics, value, rules, count);
    warn_unknown(diagnostics, value, rules, count);
}

static void check_value(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct rule *rule)
{
    if (rule->words != NULL && !check_word(diagnostics, value, rule->words))
        return;
    if (rule->max > 0)
        check_integer(diagnostics, value, rule->min, rule->max);
    else if (rule->members != NULL)
        check_object(diagnostics, value, rule->members, rule->member_count);
    else if (rule->check != NULL)
        rule->check(diagnostics, value);
}

/* Returns false if a value that decides which program is executed is wrong. */
static bool check_members(struct diagnostics *diagnostics, const struct json_value *object,
                          const struct rule *rules, size_t count)
{
    bool command_right = true;

    for (size_t i = 0; i < count; i++) {
        const struct json_value *value = document_member(object, rules[i].key);
        size_t before = diagnostics->errors;

        if (value != NULL)
            check_value(diagnostics, value, &rules[i]);
        else if (rules[i].required)
            diagnostics_missing(diagnostics, object, rules[i].key);
        if (rules[i].of_command && diagnostics->errors > before)
            command_right = false;
    }
    return command_right;
}

/* --- pools --- */

/* The same id of an earlier pool, or NULL. */
static const struct json_value *earlier_id(const struct json_value *id)
{
    const struct json_value *pool = id->parent, *other, *other_id;

    for (other = pool->parent->first; other != pool; other = other->next) {
        other_id = other->type == JSON_OBJECT ? document_member(other, "id") : NULL;
        if (other_id != NULL && other_id->type == JSON_STRING &&
            slice_equal(other_id->text, id->text))
            return other_id;
    }
    return NULL;
}

static void check_id(struct diagnostics *diagnostics, const struct json_value *id)
{
    const struct json_value *earlier;
    char shown[64], path[DOCUMENT_PATH_MAX];

    if (!is_filled_string(diagnostics, id))
        return;
    if (id->text.len > POOL_ID_MAX) {
        diagnostics_value(diagnostics, id, "must be at most %d bytes long", POOL_ID_MAX);
        return;
    }
    earlier = earlier_id(id);
    if (earlier == NULL)
        return;
    document_path(path, sizeof path, earlier->parent);
    diagnostics_value(diagnostics, id, "\"%s\" is the id of %s already, at %zu:%zu",
                      log_escape(shown, sizeof shown, id->text), path, earlier->at.line,
                      earlier->at.column);
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

    if (!is_filled_string(diagnostics, cwd))
        return;
    error = directory_error(cwd->text.data);
    if (error != 0)
        diagnostics_value(diagnostics, cwd, "cannot work in \"%s\": %s",
                          log_escape(shown, sizeof shown, cwd->text), strerror(error));
}

static const char *const bad_output_words[] = {"terminate", "skip", NULL};

static const struct rule pool_rules[] = {
    {.key = "id", .check = check_id, .required = true},
    {.key = "command", .check = check_filled_string, .required = true, .of_command = true},
    {.key = "args", .check = check_args},
    {.key = "env", .check = environment_check, .of_command = true},
    {.key = "clear_env", .check = check_boolean, .of_command = true},
    {.key = "cwd", .check = check_cwd, .of_command = true},
    {.key = "no_new_privs", .check = check_no_new_privs},
    {.key = "core", .check = check_boolean},
    {.key = "on_bad_output", .words = bad_output_words},
    {.key = "instances", .required = true, .min = 1, .max = INSTANCES_MAX},
    {.key = "framing", .check = check_framing},
    {.key = "clients", .words = pool_mode_clients_words, .check = mode_keys_check_clients},
    {.key = "session", .words = pool_mode_session_words},
    {.key = "ids", .words = pool_mode_ids_words},
    {.key = "protocol", .words = pool_mode_protocol_words},
    {.key = "on_worker_exit", .words = pool_mode_exit_words, .check = mode_keys_check_exit},
    {.key = "spare", .max = POOL_MODE_SPARE_MAX},
    {.key = "rmp", .check = rmp_pool_check},
    {.key = "busy_timeout_sec", .max = POOL_MODE_TIMEOUT_MAX},
    {.key = "request_timeout_sec", .max = POOL_MODE_TIMEOUT_MAX},
};

static void check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    if (!diagnostics_check_type(diagnostics, pool, JSON_OBJECT, "an object"))
        return;
    if (check_members(diagnostics, pool, pool_rules, COUNT(pool_rules)))
        command_check(diagnostics, pool);
    warn_unknown(diagnostics, pool, pool_rules, COUNT(pool_rules));
}

/* The workers of the pool; 0 if the key is not valid. */
static int64_t count_instances(const struct json_value *pool)
{
    const struct json_value *value = pool->type == JSON_OBJECT ? document_member(pool, "instances")
                                                               : NULL;
    int64_t count;

    if (value == NULL || !document_integer(value, &count) || count < 1 || count > INSTANCES_MAX)
        return 0;
    return count;
}

static void check_pools(struct diagnostics *diagnostics, const struct json_value *pools)
{
    int64_t workers = 0;

    if (!diagnostics_check_type(diagnostics, pools, JSON_ARRAY, "an array"))
        return;
    if (pools->first == NULL)
        diagnostics_value(diagnostics, pools, "must contain at least one pool");
    for (const struct json_value *pool = pools->first; pool != NULL; pool = pool->next) {
        check_pool(diagnostics, pool);
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
};

static const struct rule listen_rules[] = {
    {.key = "framing", .check = check_framing},
    {.key = "mode", .check = access_check_mode},
    {.key = "group", .check = access_check_group},
    {.key = "allow_uids", .check = access_check_uids},
    {.key = "token_file", .check = token_check_file},
    {.key = "open", .check = token_check_open},
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

void validation_check(struct diagnostics *diagnostics, const struct json_value *root)
{
    static const struct rule rules[] = {
        {.key = "pools", .check = check_pools, .required = true},
        {.key = "limits", .members = limit_rules, .member_count = COUNT(limit_rules)},
        {.key = "listen", .members = listen_rules, .member_count = COUNT(listen_rules)},
        {.key = "transport", .check = transport_keys_check},
        {.key = "strict", .check = check_boolean},
        {.key = "mcpServers", .check = advice_check_servers},
    };

    check_object(diagnostics, root, rules, COUNT(rules));
    check_max_message(diagnostics, root);
    if (diagnostics->errors == 0)
        advice_check(diagnostics, root);
}

void validation_apply_limits(struct limits *limits, const struct json_value *object)
{
    for (size_t i = 0; i < COUNT(limit_rules); i++) {
        const struct rule *rule = &limit_rules[i];
        const struct json_value *value = document_member(object, rule->key);
        unsigned number;
        int64_t integer;
        size_t size;

        if (value == NULL || !document_integer(value, &integer))
            continue;
        size = (size_t)integer;
        number = (unsigned)integer;
        memcpy((char *)limits + rule->offset,
               rule->size == sizeof size ? (const void *)&size : (const void *)&number, rule->size);
    }
    if (document_member(object, "max_input_buffer") != NULL)
        limits->max_frame_body = limits->max_input_buffer;
    if (document_member(object, "max_message") != NULL)
        return;
    if (limits->max_message > limits->max_memory / 4)
        limits->max_message = limits->max_memory / 4;
    if (limits->max_message < limits->max_input_buffer)
        limits->max_message = limits->max_input_buffer;
}
