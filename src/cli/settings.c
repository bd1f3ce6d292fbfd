#include "build_config.h"

#include "cli/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "config/parts.h"
#include "config/tokens.h"

/* --- listeners --- */

/* The listeners of the command line, with the keys that the configuration has for them, those of
 * the configuration, and that of its metrics. They borrow what they name. To be freed; NULL if out
 * of memory. */
static struct listen_config *all_listeners(const struct options *options,
                                           const struct config *config, size_t *all)
{
    size_t count = 0;
    struct listen_config *listens = calloc(options->listen_count + config->listen_count + 1,
                                           sizeof *listens);

    if (listens == NULL)
        return NULL;
    for (size_t i = 0; i < options->listen_count; i++) {
        listens[count] = config->listen;
        listens[count].address = options->listens[i];
        if (options->token_file != NULL)
            listens[count].token_file = (char *)options->token_file;
        if (options->listens[i].kind == LISTEN_UNIX)
            listens[count].token_file = NULL;
        else if (options->open)
            listens[count].open = true; /* where there is a token, it is asked for all the same */
        count++;
    }
    for (size_t i = 0; i < config->listen_count; i++)
        listens[count++] = config->listens[i];
    for (size_t i = 0; i < count && options->framing != NULL; i++)
        listens[i].framing = options->framing;
    if (config->has_metrics)
        listens[count++] = config->metrics;
    *all = count;
    return listens;
}

#define PROBLEM_BYTES (SETTINGS_PROBLEM_MAX - 40) /* the rest is for the number of the others */

/* Keeps the first problem. */
static void note_problem(struct settings *settings, const char *text)
{
    settings->reports++;
    if (settings->problem[0] == '\0')
        snprintf(settings->problem, sizeof settings->problem, "%.*s", PROBLEM_BYTES, text);
}

/* Logs the reason. Returns EXIT_CONFIG_ERROR. */
__attribute__((format(printf, 2, 3))) static int fail(struct settings *settings, const char *format,
                                                      ...)
{
    char text[SETTINGS_PROBLEM_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_error(settings->log, "", "%s", text);
    note_problem(settings, text);
    return EXIT_CONFIG_ERROR;
}

/* --- the configuration --- */

struct reading {
    struct settings *settings;
    size_t warnings;
};

static void report_problem(void *user_data, bool is_error, const char *text)
{
    struct reading *reading = user_data;
    struct settings *settings = reading->settings;

    reading->warnings += !is_error;
    if (!is_error && settings->is_known)
        return;
    log_write(settings->log, is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "", "%s", text);
    if (is_error)
        note_problem(settings, text);
    else
        settings->reports++; /* such as the key that was meant to be the one that is missing */
}

/* Returns EXIT_DONE, or another exit status after the reason was logged. */
static int read_config(struct settings *settings, struct setup *setup)
{
    const struct options *options = settings->options;
    struct config *config = &setup->config;
    const struct source *first = setup->sources.first;
    const char *path = first != NULL ? first->path : options->config_path;
    struct reading reading = {.settings = settings};
    char name[32];
    int code = STDIO_BUS_OK;

    snprintf(name, sizeof name, "fd %d", options->config_fd);
    if (options->line.words != NULL)
        code = config_of_command(config, &options->line, report_problem, &reading);
    else if (path != NULL)
        code = config_read_sources(config, path, &setup->sources, report_problem, &reading);
    else if (options->config_fd >= 0)
        code = config_read_fd(config, options->config_fd, name, report_problem, &reading);
    else
        config_of_nothing(config);
    if (code != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    if (!options->strict || reading.warnings == 0)
        return EXIT_DONE;
    return fail(settings, "with --strict, no warning is allowed: %zu", reading.warnings);
}

/* --- what the options and the configuration say together --- */

/* Before anything is opened: a listener reads its file again. Returns EXIT_DONE, or another exit
 * status after the reason was logged. */
static int check_tokens(struct settings *settings)
{
    const struct options *options = settings->options;
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX];

    if (options->token_file == NULL ||
        tokens_read(&tokens, options->token_file, reason) == STDIO_BUS_OK) {
        tokens_free(&tokens);
        return EXIT_DONE;
    }
    return fail(settings, "cannot use the token file %s: %s", options->token_file, reason);
}

static size_t count_listeners(const struct options *options, enum listen_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < options->listen_count; i++)
        count += options->listens[i].kind == kind;
    return count;
}

/* The users of a Unix socket are chosen by keys that mean nothing elsewhere. A rule about who may
 * connect is not ignored where others could. */
static int check_access(struct settings *settings, const struct config *config)
{
    const struct options *options = settings->options;
    const struct access *access = &config->listen.access;
    bool serves = options_socket(options, "rmp") != NULL || config->rmp.enabled ||
                  config->nats.enabled;
    size_t sockets = 0;

    for (size_t i = 0; i < options->listen_count; i++)
        sockets += options->listens[i].is_unix;
    if (!access_is_set(access) || (sockets > 0 && sockets == options->listen_count))
        return EXIT_DONE;
    if (sockets < options->listen_count && access->uid_count > 0)
        return fail(settings, "listen.allow_uids is for Unix sockets: on TCP, users are not known "
                              "(a list of listeners has the keys of each)");
    if (options->action == ACTION_RUN && !serves && sockets == 0)
        log_warn(settings->log, "",
                 "listen.mode, .group and .allow_uids have no effect without --unix");
    return EXIT_DONE;
}

/* So are the rules of HTTP. */
static void check_http(const struct settings *settings, const struct config *config)
{
    const struct options *options = settings->options;
    const struct http_listen_config *http = &config->listen.http;

    if (options->action == ACTION_RUN && count_listeners(options, LISTEN_HTTP) == 0 &&
        (http->origins != NULL || http->hosts != NULL || http->route_count > 0 ||
         http->oauth.resource != NULL || http->health || http->metrics || http->no_page))
        log_warn(settings->log, "",
                 "listen.origins, .hosts, .routes, .oauth, .health, .metrics and .page have no "
                 "effect without --http");
}

/* A daemon without pools has the RMP socket alone. */
static int check_pools(struct settings *settings, const struct config *config)
{
    if (config->pool_count > 0 || (!settings->options->has_mode && config->listen_count == 0))
        return EXIT_DONE;
    return fail(settings, "the configuration has no pool for the clients of the other socket");
}

/* "transport.mode" has no address: the option that has one overrides it. With listeners, stdin is
 * not a client's. */
static int check_mode(struct settings *settings, const struct config *config)
{
    const struct options *options = settings->options;

    if (options->has_mode && options->stdio && config->listen_count > 0)
        return fail(settings, "--stdio: the configuration has listeners");
    if (options->has_mode || options->action != ACTION_RUN || config->socket_mode == NULL ||
        config->listen_count > 0)
        return EXIT_DONE;
    return fail(settings, "transport.mode is \"%s\", and its address is missing: use --%s %s",
                config->socket_mode, config->socket_mode,
                strcmp(config->socket_mode, "unix") == 0 ? "PATH" : "HOST:PORT");
}

/* Nothing of the configuration is ignored because the program was built without it. */
static int check_parts(struct settings *settings, const struct config *config)
{
    bool has_http = config->has_metrics;
    const struct {
        const char *key;
        bool is_asked;
        enum part part;
    } asked[] = {
        {"rmp.enabled", config->rmp.enabled, PART_RMP},
        {"nats", config->nats.enabled, PART_NATS},
        {"control", config->control != NULL, PART_CONTROL},
    };
    char text[PART_MISSING_MAX];

    for (size_t i = 0; i < config->listen_count; i++)
        has_http |= config->listens[i].address.kind == LISTEN_HTTP;
    if (has_http && part_missing(text, PART_HTTP) != NULL)
        return fail(settings, "a listener of HTTP: %s", text);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        if (asked[i].is_asked && part_missing(text, asked[i].part) != NULL)
            return fail(settings, "%s: %s", asked[i].key, text);
    }
    return EXIT_DONE;
}

/* --- both --- */

static int check(struct settings *settings, const struct config *config)
{
    int status = check_parts(settings, config);

    if (status == EXIT_DONE)
        status = check_mode(settings, config);
    if (status == EXIT_DONE)
        status = check_pools(settings, config);
    if (status == EXIT_DONE)
        status = check_access(settings, config);
    if (status == EXIT_DONE && !settings->is_known)
        status = check_tokens(settings);
    if (status == EXIT_DONE)
        check_http(settings, config);
    return status;
}

/* Once: a reload reads the files. */
static void take_sources(struct settings *settings, struct sources *to)
{
    *to = *settings->sources;
    *settings->sources = (struct sources){.first = NULL};
    settings->sources = NULL;
}

int settings_read(struct settings *settings, struct setup **setup)
{
    struct setup *made = setup_create();
    int status = EXIT_OS_ERROR;

    settings->reports = 0;
    settings->problem[0] = '\0';
    *setup = NULL;
    if (made == NULL) {
        (void)fail(settings, "cannot read the configuration: out of memory");
        return status;
    }
    if (settings->sources != NULL)
        take_sources(settings, &made->sources);
    status = read_config(settings, made);
    made->sources.replace_files = false;
    if (status == EXIT_DONE)
        status = check(settings, &made->config);
    if (status == EXIT_DONE) {
        made->listens = all_listeners(settings->options, &made->config, &made->listen_count);
        if (made->listens == NULL) {
            (void)fail(settings, "cannot read the configuration: out of memory");
            status = EXIT_OS_ERROR;
        }
    }
    if (status == EXIT_DONE)
        *setup = made;
    else
        setup_release(made);
    return status;
}

bool settings_serve_stdin(const struct settings *settings, const struct config *config)
{
    const struct options *options = settings->options;
    bool serves = options_socket(options, "rmp") != NULL || config->rmp.enabled ||
                  config->nats.enabled;

    return options->stdio && config->listen_count == 0 && (!serves || options->has_mode);
}

/* --- a reload --- */

/* The daemon would wait for the writer of a pipe, and its clients for the daemon. */
static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) < 0 || S_ISREG(status.st_mode);
}

static bool is_right(struct settings *settings, struct setup *setup)
{
    if (settings_serve_stdin(settings, &setup->config) != settings->has_stdin) {
        (void)fail(settings, settings->has_stdin
                                 ? "the configuration has listeners, and this daemon has a client "
                                   "on stdin: restart it"
                                 : "the configuration has no listener, and stdin is no client");
        return false;
    }
    if (passed_find(settings->passed, setup->listens, setup->listen_count, settings->log) ==
        STDIO_BUS_OK)
        return true;
    note_problem(settings, "a socket of the service manager is missing");
    return false;
}

/* The report of a reload has one problem. */
static void add_count(struct settings *settings)
{
    char *text = settings->problem;
    size_t len = strlen(text);

    if (settings->reports > 1)
        snprintf(text + len, sizeof settings->problem - len, "; the log has %zu more",
                 settings->reports - 1);
}

struct setup *settings_read_again(void *user_data, const char **problem)
{
    struct settings *settings = user_data;
    const struct options *options = settings->options;
    struct setup *setup = NULL;

    *problem = settings->problem;
    settings->is_known = false;
    settings->reports = 0;
    settings->problem[0] = '\0';
    if (options->line.words != NULL || options->config_path == NULL)
        (void)fail(settings, "there is no configuration file that could be read again");
    else if (!is_file(options->config_path))
        (void)fail(settings, "%s is no file that could be read again", options->config_path);
    else if (settings_read(settings, &setup) == EXIT_DONE && !is_right(settings, setup)) {
        setup_release(setup);
        setup = NULL;
    }
    if (setup == NULL)
        add_count(settings);
    return setup;
}

static void write_pool(struct json_text *text, const struct pool_config *pool)
{
    const struct pool_mode *mode = &pool->mode;

    row_begin(text, NULL, '{');
    row_string(text, "pool", pool->id);
    row_string(text, "protocol", pool_mode_protocol_name(mode->protocol));
    row_string(text, "sharing", pool_mode_clients_words[mode->clients]);
    row_number(text, "instances", (int64_t)pool->instances);
    row_end(text, '}');
}

void config_json_write(struct json_text *text, const struct config *config)
{
    size_t i;

    row_begin(text, NULL, '{');
    row_begin(text, "pools", '[');
    for (i = 0; i < config->pool_count; i++)
        write_pool(text, &config->pools[i]);
    row_end(text, ']');
    row_number(text, "total", (int64_t)config->pool_count);
    row_end(text, '}');
}
