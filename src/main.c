#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#ifdef HAVE_MALLOPT
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/bus.h"
#include "cli/client.h"
#include "cli/help.h"
#include "cli/import.h"
#include "cli/log_options.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "config/rmp_socket.h"
#include "config/tokens.h"
#include "framing/opening.h"
#include "share/list.h"
#include "share/share.h"

#define LONG_BUFFER 131072 /* bytes; one that the C library gives back to the system at once */
#define VERSION_LINE PACKAGE_NAME " " PACKAGE_VERSION "\n"

/* For an empty container: a directory cannot be read or written either. */
static int open_in_place_of_null(void)
{
    return open("/", O_RDONLY);
}

/* If the parent has closed a descriptor of 0 to 2, the next file to be opened would get its number
 * and be used as stdin, stdout or stderr. */
static int fill_standard_descriptors(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
        if (fd < 0)
            fd = open_in_place_of_null();
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

/* For errors before or without a log. */
static int system_error(const char *what)
{
    fprintf(stderr, "stdio_bus: %s: %s\n", what, strerror(errno));
    return EXIT_OS_ERROR;
}

/* Prints all texts, up to a NULL. */
static int print(const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        if (fputs(*texts, stdout) == EOF)
            return system_error("cannot write to stdout");
    }
    return fflush(stdout) != EOF ? EXIT_DONE : system_error("cannot write to stdout");
}

struct problems {
    struct log *log;
    size_t warnings;
};

static void report_problem(void *user_data, bool is_error, const char *text)
{
    struct problems *problems = user_data;

    problems->warnings += !is_error;
    log_write(problems->log, is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "", "%s", text);
}

/* Returns EXIT_DONE, or another exit status after the reason was logged. */
static int read_config(struct config *config, const struct options *options, struct log *log)
{
    struct problems problems = {.log = log};
    char name[32];
    int code = STDIO_BUS_OK;

    snprintf(name, sizeof name, "fd %d", options->config_fd);
    if (options->line.words != NULL)
        code = config_of_command(config, &options->line, report_problem, &problems);
    else if (options->config_path != NULL)
        code = config_read_file(config, options->config_path, report_problem, &problems);
    else if (options->config_fd >= 0)
        code = config_read_fd(config, options->config_fd, name, report_problem, &problems);
    else
        config_of_nothing(config);
    if (code != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    if (!options->strict || problems.warnings == 0)
        return EXIT_DONE;
    log_error(log, "", "with --strict, no warning is allowed: %zu", problems.warnings);
    config_free(config);
    return EXIT_CONFIG_ERROR;
}

static const int exit_statuses[] = {
    [BUS_DONE] = EXIT_DONE,
    [BUS_CLIENT_MALFORMED] = EXIT_DATA_ERROR,
    [BUS_NO_WORKER_LEFT] = EXIT_NO_WORKER_LEFT,
    [BUS_BAD_COMMAND] = EXIT_CONFIG_ERROR,
    [BUS_SYSTEM_ERROR] = EXIT_OS_ERROR,
};

/* Returns EXIT_DONE, or another exit status after the reason was logged. */
static int find_rmp_socket(char path[RMP_SOCKET_MAX], const struct options *options,
                           const struct config *config, struct log *log)
{
    const struct rmp_place place = {options->rmp_path, config->rmp.socket_path,
                                    config->rmp.sockets_dir};
    char reason[RMP_SOCKET_REASON_MAX];

    if (rmp_socket_make(path, &place, reason) == STDIO_BUS_OK)
        return EXIT_DONE;
    log_error(log, "", "no RMP socket: %s", reason);
    return EXIT_OS_ERROR;
}

/* Runs until the bus stops. Returns the exit status. */
static int run_bus(const struct bus_options *options)
{
    enum bus_outcome outcome = BUS_SYSTEM_ERROR;
    struct stdio_bus *bus = bus_create(options);

    if (bus != NULL && bus_start(bus) == STDIO_BUS_OK) {
        do
            outcome = bus_step(bus, -1);
        while (outcome == BUS_RUNNING);
    }
    bus_destroy(bus);
    return exit_statuses[outcome];
}

/* The listeners of the command line, with the keys that the configuration has for them, and those
 * of the configuration. They borrow what they name. To be freed; NULL when memory is out. */
static struct listen_config *all_listeners(const struct options *options,
                                           const struct config *config)
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
        count++;
    }
    for (size_t i = 0; i < config->listen_count; i++)
        listens[count++] = config->listens[i];
    for (size_t i = 0; i < count && options->framing != NULL; i++)
        listens[i].framing = options->framing;
    return listens;
}

/* Before anything is opened: a listener reads its file anew. Returns EXIT_DONE, or another exit
 * status after the reason was logged. */
static int check_tokens(const struct options *options, struct log *log)
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX];

    if (options->token_file == NULL ||
        tokens_read(&tokens, options->token_file, reason) == STDIO_BUS_OK) {
        tokens_free(&tokens);
        return EXIT_DONE;
    }
    log_error(log, "", "cannot use the token file %s: %s", options->token_file, reason);
    return EXIT_CONFIG_ERROR;
}

static int serve(const struct options *options, const struct config *config, struct log *log)
{
    bool has_rmp = options->rmp || config->rmp.enabled;
    char rmp_path[RMP_SOCKET_MAX];
    struct listen_config *listens = all_listeners(options, config);
    struct bus_options bus_options = {
        .config = config,
        .log = log,
        .stdio = options->stdio && config->listen_count == 0 && (!has_rmp || options->has_mode),
        .listens = listens,
        .listen_count = options->listen_count + config->listen_count,
        .rmp_path = has_rmp ? rmp_path : NULL,
        .framing = options->framing != NULL ? options->framing : config->listen.framing,
        .idle_exit_sec = options->idle_exit_sec > 0 ? (unsigned)options->idle_exit_sec : 0,
        .handle_signals = true,
    };
    int status = EXIT_OS_ERROR;

    if (listens == NULL)
        log_error(log, "", "cannot start: out of memory");
    else if (!has_rmp || find_rmp_socket(rmp_path, options, config, log) == EXIT_DONE)
        status = run_bus(&bus_options);
    free(listens);
    return status;
}

static int run_import(const char *path)
{
    struct import import;
    int status = EXIT_CONFIG_ERROR, code = import_file(&import, path);

    if (import.notes != NULL && fputs(import.notes, stderr) == EOF)
        status = system_error("cannot write to stderr");
    else if (code == STDIO_BUS_OK)
        status = print((const char *const[]){import.config, NULL});
    import_free(&import);
    return status;
}

static int run_share(const struct options *options)
{
    const struct share_options share = {
        .line = options->line,
        .name = options->share_name,
        .variables = options->share_variables,
        .any_directory = options->any_cwd,
        .idle_exit_sec = options->idle_exit_sec >= 0 ? (unsigned)options->idle_exit_sec
                                                     : SHARE_IDLE_EXIT_SEC,
        .framing = options->framing,
        .log_level = options->log_level,
        .stderr_level = options->has_log_level ? options->log_level : LOG_LEVEL_ERROR,
    };

    return share_run(&share);
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
static int check_access(const struct options *options, const struct config *config, struct log *log)
{
    const struct access *access = &config->listen.access;
    bool has_rmp = options->rmp || config->rmp.enabled;
    size_t sockets = 0;

    for (size_t i = 0; i < options->listen_count; i++)
        sockets += options->listens[i].is_unix;
    if (!access_is_set(access) || (sockets > 0 && sockets == options->listen_count))
        return EXIT_DONE;
    if (sockets < options->listen_count && access->uid_count > 0) {
        log_error(log, "",
                  "listen.allow_uids is for Unix sockets: on TCP, users are not known (a list of "
                  "listeners has the keys of each)");
        return EXIT_CONFIG_ERROR;
    }
    if (options->action == ACTION_RUN && !has_rmp && sockets == 0)
        log_warn(log, "", "listen.mode, .group and .allow_uids have no effect without --unix");
    return EXIT_DONE;
}

/* So are the rules of HTTP. */
static void check_http(const struct options *options, const struct config *config, struct log *log)
{
    const struct http_listen_config *http = &config->listen.http;

    if (options->action == ACTION_RUN && count_listeners(options, LISTEN_HTTP) == 0 &&
        (http->origins != NULL || http->hosts != NULL || http->route_count > 0 ||
         http->oauth.resource != NULL || http->health))
        log_warn(log, "",
                 "listen.origins, .hosts, .routes, .oauth and .health have no effect without "
                 "--http");
}

/* A daemon without pools has the RMP socket alone. */
static int check_pools(const struct options *options, const struct config *config, struct log *log)
{
    if (config->pool_count > 0 || (!options->has_mode && config->listen_count == 0))
        return EXIT_DONE;
    log_error(log, "", "the configuration has no pool for the clients of the other socket");
    return EXIT_CONFIG_ERROR;
}

/* "transport.mode" has no address: the option that has one overrides it. With listeners, stdin is
 * not a client's. */
static int check_mode(const struct options *options, const struct config *config, struct log *log)
{
    if (options->has_mode && options->stdio && config->listen_count > 0) {
        log_error(log, "", "--stdio: the configuration has listeners");
        return EXIT_CONFIG_ERROR;
    }
    if (options->has_mode || options->action != ACTION_RUN || config->socket_mode == NULL ||
        config->listen_count > 0)
        return EXIT_DONE;
    log_error(log, "", "transport.mode is \"%s\", and its address is missing: use --%s %s",
              config->socket_mode, config->socket_mode,
              strcmp(config->socket_mode, "unix") == 0 ? "PATH" : "HOST:PORT");
    return EXIT_CONFIG_ERROR;
}

static int run(const struct options *options, struct log *log)
{
    struct config config;
    int status = read_config(&config, options, log);

    if (status != EXIT_DONE)
        return status;
    status = check_mode(options, &config, log);
    if (status == EXIT_DONE)
        status = check_pools(options, &config, log);
    if (status == EXIT_DONE)
        status = check_access(options, &config, log);
    if (status == EXIT_DONE)
        status = check_tokens(options, log);
    if (status == EXIT_DONE)
        check_http(options, &config, log);
    if (status == EXIT_DONE && options->action == ACTION_CHECK_CONFIG)
        log_info(log, "", "the configuration is valid: %zu pool%s", config.pool_count,
                 config.pool_count == 1 ? "" : "s");
    else if (status == EXIT_DONE)
        status = serve(options, &config, log);
    config_free(&config);
    return status;
}

/* glibc would keep the memory of the longest message so far for later ones. */
static void release_long_buffers(void)
{
#if defined HAVE_MALLOPT && defined M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, LONG_BUFFER);
#endif
}

int main(int argc, char *argv[])
{
    static const char *const version[] = {VERSION_LINE, NULL};
    struct options options;
    struct log log;
    char problem[512];
    int status;

    /* Until its handler stands: a log rotation must not end a daemon that has just been started, or
     * a client that has no log. */
    signal(SIGUSR1, SIG_IGN);
    if (fill_standard_descriptors() < 0)
        return system_error("cannot open /dev/null or /");
    if (options_parse(&options, argc, argv, problem, sizeof problem) != STDIO_BUS_OK) {
        fprintf(stderr, "stdio_bus: %s\n", problem);
        return EXIT_USAGE_ERROR;
    }
    if (options.action == ACTION_HELP || options.action == ACTION_VERSION)
        return print(options.action == ACTION_HELP ? help_sections() : version);
    /* Ignored for the whole run: a closed stdout becomes an exit status; an unwritable log is never
     * fatal. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (options.action == ACTION_IMPORT)
        return run_import(options.import_path);
    release_long_buffers();
    if (options.action == ACTION_CONNECT)
        return client_run(&options);
    if (options.action == ACTION_LIST)
        return list_run();
    if (options.action == ACTION_SHARE)
        return run_share(&options);
    status = log_options_open(&log, &options);
    if (status != EXIT_DONE)
        return status;
    status = run(&options, &log);
    log_close(&log);
    return status;
}
