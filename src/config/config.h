/* The configuration (spec 9). */
#ifndef STDIO_BUS_CONFIG_CONFIG_H
#define STDIO_BUS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "config/command_line.h"
#include "config/diagnostics.h"
#include "config/listen.h"
#include "config/nats_keys.h"
#include "config/pool_config.h"
#include "config/rmp_keys.h"
#include "config/sources.h"
#include "framing/framing.h"

struct config {
    struct pool_config *pools;
    size_t pool_count; /* 0: only where there is "rmp" */
    bool has_protocol; /* some pool has one */
    struct limits limits;
    struct listen_config listen;   /* of the listeners of the command line, and the framing of a
                                    * client on stdin; without an address */
    struct listen_config *listens; /* each with its address */
    size_t listen_count;
    struct listen_config metrics; /* the listener of "metrics" */
    bool has_metrics;
    const char *socket_mode; /* "unix" or "tcp"; NULL: the command line alone says */
    struct rmp_config rmp;
    struct nats_config nats;
    char *control;      /* the path of the control socket, with variables; NULL: none */
    bool strict;        /* the daemon makes up no messages */
    bool splits_arrays; /* a line of a client may be an array: every pool has a protocol */
};

/* Reads and checks the file. Returns STDIO_BUS_OK, or STDIO_BUS_EINVAL after at least one error was
 * reported; then *config holds nothing. Warnings (unknown keys) are no failure. A syntax error is
 * reported alone; of the rules (spec 9.3) every broken one. */
int config_read_file(struct config *config, const char *path, diagnostics_fn *report,
                     void *user_data);

/* The same; keeps the texts of all files, or reads those that replace the files. */
int config_read_sources(struct config *config, const char *path, struct sources *sources,
                        diagnostics_fn *report, void *user_data);

/* The same from an open descriptor (read to its end, not closed), named `name` in messages. */
int config_read_fd(struct config *config, int fd, const char *name, diagnostics_fn *report,
                   void *user_data);

/* The same from memory. */
int config_read_text(struct config *config, const char *text, size_t len, const char *name,
                     diagnostics_fn *report, void *user_data);

/* The same without a file: a pool of the command line's command, under the same rules and with the
 * same warnings, which name the key alone: "command line: command: cannot run ...". */
int config_of_command(struct config *config, const struct command_line *line,
                      diagnostics_fn *report, void *user_data);

extern const struct key_table config_keys;

/* The same without pools: for the RMP topic bus alone. */
void config_of_nothing(struct config *config);

/* A zeroed config is fine. */
void config_free(struct config *config);

#endif
