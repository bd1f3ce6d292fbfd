/* The command line of stdio_bus(1). */
#ifndef STDIO_BUS_CLI_OPTIONS_H
#define STDIO_BUS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"
#include "bus/options.h"
#include "config/command_line.h"
#include "framing/framing.h"

#define UNIX_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

enum options_action {
    ACTION_RUN,
    ACTION_CHECK_CONFIG,
    ACTION_CONNECT, /* to the socket named by mode (unix or tcp), path, host and port */
    ACTION_IMPORT,
    ACTION_HELP,
    ACTION_VERSION
};

struct options {
    enum options_action action;
    bool strict; /* a warning about the configuration is an error */
    enum bus_listen_mode mode;
    bool has_mode;            /* an option said so */
    const char *import_path;  /* of --import: points into argv, or NULL */
    const char *config_path;  /* points into argv, or NULL */
    int config_fd;            /* -1: none */
    struct command_line line; /* points into argv; its words are NULL without a command */
    const char *unix_path;    /* points into argv, or to socket_path */
    char socket_path[UNIX_PATH_MAX + 1]; /* of --connect, with its variables replaced */
    const char *pool;                    /* of --connect: points into argv, or NULL */
    unsigned wait_sec;                   /* of --connect: for a daemon that is not there yet */
    char tcp_host[256];                  /* "" stands for loopback; brackets of [v6] removed */
    uint16_t tcp_port;                   /* 0: the system picks one */
    const struct framing *framing;       /* of the clients; NULL: as configured */
    const char *token_file;              /* points into argv, or NULL: as configured */
    const char *log_file; /* points into argv, or NULL: stderr, or as the environment says */
    enum log_level log_level;
    bool has_log_level;
};

/* Exit statuses, those of sysexits.h where it has one; connect.h has more. */
enum {
    EXIT_DONE = 0,
    EXIT_USAGE_ERROR = 64,
    EXIT_DATA_ERROR = 65, /* stdio mode: the client sent malformed input */
    EXIT_NO_WORKER_LEFT = 69,
    EXIT_OS_ERROR = 71,
    EXIT_CONFIG_ERROR = 78
};

/* Reads the command line: "--name value" and "--name=value", no abbreviations, up to "--" and a
 * command. argv ends with a NULL. An option given twice, or two modes, is an error.
 * STDIO_BUS_EINVAL with a line of explanation in `problem`. */
int options_parse(struct options *options, int argc, char *const argv[], char *problem,
                  size_t problem_size);

#endif
