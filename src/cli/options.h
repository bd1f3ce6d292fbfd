/* What the command line of stdio_bus(1) asks for. */
#ifndef STDIO_BUS_CLI_OPTIONS_H
#define STDIO_BUS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/exit_status.h"
#include "base/log.h"
#include "bus/options.h"
#include "config/command_line.h"
#include "framing/framing.h"

#define UNIX_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

enum options_action {
    ACTION_RUN,
    ACTION_CHECK_CONFIG,
    ACTION_SHARE,   /* the command of the line, in a daemon that all clients of this user share */
    ACTION_LIST,    /* such daemons */
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
    bool rmp;                            /* the daemon has an RMP socket too, */
    const char *rmp_path;                /* here: points into argv; NULL: as configured */
    const char *pool;                    /* of --connect: points into argv, or NULL */
    unsigned wait_sec;                   /* of --connect: for a daemon that is not there yet */
    char tcp_host[256];                  /* "" stands for loopback; brackets of [v6] removed */
    uint16_t tcp_port;                   /* 0: the system picks one */
    const struct framing *framing;       /* of the clients; NULL: as configured */
    const char *token_file;              /* points into argv, or NULL: as configured */
    const char *log_file; /* points into argv, or NULL: stderr, or as the environment says */
    enum log_level log_level;
    bool has_log_level;
    const char *share_name;      /* points into argv; NULL: none */
    const char *share_variables; /* the same: those that count; NULL: as usual */
    bool any_cwd;                /* the working directory does not count */
    long idle_exit_sec;          /* 0: the daemon stays without clients, too; -1: as usual */
};

#endif
