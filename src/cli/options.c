#include "build_config.h"

#include "cli/options.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/pool_mode.h"
#include "config/variable.h"

#define INSTANCES_MAX 1024 /* as in a configuration */
#define POOL_NAME_MAX 256  /* bytes; likewise */
#define WAIT_MAX_SEC 86400
#define SEE_HELP "; see stdio_bus --help"

struct parser;

struct option_spec {
    const char *name;           /* without the dashes */
    char letter;                /* -h; or '\0' */
    const char *value_name;     /* NULL: takes no value */
    bool is_mode;               /* at most one mode is given */
    bool of_client;             /* for --connect */
    bool of_command;            /* describes the pool of a command */
    enum options_action action; /* of an option without a value; ACTION_RUN: unchanged */
    bool (*apply)(struct parser *parser, const char *option, const char *value);
};

struct parser {
    struct options *options;
    char *problem;
    size_t problem_size;
    unsigned seen;                        /* one bit per entry of option_specs */
    const struct option_spec *of_client;  /* one for --connect, or NULL */
    const struct option_spec *mode;       /* the option that chose the mode, or NULL */
    const struct option_spec *of_command; /* one that describes the pool of a command, or NULL */
};

/* Writes the problem and returns false. */
__attribute__((format(printf, 2, 3))) static bool fail(struct parser *parser, const char *format,
                                                       ...)
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
    return *path != '\0' || fail(parser, "--%s: the path must not be empty", option);
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
        return fail(parser, "--%s: must be the number of an open descriptor", option);
    parser->options->config_fd = (int)fd;
    return true;
}

static bool set_unix(struct parser *parser, const char *option, const char *path, size_t len)
{
    parser->options->mode = BUS_LISTEN_UNIX;
    parser->options->unix_path = path;
    if (len > UNIX_PATH_MAX)
        return fail(parser, "--%s: the path is %zu bytes long, a socket's may have %zu", option,
                    len, (size_t)UNIX_PATH_MAX);
    return len > 0 || fail(parser, "--%s: the path must not be empty", option);
}

static bool apply_unix(struct parser *parser, const char *option, const char *value)
{
    return set_unix(parser, option, value, strlen(value));
}

/* Copies the part before the port, without its brackets. */
static bool set_host(struct parser *parser, const char *option, const char *host, size_t len)
{
    struct options *options = parser->options;

    if (len > 0 && host[0] == '[') {
        if (len < 3 || host[len - 1] != ']')
            return fail(parser, "--%s: expected an address between [ and ]", option);
        host++;
        len -= 2;
    } else if (memchr(host, ':', len) != NULL) {
        return fail(parser, "--%s: an IPv6 address needs brackets, as in [::1]:8080", option);
    }
    if (len >= sizeof options->tcp_host)
        return fail(parser, "--%s: the host is %zu bytes long, it may have %zu", option, len,
                    sizeof options->tcp_host - 1);
    memcpy(options->tcp_host, host, len);
    options->tcp_host[len] = '\0';
    return true;
}

static bool set_address(struct parser *parser, const char *option, const char *address,
                        long port_min)
{
    const char *colon = strrchr(address, ':');
    long port;

    parser->options->mode = BUS_LISTEN_TCP;
    if (colon == NULL || strchr(colon, ']') != NULL)
        return fail(parser, "--%s: expected HOST:PORT, [IPV6]:PORT or :PORT", option);
    if (!set_host(parser, option, address, (size_t)(colon - address)))
        return false;
    if (!read_number(colon + 1, UINT16_MAX, &port) || port < port_min)
        return fail(parser, "--%s: port must be %ld to 65535", option, port_min);
    parser->options->tcp_port = (uint16_t)port;
    return true;
}

static bool apply_tcp(struct parser *parser, const char *option, const char *value)
{
    return set_address(parser, option, value, 0);
}

/* A path has a slash or no colon; HOST:PORT has a colon and no slash. Programs with windows start
 * this one without a shell that would replace the variables. */
static bool apply_connect(struct parser *parser, const char *option, const char *value)
{
    char *path = parser->options->socket_path, why[VARIABLE_PROBLEM_MAX];
    int len;

    if (strchr(value, '/') == NULL && strchr(value, ':') != NULL)
        return set_address(parser, option, value, 1);
    len = variable_expand_path(path, UNIX_PATH_MAX + 1, value, why);
    if (len < 0)
        return fail(parser, "--%s: %s", option, why);
    return set_unix(parser, option, path, (size_t)len);
}

static bool apply_pool(struct parser *parser, const char *option, const char *value)
{
    parser->options->pool = value;
    return (value[0] != '\0' && strlen(value) <= POOL_NAME_MAX) ||
           fail(parser, "--%s: must have 1 to %d bytes", option, POOL_NAME_MAX);
}

static bool apply_wait(struct parser *parser, const char *option, const char *value)
{
    long seconds;

    if (!read_number(value, WAIT_MAX_SEC, &seconds))
        return fail(parser, "--%s: must be a number of seconds, at most %d", option, WAIT_MAX_SEC);
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

static bool apply_protocol(struct parser *parser, const char *option, const char *value)
{
    parser->options->line.protocol = value;
    return is_word(value, pool_mode_protocol_words) ||
           fail(parser, "--%s: must be mcp, acp or lsp", option);
}

static bool apply_clients(struct parser *parser, const char *option, const char *value)
{
    parser->options->line.clients = value;
    return is_word(value, pool_mode_clients_words) ||
           fail(parser, "--%s: must be shared, sticky or exclusive", option);
}

static bool apply_instances(struct parser *parser, const char *option, const char *value)
{
    long number;

    parser->options->line.instances = value;
    return (read_number(value, INSTANCES_MAX, &number) && number > 0) ||
           fail(parser, "--%s: must be a number from 1 to %d", option, INSTANCES_MAX);
}

static bool apply_framing(struct parser *parser, const char *option, const char *value)
{
    parser->options->framing = framing_named(value);
    return parser->options->framing != NULL || fail(parser, "--%s: must be " FRAMING_NAMES, option);
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
           fail(parser, "--%s: must be debug, info, warn or error", option);
}

static const struct option_spec option_specs[] = {
    {.name = "config", .value_name = "PATH", .apply = apply_config},
    {.name = "config-fd", .value_name = "N", .apply = apply_config_fd},
    {.name = "stdio", .is_mode = true},
    {.name = "unix", .value_name = "PATH", .is_mode = true, .apply = apply_unix},
    {.name = "tcp", .value_name = "HOST:PORT", .is_mode = true, .apply = apply_tcp},
    {.name = "connect", .value_name = "PATH|HOST:PORT", .is_mode = true, .apply = apply_connect},
    {.name = "pool", .value_name = "NAME", .of_client = true, .apply = apply_pool},
    {.name = "wait", .value_name = "SECONDS", .of_client = true, .apply = apply_wait},
    {.name = "framing", .value_name = "NAME", .apply = apply_framing},
    {.name = "protocol", .value_name = "NAME", .of_command = true, .apply = apply_protocol},
    {.name = "clients", .value_name = "KIND", .of_command = true, .apply = apply_clients},
    {.name = "instances", .value_name = "N", .of_command = true, .apply = apply_instances},
    {.name = "check-config", .action = ACTION_CHECK_CONFIG},
    {.name = "strict", .apply = apply_strict},
    {.name = "token-file", .value_name = "FILE", .apply = apply_token_file},
    {.name = "log-file", .value_name = "PATH", .apply = apply_log_file},
    {.name = "log-level", .value_name = "LEVEL", .apply = apply_log_level},
    {.name = "import", .value_name = "FILE", .action = ACTION_IMPORT, .apply = apply_import},
    {.name = "help", .letter = 'h', .action = ACTION_HELP},
    {.name = "version", .letter = 'V', .action = ACTION_VERSION},
};

/* --- the command line --- */

/* The option that `word` names, up to its '=' or end; NULL after fail. */
static const struct option_spec *find_option(struct parser *parser, const char *word)
{
    bool is_long = word[0] == '-' && word[1] == '-' && word[2] != '\0';
    size_t len = is_long ? strcspn(word, "=") : strlen(word);
    char shown[128];

    for (size_t i = 0; i < sizeof option_specs / sizeof option_specs[0]; i++) {
        const struct option_spec *spec = &option_specs[i];
        if (is_long && strlen(spec->name) == len - 2 && memcmp(word + 2, spec->name, len - 2) == 0)
            return spec;
        if (!is_long && len == 2 && word[0] == '-' && word[1] == spec->letter)
            return spec;
    }
    log_escape(shown, sizeof shown, slice_of(word, len));
    if (word[0] == '-' && len > 1)
        fail(parser, "unknown option %s" SEE_HELP, shown);
    else
        fail(parser, "unexpected argument \"%s\": a command stands after --" SEE_HELP, shown);
    return NULL;
}

/* Refuses a second use, and a second mode. */
static bool note_option(struct parser *parser, const struct option_spec *spec)
{
    unsigned bit = 1U << (spec - option_specs);

    if ((parser->seen & bit) != 0)
        return fail(parser, "--%s is given twice", spec->name);
    parser->seen |= bit;
    if (spec->of_command)
        parser->of_command = spec;
    if (spec->of_client)
        parser->of_client = spec;
    if (!spec->is_mode)
        return true;
    if (parser->mode != NULL)
        return fail(parser, "--%s and --%s exclude each other", parser->mode->name, spec->name);
    parser->mode = spec;
    parser->options->has_mode = true;
    return true;
}

/* Applies the option at argv[*i], and moves *i to its last word. */
static bool read_option(struct parser *parser, int argc, char *const argv[], int *i)
{
    const struct option_spec *spec = find_option(parser, argv[*i]);
    const char *value;

    if (spec == NULL)
        return false;
    value = argv[*i][1] == '-' ? strchr(argv[*i], '=') : NULL;
    if (value != NULL)
        value++;
    if (spec->value_name == NULL && value != NULL)
        return fail(parser, "--%s takes no value", spec->name);
    if (spec->value_name != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return fail(parser, "--%s needs a value: --%s %s", spec->name, spec->name,
                        spec->value_name);
        value = argv[++*i];
    }
    if (spec->action != ACTION_RUN)
        parser->options->action = spec->action;
    return note_option(parser, spec) &&
           (spec->apply == NULL || spec->apply(parser, spec->name, value));
}

/* --- the options as a whole --- */

static bool check_client(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->config_path != NULL || options->config_fd >= 0 ||
        options->action == ACTION_CHECK_CONFIG)
        return fail(parser, "--connect takes no configuration, the daemon has one");
    if (options->line.words != NULL)
        return fail(parser, "--connect takes no command, the daemon has one");
    parser->options->action = ACTION_CONNECT;
    return true;
}

/* There is one configuration: a file, a descriptor or a command. */
static bool check_daemon(struct parser *parser)
{
    const struct options *options = parser->options;
    bool has_path = options->config_path != NULL, has_fd = options->config_fd >= 0;

    if (parser->of_client != NULL)
        return fail(parser, "--%s is for --connect", parser->of_client->name);
    if (options->line.words != NULL && (has_path || has_fd))
        return fail(parser, "--%s and a command after -- exclude each other",
                    has_path ? "config" : "config-fd");
    if (has_path && has_fd)
        return fail(parser, "--config and --config-fd exclude each other");
    if (options->line.words == NULL && !has_path && !has_fd)
        return fail(parser, "--config PATH, --config-fd N or -- COMMAND is required" SEE_HELP);
    if (options->config_fd == 0 && options->mode == BUS_LISTEN_STDIO &&
        options->action == ACTION_RUN)
        return fail(parser, "--config-fd: in stdio mode descriptor 0 is the client's");
    parser->options->line.one_client = options->mode == BUS_LISTEN_STDIO;
    return true;
}

/* Nothing is run. */
static bool check_import(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->action != ACTION_IMPORT || parser->mode != NULL || options->config_path != NULL ||
        options->config_fd >= 0 || options->line.words != NULL)
        return fail(parser, "--import stands alone");
    return true;
}

static bool check_options(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->token_file != NULL && options->mode != BUS_LISTEN_TCP)
        return fail(parser, "--token-file is for TCP: no other connection needs a token");
    if (options->strict && options->action != ACTION_CHECK_CONFIG)
        return fail(parser, "--strict is for --check-config");
    if (parser->of_command != NULL && options->line.words == NULL)
        return fail(parser,
                    "--%s is for a command after --; a configuration has it as a key of a pool",
                    parser->of_command->name);
    if (options->import_path != NULL)
        return check_import(parser);
    return parser->mode != NULL && parser->mode->apply == apply_connect ? check_client(parser)
                                                                        : check_daemon(parser);
}

int options_parse(struct options *options, int argc, char *const argv[], char *problem,
                  size_t problem_size)
{
    struct parser parser = {.options = options, .problem = problem, .problem_size = problem_size};

    *options = (struct options){.config_fd = -1, .log_level = LOG_LEVEL_INFO};
    for (int i = 1; i < argc && options->line.words == NULL; i++) {
        if (strcmp(argv[i], "--") == 0) {
            options->line.words = argv + i + 1;
            continue;
        }
        if (!read_option(&parser, argc, argv, &i))
            return STDIO_BUS_EINVAL;
        if (options->action == ACTION_HELP || options->action == ACTION_VERSION)
            return STDIO_BUS_OK; /* the rest is not read */
    }
    if (options->line.words != NULL &&
        (options->line.words[0] == NULL || options->line.words[0][0] == '\0')) {
        fail(&parser, "-- needs a command: -- COMMAND ARG...");
        return STDIO_BUS_EINVAL;
    }
    return check_options(&parser) ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}
