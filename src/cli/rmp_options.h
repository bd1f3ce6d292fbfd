/* The command line of stdio_bus_rmp(1). */
#ifndef STDIO_BUS_CLI_RMP_OPTIONS_H
#define STDIO_BUS_CLI_RMP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rmp/frame.h"

/* Further exit statuses. */
enum {
    EXIT_RMP_FAILED = 1,    /* the message or the run was refused, or the run has failed */
    EXIT_RMP_NO_DAEMON = 69 /* none is there, or it ended the connection */
};

#define RMP_PARAMS_MAX 64

struct rmp_options {
    const char *command;    /* "pub"; NULL: --help or --version was asked for */
    bool version;           /* without a command: --version */
    const char *socket;     /* points into argv, or NULL */
    const char *config;     /* the same */
    const char *type;       /* pub; has a default */
    uint64_t ttl_ms;        /* pub; has a default */
    struct rmp_id trace_id; /* pub, submit; if has_trace */
    bool has_trace, json, follow, replay;
    bool local;                         /* submit: without a daemon; follows */
    const char *params[RMP_PARAMS_MAX]; /* submit; in argv */
    size_t param_count;
    uint64_t count; /* sub, trace: ends after this number of messages; 0: never */
    char **args;    /* in argv */
    int arg_count;
};

/* Returns false after a line of explanation was written into `reason`. */
bool rmp_options_parse(struct rmp_options *options, int argc, char *argv[], char *reason,
                       size_t reason_size);

/* Static. */
const char *rmp_options_help(void);

#endif
