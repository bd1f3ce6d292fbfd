#include "build_config.h"

#include "cli/log_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"

/* DEBUG_STDIO is a variable of the reference implementation. */
static enum log_level level_of(const struct options *options)
{
    const char *debug = getenv("DEBUG_STDIO");

    if (options->has_log_level || debug == NULL || *debug == '\0' || strcmp(debug, "0") == 0)
        return options->log_level;
    return LOG_LEVEL_DEBUG;
}

/* The journal has times of its own, and takes the level from the line. */
static void open_stderr(struct log *log, const struct options *options)
{
    log_open(log, STDERR_FILENO, level_of(options));
    if (options->has_log_format)
        log_set_format(log, options->log_format);
    else if (log_is_journal(log, getenv("JOURNAL_STREAM")))
        log_set_format(log, LOG_JOURNALD);
}

static int open_system(struct log *log, const struct options *options)
{
    const char *path = options->log_system;
    int status = log_open_system(log, path, level_of(options));

    if (status == STDIO_BUS_OK)
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: cannot reach the system log at %s: %s", path,
                  status == STDIO_BUS_EINVAL ? "not the path of a Unix socket" : strerror(errno));
    return EXIT_CONFIG_ERROR;
}

/* In stdio mode stdout is for messages alone. */
static int check_stdout(const struct log *log, const struct options *options)
{
    bool is_stdout = false;

    if (!options->stdio)
        return EXIT_DONE;
    if (log_shares(log, STDOUT_FILENO, &is_stdout) != STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus: cannot look at stdout and the log file: %s",
                      strerror(errno));
        return EXIT_OS_ERROR;
    }
    if (!is_stdout)
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: the log file %s is stdout, which is for messages alone",
                  log->path);
    return EXIT_CONFIG_ERROR;
}

static int open_file(struct log *log, const struct options *options, const char *path)
{
    int status = log_open_file(log, path, level_of(options));

    if (status != STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus: cannot open the log file %s: %s", path,
                      log_file_problem(status));
        return EXIT_CONFIG_ERROR;
    }
    log_set_format(log, options->log_format);
    status = check_stdout(log, options);
    if (status != EXIT_DONE)
        log_close(log);
    return status;
}

int log_options_open(struct log *log, const struct options *options)
{
    const char *path = options->log_file != NULL ? options->log_file : getenv("STDIO_BUS_LOG");

    if (options->action != ACTION_CHECK_CONFIG && options->log_system != NULL)
        return open_system(log, options);
    if (options->action != ACTION_CHECK_CONFIG && path != NULL && *path != '\0')
        return open_file(log, options, path);
    open_stderr(log, options);
    return EXIT_DONE;
}
