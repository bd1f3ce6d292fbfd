/* stdio_bus --share: a server that all clients of this user share, started by the first of them. */
#ifndef STDIO_BUS_SHARE_SHARE_H
#define STDIO_BUS_SHARE_SHARE_H

#include "base/log.h"
#include "config/command_line.h"
#include "framing/framing.h"

#define SHARE_IDLE_EXIT_SEC 300

struct share_options {
    struct command_line line;
    const char *name;              /* NULL: the daemon is known by the server's identity */
    const char *variables;         /* the names of those that count; NULL: all that a server has */
    bool eager;                    /* nothing is remembered */
    bool any_directory;            /* the server starts in the home directory */
    unsigned idle_exit_sec;        /* of a daemon that is started; 0: never */
    const struct framing *framing; /* of the client; NULL: NDJSON */
    enum log_level log_level;      /* of a daemon that is started */
    enum log_level stderr_level;   /* of this process */
    /* Paths whose changes restart the server. */
    const char *const *watched;
    size_t watched_count;
};

/* Joins the daemon, and serves stdin and stdout until their client has finished. Returns the exit
 * status, after the reason was written to stderr. */
int share_command(const struct share_options *options);

#endif
