#include "build_config.h"

#include "cli/parse.h"

#include <string.h>

#include "base/error.h"
#include "cli/option_values.h"
#include "config/parts.h"

/* --- the command line --- */

/* The option that `word` names, up to its '=' or end; NULL after fail. */
static const struct option_spec *find_option(struct parser *parser, const char *word)
{
    bool is_long = word[0] == '-' && word[1] == '-' && word[2] != '\0';
    size_t len = is_long ? strcspn(word, "=") : strlen(word);
    char shown[128];

    for (const struct option_spec *spec = parser_options; spec->name != NULL; spec++) {
        if (is_long && strlen(spec->name) == len - 2 && memcmp(word + 2, spec->name, len - 2) == 0)
            return spec;
        if (!is_long && len == 2 && word[0] == '-' && word[1] == spec->letter)
            return spec;
    }
    for (const char *const *name = parser->sockets; is_long && *name != NULL; name++) {
        if (slice_equal(slice_of(word + 2, len - 2), slice_of_text(*name))) {
            parser->socket = (struct option_spec){
                .name = *name, .value_name = "PATH", .apply = parser_apply_socket};
            return &parser->socket;
        }
    }
    log_escape(shown, sizeof shown, slice_of(word, len));
    if (word[0] == '-' && len > 1)
        parser_fail(parser, "unknown option %s" SEE_HELP, shown);
    else
        parser_fail(parser, "unexpected argument \"%s\": a command stands after --" SEE_HELP,
                    shown);
    return NULL;
}

/* Refuses a second use, and a second mode. */
static bool note_option(struct parser *parser, const struct option_spec *spec)
{
    uint64_t bit = spec == &parser->socket ? 0 : (uint64_t)1 << (spec - parser_options);

    if ((parser->seen & bit) != 0 && !spec->is_listener && !spec->may_repeat)
        return parser_fail(parser, "--%s is given twice", spec->name);
    parser->seen |= bit;
    if (spec->of_command)
        parser->of_command = spec;
    if (spec->of_client)
        parser->of_client = spec;
    if (spec->of_share)
        parser->of_share = spec;
    if (!spec->is_mode && !spec->is_listener)
        return true;
    if (parser->mode != NULL && !(parser->mode->is_listener && spec->is_listener))
        return parser_fail(parser, "--%s and --%s exclude each other", parser->mode->name,
                           spec->name);
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
        return parser_fail(parser, "--%s takes no value", spec->name);
    if (spec->value_name != NULL && value == NULL && !spec->may_lack_value) {
        if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0) /* a command follows */
            return parser_fail(parser, "--%s needs a value: --%s %s", spec->name, spec->name,
                               spec->value_name);
        value = argv[++*i];
    }
    if (spec->may_follow && value == NULL && *i + 1 < argc && argv[*i + 1][0] != '-')
        value = argv[++*i];
    if (spec->action != ACTION_RUN)
        parser->options->action = spec->action;
    return note_option(parser, spec) && option_take(parser, spec, value);
}

/* --- the options as a whole --- */

static bool check_client(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->config_path != NULL || options->config_fd >= 0 ||
        options->action == ACTION_CHECK_CONFIG)
        return parser_fail(parser, "--connect takes no configuration, the daemon has one");
    if (options->line.words != NULL)
        return parser_fail(parser, "--connect takes no command, the daemon has one");
    if (options->has_url && options->pool != NULL)
        return parser_fail(parser, "--pool: the path of the URL names the pool, as in /mcp/%s",
                           options->pool);
    if (options->has_url && options->line.protocol != NULL &&
        strcmp(options->line.protocol, "mcp") != 0)
        return parser_fail(parser, "--protocol: over HTTP, --connect speaks mcp");
    if (options->headers.count > 0 && !options->has_url)
        return parser_fail(parser, "--header is for --connect URL");
    if (options->token_file != NULL && headers_have(&options->headers, "authorization"))
        return parser_fail(parser, "--token-file and a field Authorization exclude each other");
    if (options->tls_command != NULL && (!options->has_url || !options->url.is_tls))
        return parser_fail(parser, "--tls-command is for --connect https://");
    parser->options->action = ACTION_CONNECT;
    return true;
}

static bool is_auto(const struct options *options)
{
    return options->line.clients != NULL && strcmp(options->line.clients, "auto") == 0;
}

static bool check_share(struct parser *parser)
{
    struct options *options = parser->options;
    bool is_lsp;

    if (options->line.words == NULL)
        return parser_fail(parser, "--share needs a command: --share -- COMMAND ARG...");
    if (options->config_path != NULL || options->config_fd >= 0 ||
        options->action == ACTION_CHECK_CONFIG)
        return parser_fail(parser, "--share takes a command after --, and no configuration");
    if (options->log_file != NULL || options->log_system != NULL || options->has_log_format)
        return parser_fail(parser, "--share has a log file of its own; see stdio_bus --list");
    if (options->line.protocol == NULL)
        options->line.protocol = "mcp";
    is_lsp = strcmp(options->line.protocol, "lsp") == 0;
    if (is_auto(options) && strcmp(options->line.protocol, "mcp") != 0)
        return parser_fail(parser, "--clients auto is for --protocol mcp");
    if (is_auto(options) && options->eager)
        return parser_fail(parser, "--clients auto needs the answers that --eager does not keep");
    if (options->line.clients == NULL)
        options->line.clients = is_lsp ? "exclusive" : "sticky";
    if (options->framing == NULL && is_lsp)
        options->framing = framing_named("content-length");
    options->action = ACTION_SHARE;
    return true;
}

/* Without --config. */
static bool find_config(struct parser *parser)
{
    struct options *options = parser->options;

    if (!default_config_find(options->default_config, SYSTEM_CONFIG))
        return parser_fail(parser,
                           "--config PATH, --config-fd N or -- COMMAND is required" SEE_HELP);
    options->config_path = options->default_config;
    return true;
}

/* There is one configuration: a file, a descriptor or a command. */
static bool check_daemon(struct parser *parser)
{
    struct options *options = parser->options;
    bool has_path = options->config_path != NULL, has_fd = options->config_fd >= 0;
    bool is_rmp_alone = options_socket(options, "rmp") != NULL && !options->has_mode;

    if (options->line.words != NULL && (has_path || has_fd))
        return parser_fail(parser, "--%s and a command after -- exclude each other",
                           has_path ? "config" : "config-fd");
    if (has_path && has_fd)
        return parser_fail(parser, "--config and --config-fd exclude each other");
    if (options->line.words == NULL && !has_path && !has_fd && !is_rmp_alone &&
        !find_config(parser))
        return false;
    options->stdio = options->listen_count == 0 && !is_rmp_alone;
    if (options->config_fd == 0 && options->stdio && options->action == ACTION_RUN)
        return parser_fail(parser, "--config-fd: in stdio mode descriptor 0 is the client's");
    options->line.one_client = options->stdio;
    return true;
}

/* Another daemon is asked. */
static bool check_ping(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->action != ACTION_PING || parser->mode != NULL || options->config_path != NULL ||
        options->config_fd >= 0 || options->line.words != NULL || options->socket_count > 0)
        return parser_fail(parser, "--ping stands alone, but for --deep and --token-file");
    return true;
}

/* A shared server is looked after. */
static bool check_care(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->config_path != NULL || options->config_fd >= 0 || options->line.words != NULL ||
        options->action < ACTION_STOP || options->action > ACTION_LOG)
        return parser_fail(parser, "--%s stands alone", parser->mode->name);
    return true;
}

/* Nothing is run. */
static bool check_import(struct parser *parser)
{
    const struct options *options = parser->options;

    if (options->action != ACTION_IMPORT || parser->mode != NULL || options->config_path != NULL ||
        options->config_fd >= 0 || options->line.words != NULL)
        return parser_fail(parser, "--import stands alone");
    return true;
}

static bool is_mode(const struct parser *parser, const char *name)
{
    return parser->mode != NULL && strcmp(parser->mode->name, name) == 0;
}

/* The keys of a command's pool. A client may have a protocol too. */
static bool lacks_command(const struct parser *parser)
{
    const struct command_line *line = &parser->options->line;

    if (line->words != NULL || parser->of_command == NULL)
        return false;
    return !is_mode(parser, "connect") || line->clients != NULL || line->instances != NULL ||
           line->framing != NULL || line->idle_stop != NULL;
}

static bool listens_to(const struct options *options, enum listen_kind kind)
{
    for (size_t i = 0; i < options->listen_count; i++) {
        if (options->listens[i].kind == kind)
            return true;
    }
    return false;
}

/* A listener or, of --connect, an address for which there may be a token. */
static bool takes_token(const struct parser *parser)
{
    const struct options *options = parser->options;

    if (is_mode(parser, "connect"))
        return !options->connect.is_unix;
    for (size_t i = 0; i < options->listen_count; i++) {
        if (options->listens[i].kind != LISTEN_UNIX)
            return true;
    }
    return false;
}

/* What the program was built without. */
static bool check_parts(struct parser *parser)
{
    const struct options *options = parser->options;
    const struct {
        const char *name;
        bool is_asked;
        enum part part;
    } asked[] = {
        {"http", listens_to(options, LISTEN_HTTP), PART_HTTP},
        {"rmp", options_socket(options, "rmp") != NULL, PART_RMP},
        {"control", options_socket(options, "control") != NULL, PART_CONTROL},
        {"ping", options->ping_path != NULL, PART_CONTROL},
        {"connect", options->has_url, PART_REMOTE},
        {"protocol", is_mode(parser, "connect") && options->line.protocol != NULL, PART_REMOTE},
        {"share", is_mode(parser, "share"), PART_SHARE},
        {"list", options->action == ACTION_LIST, PART_SHARE},
        {"page", options->page, PART_PAGE},
        {"page", options->page, PART_HTTP},
        {parser->mode != NULL ? parser->mode->name : "", options->cared_for != NULL, PART_SHARE},
        {"import", options->import_path != NULL, PART_DOCTOR},
    };
    char text[PART_MISSING_MAX];

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if (asked[i].is_asked && part_missing(text, asked[i].part) != NULL)
            return parser_fail(parser, "--%s: %s", asked[i].name, text);
    }
    return true;
}

static bool check_options(struct parser *parser)
{
    const struct options *options = parser->options;

    if (!check_parts(parser))
        return false;
    if (parser->of_client != NULL && !is_mode(parser, "connect"))
        return parser_fail(parser, "--%s is for --connect", parser->of_client->name);
    if (options->json && options->action != ACTION_LIST && options->action != ACTION_CHECK_CONFIG)
        return parser_fail(parser, "--json is for --list and --check-config");
    if (options->page && (options->action != ACTION_LIST || options->json))
        return parser_fail(parser, "--page is for --list, without --json");
    if (options->ping_path != NULL)
        return check_ping(parser);
    if (options->deep)
        return parser_fail(parser, "--deep is for --ping");
    if (options->token_file != NULL && !takes_token(parser))
        return parser_fail(parser, "--token-file is for TCP and HTTP: no other connection needs a "
                                   "token");
    if (options->log_system != NULL && (options->log_file != NULL || options->has_log_format))
        return parser_fail(parser, "--log-syslog and --%s exclude each other",
                           options->log_file != NULL ? "log-file" : "log-format");
    if (options->strict && options->action != ACTION_CHECK_CONFIG)
        return parser_fail(parser, "--strict is for --check-config");
    if (lacks_command(parser))
        return parser_fail(
            parser, "--%s is for a command after --; a configuration has it as a key of a pool",
            parser->of_command->name);
    if (options->socket_count > 0 &&
        (options->import_path != NULL || options->action == ACTION_LIST ||
         options->cared_for != NULL || is_mode(parser, "share") || is_mode(parser, "connect")))
        return parser_fail(parser, "--%s is for a daemon", options->sockets[0].name);
    if (options->import_path != NULL)
        return check_import(parser);
    if (options->cared_for != NULL)
        return check_care(parser);
    if (options->action == ACTION_LIST)
        return true;
    if (is_mode(parser, "share"))
        return check_share(parser);
    if (is_auto(options))
        return parser_fail(parser, "--clients auto is for --share");
    if (parser->of_share != NULL)
        return parser_fail(parser, "--%s is for --share", parser->of_share->name);
    if (is_mode(parser, "connect"))
        return check_client(parser);
    return check_daemon(parser);
}

int options_parse(struct options *options, int argc, char *const argv[], const char *const *sockets,
                  char *problem, size_t problem_size)
{
    struct parser parser = {
        .options = options, .sockets = sockets, .problem = problem, .problem_size = problem_size};

    *options = (struct options){.config_fd = -1, .log_level = LOG_LEVEL_INFO, .idle_exit_sec = -1};
    for (int i = 1; i < argc && options->line.words == NULL; i++) {
        if (strcmp(argv[i], "--") == 0) {
            options->line.words = argv + i + 1;
            continue;
        }
        /* Hosts with a parser of their own take the -- for theirs. */
        if (is_mode(&parser, "share") && argv[i][0] != '-') {
            options->line.words = argv + i;
            continue;
        }
        if (!read_option(&parser, argc, argv, &i))
            return STDIO_BUS_EINVAL;
        if (options->action >= ACTION_SCHEMA)
            return STDIO_BUS_OK; /* the rest is not read */
    }
    if (options->line.words != NULL &&
        (options->line.words[0] == NULL || options->line.words[0][0] == '\0')) {
        parser_fail(&parser, "-- needs a command: -- COMMAND ARG...");
        return STDIO_BUS_EINVAL;
    }
    return check_options(&parser) ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}
