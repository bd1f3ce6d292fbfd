#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/rmp_commands.h"
#include "cli/rmp_decode.h"
#include "config/config.h"
#include "config/rmp_keys.h"

static int print_reason(int status, const char *reason)
{
    terminal_line(stderr, "stdio_bus_rmp: %s", reason);
    return status;
}

static void print_problem(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    if (is_error)
        terminal_line(stderr, "stdio_bus_rmp: %s", text);
}

/* The socket of the options, or where the daemon would have it. */
static int find_socket(const struct rmp_options *options, char path[RMP_SOCKET_MAX])
{
    struct config config = {.pools = NULL};
    struct rmp_place place = {.given = options->socket};
    char reason[RMP_SOCKET_REASON_MAX];
    int status;

    if (options->config != NULL &&
        config_read_file(&config, options->config, print_problem, NULL) != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    place.socket_path = config.rmp.socket_path;
    place.sockets_dir = config.rmp.sockets_dir;
    status = rmp_socket_find(path, &place, reason);
    config_free(&config);
    return status == STDIO_BUS_OK ? EXIT_DONE : print_reason(EXIT_CONFIG_ERROR, reason);
}

static int run(const struct rmp_options *options)
{
    static const struct {
        const char *name;
        int (*run)(const struct rmp_options *options, const char *path);
    } commands[] = {
        {"pub", rmp_pub}, {"sub", rmp_sub}, {"trace", rmp_trace}, {"submit", rmp_submit}};
    char path[RMP_SOCKET_MAX];
    int status;

    if (strcmp(options->command, "decode") == 0)
        return rmp_decode(STDIN_FILENO, options->json);
    if (options->local)
        return rmp_submit(options, NULL);
    status = find_socket(options, path);
    for (size_t i = 0; status == EXIT_DONE && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(options->command, commands[i].name) == 0)
            return commands[i].run(options, path);
    }
    return status;
}

int main(int argc, char *argv[])
{
    struct rmp_options options = {.command = NULL};
    char reason[256];
    int status = EXIT_DONE;

    signal(SIGPIPE, SIG_IGN);
    if (!descriptor_fill_standard())
        return print_reason(EXIT_OS_ERROR, "cannot open /dev/null or /");
    if (!rmp_options_parse(&options, argc, argv, reason, sizeof reason)) {
        terminal_line(stderr, "stdio_bus_rmp: %s; see stdio_bus_rmp --help", reason);
        return EXIT_USAGE_ERROR;
    }
    if (options.command != NULL)
        status = run(&options);
    else if (options.version)
        terminal_line(stdout, "stdio_bus_rmp %s", PACKAGE_VERSION);
    else
        terminal_lines(stdout, TERMINAL_TEXT, slice_of_text(rmp_options_help()));
    if (fflush(stdout) == EOF || ferror(stdout))
        return print_reason(EXIT_OS_ERROR, "cannot write to stdout");
    return status;
}
