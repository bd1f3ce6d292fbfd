#include "build_config.h"

#include "cli/option_values.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/log_options.h"
#include "config/environment.h"
#include "config/pool_mode.h"
#include "share/directory.h"

#define IDLE_EXIT_MAX 31536000 /* a year */
#define INSTANCES_MAX 1024     /* as in a configuration */
#define POOL_NAME_MAX 256      /* bytes; the same */
#define WAIT_MAX_SEC 86400
#define PATH_ROOM 4096

bool parser_fail(struct parser *parser, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->problem, parser->problem_size, format, args);
    va_end(args);
    return false;
}

/* Reads digits to the end of the text, with a value of at most `max`. */
static bool read_number(const char *text, long max, long *number)
{
    const char *at = text;

    for (*number = 0; *at >= '0' && *at <= '9' && *number <= (max - (*at - '0')) / 10; at++)
        *number = *number * 10 + (*at - '0');
    return at > text && *at == '\0';
}

/* --- the kinds of values --- */

static bool check_path(struct parser *parser, const char *option, const char *path)
{
    return *path != '\0' || parser_fail(parser, "--%s: the path must not be empty", option);
}

static bool check_socket_path(struct parser *parser, const char *option, const char *value)
{
    struct listen_address checked;
    char why[LISTEN_PROBLEM_MAX];

    return listen_address_of_path(&checked, value, why) ||
           parser_fail(parser, "--%s: %s", option, why);
}

static bool check_word(struct parser *parser, const struct option_spec *spec, const char *value)
{
    const char *const *words = spec->words;
    char list[64];
    size_t len = 0;

    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(value, words[i]) == 0)
            return true;
    }
    for (size_t i = 0; words[i] != NULL && len < sizeof list; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i == 0                 ? ""
                                : words[i + 1] == NULL ? " or "
                                                       : ", ",
                                words[i]);
    return parser_fail(parser, "--%s: must be %s", spec->name, list);
}

static bool take_seconds(struct parser *parser, const struct option_spec *spec, const char *value)
{
    long seconds;

    if (!read_number(value, spec->max, &seconds))
        return parser_fail(parser, "--%s: must be a number of seconds, at most %ld", spec->name,
                           spec->max);
    memcpy((char *)parser->options + spec->at, &seconds, sizeof seconds);
    return true;
}

static bool take_flag(struct parser *parser, const struct option_spec *spec)
{
    const bool on = true;

    memcpy((char *)parser->options + spec->at, &on, sizeof on);
    return true;
}

bool option_take(struct parser *parser, const struct option_spec *spec, const char *value)
{
    if (spec->kind == OPTION_FLAG)
        return take_flag(parser, spec);
    if (spec->kind == OPTION_SECONDS)
        return take_seconds(parser, spec, value);
    if (spec->kind == OPTION_OTHER)
        return spec->apply == NULL || spec->apply(parser, spec->name, value);
    memcpy((char *)parser->options + spec->at, &value, sizeof value);
    if (spec->kind == OPTION_WORD)
        return check_word(parser, spec, value);
    return spec->kind == OPTION_SOCKET ? check_socket_path(parser, spec->name, value)
                                       : check_path(parser, spec->name, value);
}

/* --- the effect of options of their own kind --- */

static bool apply_config_fd(struct parser *parser, const char *option, const char *value)
{
    long fd;

    if (!read_number(value, INT_MAX, &fd))
        return parser_fail(parser, "--%s: must be the number of an open descriptor", option);
    parser->options->config_fd = (int)fd;
    return true;
}

static bool add_listener(struct parser *parser, const char *option, enum listen_kind kind,
                         const char *value)
{
    struct options *options = parser->options;
    char why[LISTEN_PROBLEM_MAX];

    if (options->listen_count == LISTEN_OPTIONS_MAX)
        return parser_fail(parser, "--%s: at most %d listeners can be given", option,
                           LISTEN_OPTIONS_MAX);
    return listen_address_read(&options->listens[options->listen_count++], kind, value, why) ||
           parser_fail(parser, "--%s: %s", option, why);
}

static bool apply_unix(struct parser *parser, const char *option, const char *value)
{
    return add_listener(parser, option, LISTEN_UNIX, value);
}

static bool apply_tcp(struct parser *parser, const char *option, const char *value)
{
    return add_listener(parser, option, LISTEN_TCP, value);
}

static bool apply_http(struct parser *parser, const char *option, const char *value)
{
    return add_listener(parser, option, LISTEN_HTTP, value);
}

/* A URL has "://". A path has a slash or no colon; HOST:PORT has a colon and no slash. Programs
 * with windows start this one without a shell that would replace the variables. */
static bool apply_connect(struct parser *parser, const char *option, const char *value)
{
    struct listen_address *to = &parser->options->connect;
    char path[PATH_ROOM], why[LISTEN_PROBLEM_MAX], unset[VARIABLE_PROBLEM_MAX];
    const char *problem;
    int len;

    if (url_is(value)) {
        parser->options->has_url = true;
        problem = url_read(&parser->options->url, value);
        return problem == NULL || parser_fail(parser, "--%s: %s", option, problem);
    }
    if (strchr(value, '/') == NULL && strchr(value, ':') != NULL)
        return listen_address_of_host(to, value, 1, why) ||
               parser_fail(parser, "--%s: %s", option, why);
    len = variable_expand_path(path, sizeof path, value, unset);
    if (len < 0)
        return parser_fail(parser, "--%s: %s", option, unset);
    if (len >= (int)sizeof path)
        return parser_fail(parser, "--%s: " UNIX_PATH_PROBLEM, option, (size_t)len, UNIX_PATH_MAX);
    return listen_address_of_path(to, path, why) || parser_fail(parser, "--%s: %s", option, why);
}

static bool apply_pool(struct parser *parser, const char *option, const char *value)
{
    parser->options->pool = value;
    return (value[0] != '\0' && strlen(value) <= POOL_NAME_MAX) ||
           parser_fail(parser, "--%s: must have 1 to %d bytes", option, POOL_NAME_MAX);
}

static bool apply_header(struct parser *parser, const char *option, const char *value)
{
    const char *problem = headers_add(&parser->options->headers, value);

    return problem == NULL || parser_fail(parser, "--%s: %s", option, problem);
}

static bool apply_header_env(struct parser *parser, const char *option, const char *value)
{
    const char *problem = headers_add_variable(&parser->options->headers, value);

    return problem == NULL || parser_fail(parser, "--%s: %s", option, problem);
}

static bool apply_tls_command(struct parser *parser, const char *option, const char *value)
{
    parser->options->tls_command = value;
    return value[strspn(value, " \t")] != '\0' ||
           parser_fail(parser, "--%s: must not be empty", option);
}

bool parser_apply_socket(struct parser *parser, const char *option, const char *value)
{
    struct options *options = parser->options;

    if (options_socket(options, option) != NULL)
        return parser_fail(parser, "--%s is given twice", option);
    options->sockets[options->socket_count++] =
        (struct socket_option){.name = option, .path = value != NULL ? value : ""};
    return value == NULL || check_socket_path(parser, option, value);
}

static bool apply_instances(struct parser *parser, const char *option, const char *value)
{
    long number;

    parser->options->line.instances = value;
    return (read_number(value, INSTANCES_MAX, &number) && number > 0) ||
           parser_fail(parser, "--%s: must be a number from 1 to %d", option, INSTANCES_MAX);
}

static bool apply_idle_stop(struct parser *parser, const char *option, const char *value)
{
    long number;

    parser->options->line.idle_stop = value;
    return read_number(value, POOL_MODE_TIMEOUT_MAX, &number) ||
           parser_fail(parser, "--%s: must be a number from 0 to %d", option,
                       POOL_MODE_TIMEOUT_MAX);
}

static bool apply_worker_framing(struct parser *parser, const char *option, const char *value)
{
    parser->options->line.framing = value;
    return framing_named(value) != NULL ||
           parser_fail(parser, "--%s: must be " FRAMING_NAMES, option);
}

static bool apply_framing(struct parser *parser, const char *option, const char *value)
{
    parser->options->framing = framing_named(value);
    return parser->options->framing != NULL ||
           parser_fail(parser, "--%s: must be " FRAMING_NAMES, option);
}

static bool apply_log_level(struct parser *parser, const char *option, const char *value)
{
    parser->options->has_log_level = true;
    return log_level_from_name(value, &parser->options->log_level) ||
           parser_fail(parser, "--%s: must be debug, info, warn or error", option);
}

static bool apply_log_format(struct parser *parser, const char *option, const char *value)
{
    parser->options->has_log_format = true;
    return log_format_from_name(value, &parser->options->log_format) ||
           parser_fail(parser, "--%s: must be text, logfmt, json or journald", option);
}

static bool apply_log_syslog(struct parser *parser, const char *option, const char *value)
{
    parser->options->log_system = value != NULL ? value : SYSTEM_LOG_PATH;
    return check_path(parser, option, parser->options->log_system);
}

static bool apply_share(struct parser *parser, const char *option, const char *value)
{
    const char *problem = value != NULL ? share_name_problem(value) : NULL;

    parser->options->share_name = value;
    return problem == NULL || parser_fail(parser, "--%s: %s", option, problem);
}

static bool apply_care(struct parser *parser, const char *option, const char *value)
{
    parser->options->cared_for = value;
    return *value != '\0' || parser_fail(parser, "--%s: the name must not be empty", option);
}

static bool apply_watch(struct parser *parser, const char *option, const char *value)
{
    struct options *options = parser->options;

    if (options->watched_count == WATCHED_PATHS_MAX)
        return parser_fail(parser, "--%s: at most %d paths can be given", option,
                           WATCHED_PATHS_MAX);
    options->watched[options->watched_count++] = value;
    return check_path(parser, option, value);
}

static bool apply_env(struct parser *parser, const char *option, const char *value)
{
    parser->options->share_variables = value;
    return strchr(value, '=') == NULL ||
           parser_fail(parser, "--%s: takes names of variables, without values", option);
}

/* --- the table --- */

#define FLAG(member) .kind = OPTION_FLAG, .at = offsetof(struct options, member)
#define PATH(member) .kind = OPTION_PATH, .at = offsetof(struct options, member)
#define SOCKET(member) .kind = OPTION_SOCKET, .at = offsetof(struct options, member)
#define SECONDS(member, most)                                                                      \
    .kind = OPTION_SECONDS, .max = (most), .at = offsetof(struct options, member)
#define WORD(member, list)                                                                         \
    .kind = OPTION_WORD, .words = (list), .at = offsetof(struct options, member)

#define CARE(what) .value_name = "NAME", .is_mode = true, .action = (what), .apply = apply_care

/* pool_mode_clients_words, and that of --share. */
static const char *const clients_words[] = {"shared", "sticky", "exclusive", "auto", NULL};

const struct option_spec parser_options[] = {
    {.name = "config", .value_name = "PATH", PATH(config_path)},
    {.name = "config-fd", .value_name = "N", .apply = apply_config_fd},
    {.name = "stdio", .is_mode = true},
    {.name = "unix", .value_name = "PATH", .is_listener = true, .apply = apply_unix},
    {.name = "tcp", .value_name = "HOST:PORT", .is_listener = true, .apply = apply_tcp},
    {.name = "http", .value_name = "HOST:PORT|unix:PATH", .is_listener = true, .apply = apply_http},
    {.name = "connect",
     .value_name = "PATH|HOST:PORT|URL",
     .is_mode = true,
     .apply = apply_connect},
    {.name = "pool", .value_name = "NAME", .of_client = true, .apply = apply_pool},
    {.name = "header",
     .value_name = "FIELD",
     .of_client = true,
     .may_repeat = true,
     .apply = apply_header},
    {.name = "header-env",
     .value_name = "NAME=VARIABLE",
     .of_client = true,
     .may_repeat = true,
     .apply = apply_header_env},
    {.name = "tls-command", .value_name = "COMMAND", .of_client = true, .apply = apply_tls_command},
    {.name = "wait", .value_name = "SECONDS", .of_client = true, SECONDS(wait_sec, WAIT_MAX_SEC)},
    {.name = "rmp",
     .value_name = "PATH",
     .may_lack_value = true,
     .may_follow = true,
     .apply = parser_apply_socket},
    {.name = "control", .value_name = "PATH", .apply = parser_apply_socket},
    {.name = "ping", .value_name = "SOCKET", .action = ACTION_PING, SOCKET(ping_path)},
    {.name = "deep", FLAG(deep)},
    {.name = "share",
     .value_name = "NAME",
     .may_lack_value = true,
     .is_mode = true,
     .apply = apply_share},
    {.name = "list", .action = ACTION_LIST},
    {.name = "stop", CARE(ACTION_STOP)},
    {.name = "restart", CARE(ACTION_RESTART)},
    {.name = "forget", CARE(ACTION_FORGET)},
    {.name = "log", CARE(ACTION_LOG)},
    {.name = "json", FLAG(json)},
    {.name = "page", FLAG(page)},
    {.name = "env", .value_name = "NAME,...", .of_share = true, .apply = apply_env},
    {.name = "watch",
     .value_name = "PATH",
     .of_share = true,
     .may_repeat = true,
     .apply = apply_watch},
    {.name = "any-cwd", .of_share = true, FLAG(any_cwd)},
    {.name = "eager", .of_share = true, FLAG(eager)},
    {.name = "idle-exit", .value_name = "SECONDS", SECONDS(idle_exit_sec, IDLE_EXIT_MAX)},
    {.name = "framing", .value_name = "NAME", .apply = apply_framing},
    {.name = "worker-framing",
     .value_name = "NAME",
     .of_command = true,
     .apply = apply_worker_framing},
    {.name = "protocol",
     .value_name = "NAME",
     .of_command = true,
     WORD(line.protocol, pool_mode_protocol_words)},
    {.name = "clients",
     .value_name = "KIND",
     .of_command = true,
     WORD(line.clients, clients_words)},
    {.name = "instances", .value_name = "N", .of_command = true, .apply = apply_instances},
    {.name = "idle-stop", .value_name = "SECONDS", .of_command = true, .apply = apply_idle_stop},
    {.name = "check-config", .action = ACTION_CHECK_CONFIG},
    {.name = "strict", FLAG(strict)},
    {.name = "token-file", .value_name = "FILE", PATH(token_file)},
    {.name = "open", FLAG(open)},
    {.name = "log-file", .value_name = "PATH", PATH(log_file)},
    {.name = "log-format", .value_name = "NAME", .apply = apply_log_format},
    {.name = "log-level", .value_name = "LEVEL", .apply = apply_log_level},
    {.name = "log-syslog", .value_name = "PATH", .may_lack_value = true, .apply = apply_log_syslog},
    {.name = "import", .value_name = "FILE", .action = ACTION_IMPORT, PATH(import_path)},
    {.name = "schema", .action = ACTION_SCHEMA},
    {.name = "help", .letter = 'h', .action = ACTION_HELP},
    {.name = "version", .letter = 'V', .action = ACTION_VERSION},
    {.name = NULL},
};
