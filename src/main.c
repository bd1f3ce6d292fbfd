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
#include "cli/connect.h"
#include "cli/help.h"
#include "cli/import.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "cli/rejoin.h"
#include "config/rmp_socket.h"
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
static int read_token(struct token *token, const char *path, struct log *log)
{
    char reason[TOKEN_REASON_MAX];

    if (token_read_file(token, path, reason) == STDIO_BUS_OK)
        return EXIT_DONE;
    log_error(log, "", "cannot use the token file %s: %s", path, reason);
    return EXIT_CONFIG_ERROR;
}

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

static int serve(const struct options *options, const struct config *config, struct log *log)
{
    const char *token_file = options->token_file != NULL ? options->token_file : config->token_file;
    bool has_token = options->mode == BUS_LISTEN_TCP && token_file != NULL;
    bool has_rmp = options->rmp || config->rmp.enabled;
    char rmp_path[RMP_SOCKET_MAX];
    struct token token = {.len = 0};
    struct bus_options bus_options = {
        .config = config,
        .log = log,
        .mode = has_rmp && !options->has_mode ? BUS_LISTEN_NONE : options->mode,
        .unix_path = options->unix_path,
        .tcp_host = options->tcp_host,
        .tcp_port = options->tcp_port,
        .rmp_path = has_rmp ? rmp_path : NULL,
        .framing = options->framing != NULL ? options->framing : config->client_framing,
        .token = has_token ? &token : NULL,
        .open = config->open,
        .idle_exit_sec = options->idle_exit_sec > 0 ? (unsigned)options->idle_exit_sec : 0,
        .handle_signals = true,
    };

    if (has_token && read_token(&token, token_file, log) != EXIT_DONE)
        return EXIT_CONFIG_ERROR;
    if (has_rmp && find_rmp_socket(rmp_path, options, config, log) != EXIT_DONE)
        return EXIT_OS_ERROR;
    return run_bus(&bus_options);
}

static int run_client(const struct options *options)
{
    char reason[512], line[OPENING_MAX];
    int status = EXIT_CONFIG_ERROR, fd = -1;
    size_t len;

    if (connect_write_opening(options, line, &len, reason, sizeof reason)) {
        status = EXIT_CANNOT_CONNECT;
        fd = connect_open(options, reason, sizeof reason);
    }
    if (fd >= 0) {
        status = connect_copy(fd, STDIN_FILENO, STDOUT_FILENO, slice_of(line, len), reason,
                              sizeof reason);
        close(fd);
    }
    if (status != EXIT_DONE)
        fprintf(stderr, "stdio_bus: %s\n", reason);
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

/* The users of a Unix socket are chosen by keys that mean nothing elsewhere. A rule about who may
 * connect is not ignored where others could. */
static int check_access(const struct options *options, const struct config *config, struct log *log)
{
    const struct access *access = &config->access;
    bool has_rmp = options->rmp || config->rmp.enabled;

    if (options->mode == BUS_LISTEN_UNIX || !access_is_set(access))
        return EXIT_DONE;
    if (options->mode == BUS_LISTEN_TCP && access->uid_count > 0) {
        log_error(log, "", "listen.allow_uids is for --unix: with --tcp, users are not known");
        return EXIT_CONFIG_ERROR;
    }
    if (options->action == ACTION_RUN && !has_rmp)
        log_warn(log, "", "listen.mode, .group and .allow_uids have no effect without --unix");
    return EXIT_DONE;
}

/* A daemon without pools has the RMP socket alone. */
static int check_pools(const struct options *options, const struct config *config, struct log *log)
{
    if (config->pool_count > 0 || !options->has_mode)
        return EXIT_DONE;
    log_error(log, "", "the configuration has no pool for the clients of the other socket");
    return EXIT_CONFIG_ERROR;
}

/* "transport.mode" has no address: the option that has one overrides it. */
static int check_mode(const struct options *options, const struct config *config, struct log *log)
{
    if (options->has_mode || options->action != ACTION_RUN || config->socket_mode == NULL)
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
    if (status == EXIT_DONE && options->action == ACTION_CHECK_CONFIG)
        log_info(log, "", "the configuration is valid: %zu pool%s", config.pool_count,
                 config.pool_count == 1 ? "" : "s");
    else if (status == EXIT_DONE)
        status = serve(options, &config, log);
    config_free(&config);
    return status;
}

/* DEBUG_STDIO is a variable of the reference implementation. */
static enum log_level level_of(const struct options *options)
{
    const char *debug = getenv("DEBUG_STDIO");

    if (options->has_log_level || debug == NULL || *debug == '\0' || strcmp(debug, "0") == 0)
        return options->log_level;
    return LOG_LEVEL_DEBUG;
}

/* Returns EXIT_DONE, or another exit status after its reason was printed. */
static int start_log(struct log *log, const struct options *options)
{
    const enum log_level level = level_of(options);
    const char *path = options->log_file != NULL ? options->log_file : getenv("STDIO_BUS_LOG");
    int status = EXIT_DONE, opened;
    bool is_stdout = false;

    if (options->action == ACTION_CHECK_CONFIG || path == NULL || *path == '\0') {
        log_open(log, STDERR_FILENO, level);
        return EXIT_DONE;
    }
    opened = log_open_file(log, path, level);
    if (opened != STDIO_BUS_OK) {
        fprintf(stderr, "stdio_bus: cannot open the log file %s: %s\n", path,
                log_file_problem(opened));
        return EXIT_CONFIG_ERROR;
    }
    if (options->mode == BUS_LISTEN_STDIO &&
        log_shares(log, STDOUT_FILENO, &is_stdout) != STDIO_BUS_OK)
        status = system_error("cannot look at stdout and the log file");
    if (is_stdout) {
        fprintf(stderr, "stdio_bus: the log file %s is stdout, which is for messages alone\n",
                path);
        status = EXIT_CONFIG_ERROR;
    }
    if (status != EXIT_DONE)
        log_close(log);
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
    if (options.action == ACTION_CONNECT && options.line.protocol == NULL)
        return run_client(&options);
    if (options.action == ACTION_IMPORT)
        return run_import(options.import_path);
    release_long_buffers();
    if (options.action == ACTION_CONNECT)
        return rejoin_run(&options);
    if (options.action == ACTION_LIST)
        return list_run();
    if (options.action == ACTION_SHARE)
        return run_share(&options);
    status = start_log(&log, &options);
    if (status != EXIT_DONE)
        return status;
    status = run(&options, &log);
    log_close(&log);
    return status;
}
