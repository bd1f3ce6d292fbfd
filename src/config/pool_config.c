#include "build_config.h"

#include "config/pool_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "config/command.h"
#include "config/environment.h"
#include "config/pool_nats.h"
#include "config/pool_url.h"
#include "config/sources.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define INSTANCES_MAX 1024 /* workers of one pool */
#define WORKERS_MAX 4096   /* workers of all pools */
#define BUSY_TIMEOUT_SEC 10

/* --- keys that must fit the protocol of their pool --- */

static bool has_protocol(const struct json_value *pool, enum pool_protocol wanted)
{
    const struct json_value *protocol = document_member(pool, "protocol");

    return protocol != NULL && protocol->type == JSON_STRING &&
           key_word(protocol, pool_mode_protocol_words) + 1 == (int)wanted;
}

static void check_clients(struct diagnostics *diagnostics, const struct json_value *clients)
{
    if (has_protocol(clients->parent, PROTOCOL_LSP) &&
        key_word(clients, pool_mode_clients_words) != CLIENTS_EXCLUSIVE)
        diagnostics_value(diagnostics, clients,
                          "must be \"exclusive\" with \"protocol\": \"lsp\": a language server "
                          "keeps the documents of one editor");
}

static void check_exit(struct diagnostics *diagnostics, const struct json_value *word)
{
    if (!has_protocol(word->parent, PROTOCOL_MCP) &&
        key_word(word, pool_mode_exit_words) + 1 == EXIT_REPLAYS)
        diagnostics_value(diagnostics, word,
                          "\"replay\" needs \"protocol\": \"mcp\": other conversations cannot be "
                          "begun again");
}

/* Refused where the system has no such call: the author relies on it. */
static void check_no_new_privs(struct diagnostics *diagnostics, const struct json_value *value)
{
#ifdef HAVE_NO_NEW_PRIVS
    (void)diagnostics, (void)value;
#else
    if (value->boolean)
        diagnostics_value(diagnostics, value, "this system has no prctl(PR_SET_NO_NEW_PRIVS)");
#endif
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

    if (sources_replace_files(diagnostics->sources))
        return;
    error = directory_error(cwd->text.data);
    if (error != 0)
        diagnostics_value(diagnostics, cwd, "cannot work in \"%s\": %s",
                          log_escape(shown, sizeof shown, cwd->text), strerror(error));
}

/* --- the pools of the topic bus --- */

/* The member of the key "rmp" of a pool, if both are of the right types; otherwise NULL. */
static const struct json_value *rmp_member(const struct json_value *pool, const char *key,
                                           enum json_type type)
{
    return document_member_of(document_member(pool, "rmp"), key, type);
}

static bool is_same_member(const struct json_value *a, const struct json_value *b)
{
    return a->type == JSON_BOOLEAN ? a->boolean && b->boolean : slice_equal(a->text, b->text);
}

/* What one pool alone may say. */
static void check_unique(struct diagnostics *diagnostics, const struct json_value *pools,
                         const struct json_value *pool, const struct json_value *member)
{
    const struct json_value *other, *earlier;
    char path[DOCUMENT_PATH_MAX], place[DIAGNOSTICS_PLACE_MAX];

    for (other = pools->first; member != NULL && other != pool; other = other->next) {
        earlier = rmp_member(other, member->key.data, member->type);
        if (earlier == NULL || !is_same_member(earlier, member))
            continue;
        document_path(path, sizeof path, other);
        diagnostics_value(diagnostics, member, "%s is that already, at %s", path,
                          diagnostics_place(place, diagnostics, earlier, member));
        return;
    }
}

static void check_unique_rmp(struct diagnostics *diagnostics, const struct json_value *pools,
                             const struct json_value *pool)
{
    check_unique(diagnostics, pools, pool, rmp_member(pool, "agent", JSON_STRING));
    check_unique(diagnostics, pools, pool, rmp_member(pool, "runner", JSON_BOOLEAN));
}

/* The name is a part of a topic. */
static bool is_agent(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    }
    return text.len > 0 && text.len <= RMP_AGENT_MAX;
}

/* The daemon is the client of such a pool, and its requests are of no other protocol. */
static void check_rmp(struct diagnostics *diagnostics, const struct json_value *value)
{
    static const char *const keys[] = {"protocol", "clients"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct json_value *other = document_member(value->parent, keys[i]);

        if (other != NULL)
            diagnostics_value(diagnostics, other, "a pool with \"rmp\" has no such key");
    }
    if (document_member(value, "agent") == NULL && document_member(value, "runner") == NULL)
        diagnostics_value(diagnostics, value, "must have \"agent\" or \"runner\"");
}

/* --- the table --- */

static int clients_of(const struct json_value *pool);

/* Where clients share workers, none waits for one of its own. */
static void check_overflow(struct diagnostics *diagnostics, const struct json_value *value)
{
    pool_nats_check_export(diagnostics, value);
    if (value->boolean && clients_of(value->parent) != CLIENTS_EXCLUSIVE)
        diagnostics_value(diagnostics, value, "needs \"clients\": \"exclusive\"");
}

static const char *const bad_output_words[] = {"terminate", "skip", NULL};

static const char *const stderr_words[] = {"inherit", "log", NULL};

static const struct key rmp_list[] = {
    KEY_ROW("agent", "The name of an agent, a part of its topic.", .kind = KEY_TEXT,
            .is_right = is_agent, .wanted = "must be 1 to 256 bytes, no control characters",
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct rmp_pool, agent)),
    KEY_ROW("runner", "The pool is the runner of the control plane. Default: false.",
            .kind = KEY_BOOLEAN, KEY_AT(struct rmp_pool, runner)),
};

static const struct key_table rmp_keys_of_pool = {
    KEY_TABLE(rmp_list), .unknown = UNKNOWN_WARNS,
    .schema = "\"anyOf\": [{\"required\": [\"agent\"]}, {\"required\": [\"runner\"]}]"};

static const struct key pool_list[] = {
    KEY_ROW("id", "The name of the pool, for messages with \"pool\" and for the log.",
            .kind = KEY_TEXT, .required = true, .min = 1, .max = POOL_ID_MAX,
            KEY_AT(struct pool_config, id)),
    KEY_ROW("command", "The program: a path, or a name that is looked up in PATH.",
            .kind = KEY_TEXT, .of_command = true, .min = 1, KEY_AT(struct pool_config, command)),
    KEY_ROW("url", "In place of a command: an MCP server at https:// or http://.", .kind = KEY_TEXT,
            .of_command = true, .min = 1, .check = pool_url_check, KEY_AT(struct pool_config, url)),
    KEY_ROW("headers", "Fields of each request to the url; ${NAME} as in env.", .of_command = true,
            .check = pool_url_check_headers,
            .schema = "\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}"),
    KEY_ROW("tls_command", "The program that speaks TLS with the url. Default: openssl s_client.",
            .kind = KEY_TEXT, .min = 1),
    KEY_ROW("args", "Its arguments; there is no shell.", .kind = KEY_TEXTS),
    KEY_ROW("env", "Variables of the environment; ${NAME} is one of the daemon's, $$ a dollar.",
            .of_command = true, .check = environment_check,
            .schema = "\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}"),
    KEY_ROW("clear_env", "The workers get the variables of env alone. Default: false.",
            .kind = KEY_BOOLEAN, .of_command = true),
    KEY_ROW("cwd", "Their working directory. Default: the daemon's.", .kind = KEY_TEXT,
            .change = CHANGE_PROGRAM, .of_command = true, .min = 1, .check = check_cwd,
            KEY_AT(struct pool_config, cwd)),
    KEY_ROW("no_new_privs", "No program that they run gains rights (Linux). Default: false.",
            .kind = KEY_BOOLEAN, .change = CHANGE_PROGRAM, .check = check_no_new_privs,
            KEY_AT(struct pool_config, no_new_privs)),
    KEY_ROW("core", "They may leave core files. Default: true.", .kind = KEY_BOOLEAN,
            .change = CHANGE_PROGRAM, .is_negated = true, KEY_AT(struct pool_config, no_core)),
    KEY_ROW("stderr", "Whether the daemon reads their stderr and logs it. Default: inherit.",
            .kind = KEY_WORD, .change = CHANGE_PROGRAM, .words = stderr_words,
            KEY_AT(struct pool_config, logs_stderr)),
    KEY_ROW("on_bad_output", "What output does that is no message. Default: skip with a protocol.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = bad_output_words,
            KEY_AT(struct pool_config, skip_bad_output)),
    KEY_ROW("instances", "How many processes; of an exclusive pool, at most. Default: 1 or 16.",
            .kind = KEY_INTEGER, .min = 1, .max = INSTANCES_MAX,
            KEY_AT(struct pool_config, instances)),
    KEY_ROW("framing",
            "Where their messages begin and end. Default: ndjson; of lsp content-length.",
            .kind = KEY_FRAMING, .change = CHANGE_SHARING,
            KEY_POINTER_AT(struct pool_config, framing)),
    KEY_ROW("clients", "How clients share the processes. Default: by the protocol.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = pool_mode_clients_words,
            .check = check_clients, KEY_AT(struct pool_config, mode.clients)),
    KEY_ROW("session", "Where a message has its session id. Default: by the protocol.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = pool_mode_session_words,
            KEY_AT(struct pool_config, mode.session_in_params)),
    KEY_ROW("ids", "Whether workers see the clients' ids, or numbers of the daemon's.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = pool_mode_ids_words,
            KEY_AT(struct pool_config, mode.rewrite_ids)),
    KEY_ROW("protocol",
            "What the workers speak. Without it messages are routed by sessionId alone.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = pool_mode_protocol_words,
            .min = PROTOCOL_MCP, KEY_AT(struct pool_config, mode.protocol)),
    KEY_ROW("on_worker_exit", "What becomes of the client of a process that has exited.",
            .kind = KEY_WORD, .change = CHANGE_SHARING, .words = pool_mode_exit_words,
            .min = EXIT_REPLAYS, .check = check_exit, KEY_AT(struct pool_config, mode.on_exit)),
    KEY_ROW("spare", "Processes of an exclusive pool that are kept for the next clients.",
            .kind = KEY_INTEGER, .max = POOL_MODE_SPARE_MAX,
            KEY_AT(struct pool_config, mode.spare)),
    KEY_ROW("lazy", "No process is started before a message needs one. Default: false.",
            .kind = KEY_BOOLEAN, KEY_AT(struct pool_config, mode.lazy)),
    KEY_ROW("idle_stop_sec", "A process that is not called for so long ends; 0: never. Default: 0.",
            .kind = KEY_INTEGER, .max = POOL_MODE_TIMEOUT_MAX,
            KEY_AT(struct pool_config, mode.idle_stop_sec)),
    KEY_ROW("rmp", "What the pool is on the topic bus.", .kind = KEY_OBJECT,
            .members = &rmp_keys_of_pool, .check = check_rmp, KEY_AT(struct pool_config, rmp)),
    KEY_ROW("export", "Other machines reach the pool over NATS. Default: false.",
            .kind = KEY_BOOLEAN, .check = pool_nats_check_export,
            KEY_AT(struct pool_config, is_exported)),
    KEY_ROW("remote", "In place of a command: machines that export it over NATS. Default: false.",
            .kind = KEY_BOOLEAN, .change = CHANGE_SHARING, .check = pool_nats_check_remote,
            KEY_AT(struct pool_config, is_remote)),
    KEY_ROW("overflow",
            "A client that finds all workers taken uses other machines. Default: false.",
            .kind = KEY_BOOLEAN, .check = check_overflow, KEY_AT(struct pool_config, overflows)),
    KEY_ROW("busy_timeout_sec", "How long a client waits for a process of its own. Default: 10.",
            .kind = KEY_INTEGER, .max = POOL_MODE_TIMEOUT_MAX,
            KEY_AT(struct pool_config, mode.busy_timeout_sec)),
    KEY_ROW("request_timeout_sec",
            "A request that takes longer gets an error; 0: none does. Default: 0.",
            .kind = KEY_INTEGER, .max = POOL_MODE_TIMEOUT_MAX,
            KEY_AT(struct pool_config, mode.request_timeout_sec)),
};

const struct key_table pool_config_keys = {
    KEY_TABLE(pool_list), .help = "A pool of workers.",
    .schema = "\"anyOf\": [{\"required\": [\"command\"]}, {\"required\": [\"url\"]}, "
              "{\"required\": [\"remote\"]}]"};

/* --- all pools --- */

/* The id of a pool, if it is a string. */
static const struct json_value *id_of(const struct json_value *pool)
{
    const struct json_value *id = document_member_of(pool, "id", JSON_STRING);

    return id != NULL && id->text.len > 0 ? id : NULL;
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

static void check_pool(struct diagnostics *diagnostics, const struct json_value *pool)
{
    if (!diagnostics_check_type(diagnostics, pool, JSON_OBJECT, "an object"))
        return;
    if (keys_check_members(diagnostics, pool, &pool_config_keys) &&
        document_member(pool, "command") != NULL && !sources_replace_files(diagnostics->sources))
        command_check(diagnostics, pool);
    pool_url_check_keys(diagnostics, pool);
    keys_check_unknown(diagnostics, pool, &pool_config_keys);
}

/* The workers of the pool; 0 if the key is not valid. */
static int64_t count_instances(const struct json_value *pool)
{
    const struct json_value *value = document_member(pool, "instances");
    int64_t count;

    if (value != NULL && (!document_integer(value, &count) || count < 1 || count > INSTANCES_MAX))
        return 0;
    return pool->type == JSON_OBJECT ? pool_config_instances(pool) : 0;
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

void pools_check(struct diagnostics *diagnostics, const struct json_value *pools)
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
        pool_nats_check_keys(diagnostics, pools, pool);
        check_unique_rmp(diagnostics, pools, pool);
        workers += count_instances(pool);
    }
    if (workers > WORKERS_MAX)
        diagnostics_value(diagnostics, pools, "the instances of all pools must be <= %d, not %lld",
                          WORKERS_MAX, (long long)workers);
}

/* --- reading --- */

static char own_name[] = "stdio_bus";

/* The mode that a protocol implies. */
static const struct pool_mode presets[] = {
    [PROTOCOL_UNKNOWN] = {.clients = CLIENTS_SHARED},
    [PROTOCOL_MCP] = {.protocol = PROTOCOL_MCP,
                      .clients = CLIENTS_EXCLUSIVE,
                      .on_exit = EXIT_REPLAYS,
                      .spare = 1},
    [PROTOCOL_ACP] = {.protocol = PROTOCOL_ACP,
                      .clients = CLIENTS_STICKY,
                      .on_exit = EXIT_CLOSES,
                      .session_in_params = true,
                      .rewrite_ids = true},
    [PROTOCOL_LSP] = {.protocol = PROTOCOL_LSP,
                      .clients = CLIENTS_EXCLUSIVE,
                      .on_exit = EXIT_CLOSES,
                      .spare = 1},
};

static bool build_url_argv(struct pool_config *pool, const struct json_value *object)
{
    size_t count = pool_url_arguments(object, NULL, 0);

    pool->argv = calloc(count + 2, sizeof *pool->argv);
    if (pool->argv == NULL)
        return false;
    pool->argv[0] = own_name;
    pool_url_arguments(object, pool->argv + 1, count);
    return pool->argv[count] != NULL;
}

/* For the log alone. */
static bool build_remote_argv(struct pool_config *pool)
{
    static char name[] = "a link";

    pool->argv = calloc(2, sizeof *pool->argv);
    if (pool->argv != NULL)
        pool->argv[0] = name;
    return pool->argv != NULL;
}

static bool build_argv(struct pool_config *pool, const struct json_value *args)
{
    const struct json_value *arg;
    size_t i = 0;

    pool->argv = calloc((args != NULL ? args->count : 0) + 2, sizeof *pool->argv);
    if (pool->argv == NULL)
        return false;
    pool->argv[i++] = pool->command;
    for (arg = args != NULL ? args->first : NULL; arg != NULL; arg = arg->next) {
        pool->argv[i] = slice_copy(arg->text);
        if (pool->argv[i++] == NULL)
            return false;
    }
    return true;
}

static int word_of(const struct json_value *pool, const char *key, const char *const *words,
                   int otherwise)
{
    const struct json_value *value = document_member(pool, key);

    return value != NULL ? key_word(value, words) : otherwise;
}

static const struct pool_mode *preset_of(const struct json_value *pool)
{
    return &presets[word_of(pool, "protocol", pool_mode_protocol_words, -1) + 1];
}

/* Of a pool that may be invalid: negative if "clients" is. */
static int clients_of(const struct json_value *pool)
{
    return word_of(pool, "clients", pool_mode_clients_words, (int)preset_of(pool)->clients);
}

unsigned pool_config_instances(const struct json_value *pool)
{
    const struct json_value *instances = document_member(pool, "instances");
    int64_t number;

    if (instances != NULL && document_integer(instances, &number))
        return (unsigned)number;
    return clients_of(pool) == CLIENTS_EXCLUSIVE ? POOL_MODE_INSTANCES : 1;
}

void pool_config_mode(struct pool_mode *mode, const struct json_value *pool)
{
    struct pool_config read = {.instances = 1, .mode = *preset_of(pool)};

    read.mode.busy_timeout_sec = BUSY_TIMEOUT_SEC;
    keys_apply(&read, &pool_config_keys, pool);
    *mode = read.mode;
    /* Without "clients" the stateless era of MCP shares processes: it has no state for a client. */
    if (mode->protocol == PROTOCOL_MCP)
        mode->stateless = document_member(pool, "clients") != NULL ? mode->clients : CLIENTS_STICKY;
    /* Clients of MCP that share the only process of a pool stay with it, and it gets one
     * handshake. */
    if (mode->clients == CLIENTS_SHARED && mode->protocol == PROTOCOL_MCP && read.instances == 1)
        mode->clients = CLIENTS_STICKY;
    /* Programs of a protocol may leave a cancelled request unanswered, and their clients count from
     * 0 or 1: no id of one client may be in the way of another. */
    if (document_member(pool, "ids") == NULL && mode->protocol != PROTOCOL_UNKNOWN &&
        mode->clients != CLIENTS_EXCLUSIVE)
        mode->rewrite_ids = true;
    mode->by_name = document_member(pool, "rmp") != NULL;
    if (mode->clients != CLIENTS_EXCLUSIVE && !pool_mode_shares_handshake(mode))
        mode->on_exit = EXIT_REPLACES;
    if (mode->on_exit != EXIT_REPLAYS) { /* the next process would not know the clients */
        mode->lazy = false;
        mode->idle_stop_sec = 0;
    }
    mode->remembers = mode->lazy;
    if (mode->lazy)
        mode->spare = 0;
}

bool pool_config_read(struct pool_config *pool, const struct json_value *object)
{
    struct pool_mode mode;

    pool_config_mode(&mode, object);
    if (mode.protocol == PROTOCOL_LSP)
        pool->framing = framing_named("content-length"); /* as the protocol has it */
    pool->skip_bad_output = mode.protocol != PROTOCOL_UNKNOWN;
    keys_apply(pool, &pool_config_keys, object);
    pool->instances = pool_config_instances(object);
    pool->mode = mode;
    pool->envp = environment_build(object);
    return pool->envp != NULL && keys_copy(pool, &pool_config_keys, object) &&
           (pool->is_remote     ? build_remote_argv(pool)
            : pool->url != NULL ? build_url_argv(pool, object)
                                : build_argv(pool, document_member(object, "args")));
}

void pool_config_free(struct pool_config *pool)
{
    for (size_t i = 1; pool->argv != NULL && pool->argv[i] != NULL; i++)
        free(pool->argv[i]);
    free(pool->argv);
    free(pool->envp);
    keys_free(pool, &pool_config_keys);
}

/* --- what changes --- */

/* Two lists that end with NULL. */
static bool lists_differ(char *const *before, char *const *after)
{
    size_t i = 0;

    while (before[i] != NULL && after[i] != NULL && strcmp(before[i], after[i]) == 0)
        i++;
    return before[i] != after[i];
}

/* What follows from keys, and what of the mode is set otherwise. Whether there is a time limit
 * decides what is noted of a request. */
static bool modes_differ(const struct pool_mode *before, const struct pool_mode *after)
{
    return before->stateless != after->stateless || before->by_name != after->by_name ||
           before->frugal != after->frugal || before->is_front != after->is_front ||
           (before->request_timeout_sec > 0) != (after->request_timeout_sec > 0) ||
           (before->idle_stop_sec > 0) != (after->idle_stop_sec > 0);
}

enum key_change pool_config_difference(const struct pool_config *before,
                                       const struct pool_config *after)
{
    if (modes_differ(&before->mode, &after->mode) ||
        keys_differ(before, after, &pool_config_keys, CHANGE_SHARING))
        return CHANGE_SHARING;
    return lists_differ(before->argv, after->argv) || lists_differ(before->envp, after->envp) ||
                   keys_differ(before, after, &pool_config_keys, CHANGE_PROGRAM)
               ? CHANGE_PROGRAM
               : CHANGE_KEEPS;
}

/* --- advice: servers of MCP --- */

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Whether "mcp" is a word of the name, as in mcp-server-git and @playwright/mcp. */
static bool has_mcp(const char *name)
{
    const char *at;

    for (at = strstr(name, "mcp"); at != NULL; at = strstr(at + 1, "mcp")) {
        if ((at == name || !is_letter_or_digit(at[-1])) && !is_letter_or_digit(at[3]))
            return true;
    }
    return strstr(name, "modelcontextprotocol") != NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* A program that runs the one which its arguments name; python3.11 is python. */
static bool runs_another(const char *program)
{
    static const char *const names[] = {"bun",  "bunx",   "deno", "docker", "node", "npx",   "pipx",
                                        "pnpm", "podman", "uv",   "uvx",    "yarn", "python"};

    for (size_t i = 0; i < COUNT(names); i++) {
        size_t len = strlen(names[i]);

        if (strncmp(program, names[i], len) == 0 &&
            program[len + strspn(program + len, "0123456789.")] == '\0')
            return true;
    }
    return false;
}

/* Whether the name of the program, or of the one that it is to run, says MCP. */
static bool resembles_mcp(const struct json_value *pool)
{
    const struct json_value *args = document_member(pool, "args"), *arg;
    const char *program = base_name(document_member(pool, "command")->text.data);

    if (has_mcp(program))
        return true;
    if (args == NULL || !runs_another(program))
        return false;
    for (arg = args->first; arg != NULL; arg = arg->next) {
        if (arg->text.data[0] != '-' && has_mcp(arg->text.data))
            return true;
    }
    return false;
}

/* --- advice: keys that contradict each other --- */

static void advise_unused(struct diagnostics *diagnostics, const struct json_value *pool,
                          const struct pool_mode *mode)
{
    static const char *const keys[] = {"spare", "busy_timeout_sec", "on_worker_exit"};
    size_t count = pool_mode_shares_handshake(mode) ? 1 : COUNT(keys);
    const struct json_value *spare = document_member(pool, "spare");

    for (size_t i = 0; i < count && mode->clients != CLIENTS_EXCLUSIVE; i++) {
        const struct json_value *member = document_member(pool, keys[i]);

        if (member != NULL && (member->type == JSON_STRING || document_number(pool, keys[i]) > 0))
            diagnostics_warn(diagnostics, member,
                             "has no effect: \"clients\" is not \"exclusive\"");
    }
    if (mode->clients == CLIENTS_EXCLUSIVE && spare != NULL &&
        mode->spare > pool_config_instances(pool))
        diagnostics_warn(diagnostics, spare, "is more than \"instances\", the largest number");
}

static void advise_resting(struct diagnostics *diagnostics, const struct json_value *pool,
                           const struct pool_mode *mode)
{
    static const char *const keys[] = {"lazy", "idle_stop_sec"};
    const struct json_value *spare = document_member(pool, "spare");

    for (size_t i = 0; i < COUNT(keys) && mode->on_exit != EXIT_REPLAYS; i++) {
        const struct json_value *member = document_member(pool, keys[i]);

        if (member != NULL &&
            (member->type == JSON_BOOLEAN ? member->boolean : document_number(pool, keys[i]) > 0))
            diagnostics_warn(diagnostics, member,
                             "has no effect: the next process does not get the handshake of the "
                             "clients");
    }
    if (mode->lazy && spare != NULL && document_number(pool, "spare") > 0)
        diagnostics_warn(diagnostics, spare, "has no effect: the pool is \"lazy\"");
}

static void advise_shared(struct diagnostics *diagnostics, const struct json_value *pool,
                          const struct pool_mode *mode)
{
    bool stateful = mode->protocol == PROTOCOL_MCP || mode->protocol == PROTOCOL_ACP;

    if (stateful && mode->clients == CLIENTS_SHARED && pool_config_instances(pool) > 1)
        diagnostics_warn(diagnostics, document_member(pool, "clients"),
                         "the messages of a client reach all workers in turn, its \"initialize\" "
                         "only one: use \"sticky\" or \"exclusive\", or \"instances\": 1");
}

void pools_advise(struct diagnostics *diagnostics, const struct json_value *pools)
{
    const struct json_value *pool = pools != NULL ? pools->first : NULL;
    struct pool_mode mode;

    for (; pool != NULL; pool = pool->next) {
        pool_config_mode(&mode, pool);
        pool_nats_advise(diagnostics, pools, pool);
        if (document_member(pool, "protocol") == NULL && document_member(pool, "clients") == NULL &&
            document_member(pool, "command") != NULL && resembles_mcp(pool))
            diagnostics_warn(diagnostics, document_member(pool, "command"),
                             "an MCP server, it seems, but messages get lost without \"protocol\": "
                             "\"mcp\"; if it is none, set \"clients\": \"shared\"");
        advise_unused(diagnostics, pool, &mode);
        advise_resting(diagnostics, pool, &mode);
        advise_shared(diagnostics, pool, &mode);
    }
}
