/* What the command line of stdio_bus(1) asks for. */
#ifndef STDIO_BUS_CLI_OPTIONS_H
#define STDIO_BUS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "bus/options.h"
#include "cli/default_config.h"
#include "config/command_line.h"
#include "config/headers.h"
#include "config/listen_address.h"
#include "config/url.h"
#include "framing/framing.h"
#include "share/watched_files.h"

#define LISTEN_OPTIONS_MAX 16 /* of one command line */

enum options_action {
    ACTION_RUN,
    ACTION_CHECK_CONFIG,
    ACTION_SHARE, /* the command of the line, in a daemon that all clients of this user share */
    ACTION_LIST,  /* such daemons */
    ACTION_STOP,  /* one of them, `cared_for`, with the next three */
    ACTION_RESTART,
    ACTION_FORGET,
    ACTION_LOG,
    ACTION_CONNECT, /* to the address `connect` */
    ACTION_IMPORT,
    ACTION_PING,
    /* What only prints a text: */
    ACTION_SCHEMA,
    ACTION_HELP,
    ACTION_VERSION
};

struct options {
    enum options_action action;
    bool strict;   /* a warning about the configuration is an error */
    bool stdio;    /* stdin and stdout are the client, since no option says otherwise */
    bool has_mode; /* an option said so */
    struct listen_address listens[LISTEN_OPTIONS_MAX];
    size_t listen_count;
    const char *import_path; /* of --import: points into argv, or NULL */
    const char *config_path; /* points into argv, or to default_config, or NULL */
    char default_config[DEFAULT_CONFIG_MAX];
    char *const *argv;             /* of the program */
    int config_fd;                 /* -1: none */
    struct command_line line;      /* points into argv; its words are NULL without a command */
    struct listen_address connect; /* of --connect, with the variables of a path replaced */
    bool has_url;                  /* of --connect: an MCP server over HTTP, at */
    struct remote_url url;
    struct socket_option { /* sockets that services bring: */
        const char *name;  /* of the option, */
        const char *path;  /* points into argv; "": it is to be there, as configured */
    } sockets[SERVICES_MAX];
    size_t socket_count;
    const char *ping_path;         /* of --ping: points into argv, or NULL */
    bool deep;                     /* --ping asks a worker, too */
    bool json;                     /* --list and --check-config print JSON */
    bool page;                     /* --list in a browser */
    const char *pool;              /* of --connect: points into argv, or NULL */
    long wait_sec;                 /* of --connect: for a daemon that is not there yet */
    const struct framing *framing; /* of the clients; NULL: as configured */
    struct remote_headers headers; /* of --connect URL; points into argv and the environment */
    const char *tls_command;       /* of --connect https://; points into argv, or NULL */
    const char *token_file;        /* points into argv, or NULL: as configured */
    bool open;                     /* other machines need no token, where there is none */
    const char *log_file;   /* points into argv, or NULL: stderr, or as the environment says */
    const char *log_system; /* the socket of the system log; points into argv; NULL: not there */
    /* Of --watch; they point into argv. */
    const char *watched[WATCHED_PATHS_MAX];
    size_t watched_count;
    enum log_format log_format;
    bool has_log_format;
    enum log_level log_level;
    bool has_log_level;
    const char *cared_for;       /* points into argv; the server that is stopped, or the like */
    const char *share_name;      /* points into argv; NULL: none */
    const char *share_variables; /* the same: those that count; NULL: as usual */
    bool eager;                  /* --share remembers nothing */
    bool any_cwd;                /* the working directory does not count */
    long idle_exit_sec;          /* 0: the daemon stays without clients, too; -1: as usual */
};

/* What an option says of a socket that a service brings; NULL: it was not given. */
static inline const char *options_socket(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->socket_count; i++) {
        if (strcmp(options->sockets[i].name, name) == 0)
            return options->sockets[i].path;
    }
    return NULL;
}

#endif
