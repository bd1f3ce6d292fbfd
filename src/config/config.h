/* The configuration (spec 9): read, checked, owned. */
#ifndef STDIO_BUS_CONFIG_CONFIG_H
#define STDIO_BUS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "config/sharing.h"
#include "format/framing.h"

struct pool_config {
    char *id;
    char *command; /* as written: a path, or a name to be found in PATH (execvp's rules) */
    char **argv;   /* argv[0] is command; NULL-terminated */
    char **envp;   /* the workers' whole environment; NULL: ours */
    char *cwd;     /* their working directory, relative to ours; NULL: ours */
    unsigned instances;
    const struct framing *framing; /* NULL: NDJSON */
    bool skip_bad_output; /* what a worker writes that is no message is skipped */
    struct sharing sharing;
};

struct config {
    struct pool_config *pools;
    size_t pool_count;
    struct limits limits;
    const struct framing *client_framing; /* NULL: NDJSON */
    bool strict; /* no message is ever made up by the daemon */
};

/* Told of each problem. `text` is one line without newline, complete:
 * "FILE:LINE:COLUMN: pools[1].instances: must be an integer >= 1". */
typedef void config_report_fn(void *user_data, bool is_error, const char *text);

/* Reads and checks the file. Returns STDIO_BUS_OK; or STDIO_BUS_EINVAL after at least one error
 * was reported, and then *config holds nothing. Warnings (unknown keys) do not fail. A syntax
 * error is reported alone; of the rules (spec 9.3) every broken one. */
int config_read_file(struct config *config, const char *path, config_report_fn *report,
                     void *user_data);

/* The same from an open descriptor (read to its end, not closed), named `name` in messages. */
int config_read_fd(struct config *config, int fd, const char *name, config_report_fn *report,
                   void *user_data);

/* The same from memory. */
int config_read_text(struct config *config, const char *text, size_t len, const char *name,
                     config_report_fn *report, void *user_data);

/* Frees what the config holds; a zeroed one is fine. */
void config_free(struct config *config);

#endif
