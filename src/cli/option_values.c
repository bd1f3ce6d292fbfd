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

/* --- the effect of each option --- */

static bool check_path(struct parser *parser, const char *option, const char *path)
{
    return *path != '\0' || parser_fail(parser, "--%s: the path must not be empty", option);
}

static bool apply_config(struct parser *parser, const char *option, const char *value)
{
    parser->options->config_path = value;
    return check_path(parser, option, value);
}

static bool apply_import(struct parser *parser, const char *option, const char *value)
{
    parser->options->import_path = value;
    return check_path(parser, option, value);
}

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

static bool apply_wait(struct parser *parser, const char *option, const char *value)
{
    long seconds;

    if (!read_number(value, WAIT_MAX_SEC, &seconds))
        return parser_fail(parser, "--%s: must be a number of seconds, at most %d", option,
                           WAIT_MAX_SEC);
    parser->options->wait_sec = (unsigned)seconds;
    return true;
}

static bool is_word(const char *value, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(value, *words) == 0)
            return true;
    }
    return false;
}

static bool check_socket_path(struct parser *parser, const char *option, const char *value)
{
    struct listen_address checked;
    char why[LISTEN_PROBLEM_MAX];

    return listen_address_of_path(&checked, value, why) ||
           parser_fail(parser, "--%s: %s", option, why);
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

static bool apply_ping(struct parser *parser, const char *option, const char *value)
{
    parser->options->ping_path = value;
    return check_socket_path(parser, option, value);
}

static bool apply_deep(struct parser *parser, const char *option, const char *value)
{
    (void)option;
    (void)value;
    parser->options->deep = true;
    return true;
}

static bool apply_json(struct parser *parser, const char *option, const char *value)
{
    (void)option;
    (void)value;
    parser->options->json = true;
    return true;
}

static bool apply_protocol(struct parser *parser, const char *option, const char *value)
{
    parser->options->line.protocol = value;
    return is_word(value, pool_mode_protocol_words) ||
           parser_fail(parser, "--%s: must be mcp, acp or lsp", option);
}

static bool apply_clients(struct parser *parser, const char *option, const char *value)
{
    parser->options->line.clients = value;
    return is_word(value, pool_mode_clients_words) ||
           parser_fail(parser, "--%s: must be shared, sticky or exclusive", option);
}

static bool apply_instances(struct parser *parser, const char *option, const char *value)
{
    long number;

    parser->options->line.instances = value;
    return (read_number(value, INSTANCES_MAX, &number) && number > 0) ||
           parser_fail(parser, "--%s: must be a number from 1 to %d", option, INSTANCES_MAX);
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

static bool apply_token_file(struct parser *parser, const char *option, const char *value)
{
    parser->options->token_file = value;
    return check_path(parser, option, value);
}

static bool apply_strict(struct parser *parser, const char *option, const char *value)
{
    (void)option;
    (void)value;
    parser->options->strict = true;
    return true;
}

static bool apply_log_file(struct parser *parser, const char *option, const char *value)
{
    parser->options->log_file = value;
    return check_path(parser, option, value);
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

static bool apply_env(struct parser *parser, const char *option, const char *value)
{
    parser->options->share_variables = value;
    return strchr(value, '=') == NULL ||
           parser_fail(parser, "--%s: takes names of variables, without values", option);
}

static bool apply_any_cwd(struct parser *parser, const char *option, const char *value)
{
    (void)option;
    (void)value;
    parser->options->any_cwd = true;
    return true;
}

static bool apply_idle_exit(struct parser *parser, const char *option, const char *value)
{
    return read_number(value, IDLE_EXIT_MAX, &parser->options->idle_exit_sec) ||
           parser_fail(parser, "--%s: must be a number of seconds, at most %d", option,
                       IDLE_EXIT_MAX);
}

const struct option_spec parser_options[] = {
    {.name = "config", .value_name = "PATH", .apply = apply_config},
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
    {.name = "wait", .value_name = "SECONDS", .of_client = true, .apply = apply_wait},
    {.name = "rmp",
     .value_name = "PATH",
     .may_lack_value = true,
     .may_follow = true,
     .apply = parser_apply_socket},
    {.name = "control", .value_name = "PATH", .apply = parser_apply_socket},
    {.name = "ping", .value_name = "SOCKET", .action = ACTION_PING, .apply = apply_ping},
    {.name = "deep", .apply = apply_deep},
    {.name = "share",
     .value_name = "NAME",
     .may_lack_value = true,
     .is_mode = true,
     .apply = apply_share},
    {.name = "list", .action = ACTION_LIST},
    {.name = "json", .apply = apply_json},
    {.name = "env", .value_name = "NAME,...", .of_share = true, .apply = apply_env},
    {.name = "any-cwd", .of_share = true, .apply = apply_any_cwd},
    {.name = "idle-exit", .value_name = "SECONDS", .apply = apply_idle_exit},
    {.name = "framing", .value_name = "NAME", .apply = apply_framing},
    {.name = "worker-framing",
     .value_name = "NAME",
     .of_command = true,
     .apply = apply_worker_framing},
    {.name = "protocol", .value_name = "NAME", .of_command = true, .apply = apply_protocol},
    {.name = "clients", .value_name = "KIND", .of_command = true, .apply = apply_clients},
    {.name = "instances", .value_name = "N", .of_command = true, .apply = apply_instances},
    {.name = "check-config", .action = ACTION_CHECK_CONFIG},
    {.name = "strict", .apply = apply_strict},
    {.name = "token-file", .value_name = "FILE", .apply = apply_token_file},
    {.name = "log-file", .value_name = "PATH", .apply = apply_log_file},
    {.name = "log-format", .value_name = "NAME", .apply = apply_log_format},
    {.name = "log-level", .value_name = "LEVEL", .apply = apply_log_level},
    {.name = "log-syslog", .value_name = "PATH", .may_lack_value = true, .apply = apply_log_syslog},
    {.name = "import", .value_name = "FILE", .action = ACTION_IMPORT, .apply = apply_import},
    {.name = "schema", .action = ACTION_SCHEMA},
    {.name = "help", .letter = 'h', .action = ACTION_HELP},
    {.name = "version", .letter = 'V', .action = ACTION_VERSION},
    {.name = NULL},
};
