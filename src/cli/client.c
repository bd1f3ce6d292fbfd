#include "build_config.h"

#include "cli/client.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/connect.h"
#include "cli/rejoin.h"
#include "remote/remote.h"

static int run_remote(const struct options *options)
{
    static const int statuses[] = {
        [REMOTE_DONE] = EXIT_DONE,
        [REMOTE_MALFORMED] = EXIT_DATA_ERROR,
        [REMOTE_OUTPUT_CLOSED] = EXIT_STDOUT_CLOSED,
        [REMOTE_SYSTEM_ERROR] = EXIT_OS_ERROR,
    };
    struct remote_options remote = {
        .url = options->url,
        .framing = options->framing,
        .wait_sec = options->wait_sec,
    };
    char reason[TOKEN_REASON_MAX];
    struct token token;
    struct log log;
    int status;

    log_open(&log, STDERR_FILENO, options->has_log_level ? options->log_level : LOG_LEVEL_WARN);
    remote.log = &log;
    if (options->token_file != NULL &&
        token_read_file(&token, options->token_file, reason) != STDIO_BUS_OK) {
        log_error(&log, "", "cannot use the token file %s: %s", options->token_file, reason);
        log_close(&log);
        return EXIT_CONFIG_ERROR;
    }
    if (options->token_file != NULL)
        remote.token = &token;
    status = statuses[remote_run(&remote)];
    log_close(&log);
    return status;
}

static int run_copy(const struct options *options)
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
        terminal_line(stderr, "stdio_bus: %s", reason);
    return status;
}

int client_run(const struct options *options)
{
    if (WITH_REMOTE && options->has_url)
        return run_remote(options);
    if (WITH_REMOTE && options->line.protocol != NULL)
        return rejoin_run(options);
    return run_copy(options);
}
