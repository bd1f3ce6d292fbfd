/* How a bus is set up, and why it stops. */
#ifndef STDIO_BUS_BUS_OPTIONS_H
#define STDIO_BUS_BUS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "config/config.h"
#include "config/listen.h"
#include "framing/framing.h"
#include "process/process.h"

#define SERVICES_MAX 16

struct figures_source;
struct notify;
struct service;
struct setup;
struct stdio_bus;

/* Reads the first line of each connection to the Unix socket, before it is a client. */
struct greeter {
    /* Returns the reply, a line that lives until the next call. Without *admits the connection is
     * closed after it. */
    struct slice (*greet)(void *user_data, struct stdio_bus *bus, struct slice line, bool *admits);
    void *user_data;
    size_t line_max;  /* bytes, the newline included */
    const char *pool; /* that greet has chosen for a client that it admits; NULL: the usual one */
};

struct bus_options {
    const struct config *config; /* borrowed until bus_destroy, or part of the setup */
    struct setup *setup;         /* the bus holds it as long as it needs it; NULL: none */
    /* Reads the configuration again, for a reload. NULL with the *problem in words, which lives
     * until the next call, after all of them were logged. NULL: there is no reload. */
    struct setup *(*read_again)(void *user_data, const char **problem);
    void *read_again_data;
    struct log *log;                     /* borrowed until bus_destroy */
    bool stdio;                          /* stdin and stdout are a client (spec 4.1.1) */
    const struct listen_config *listens; /* also borrowed, like all that it names */
    size_t listen_count;
    const char *sockets[SERVICES_MAX]; /* the path of the socket that each service brings, in their
                                        * order; NULL: none; borrowed until bus_destroy */
    const struct framing *framing;     /* of the client on stdin; NULL: NDJSON */
    const struct dialer *dialer;   /* of every worker, NULL: programs; borrowed until bus_destroy */
    const struct greeter *greeter; /* of the Unix clients, NULL: none; borrowed until bus_destroy */
    struct notify *notify;         /* the service manager, NULL: none; also borrowed */
    const struct figures_source *figures; /* what the page shows (page/figures.h); NULL: this bus;
                                           * also borrowed */
    char *const
        *argv; /* of the program, which may be executed again (upgrade/upgrade.h); NULL: it may not;
                        * also borrowed */
    const char *told_log; /* the path of the log, for clients that are all of this user: they
                             * are told the stderr of a server that cannot start, too; NULL: they
                             * are not */
    const struct service *const *services; /* that the bus has, up to a NULL (bus/service.h); NULL:
                                            * none; also borrowed */
    void *host;    /* the state of a program that the bus is part of, for its service; else NULL */
    bool is_guest; /* of such a program, whose limits and threads are its own; without a worker it
                    * continues. Not with handle_signals */
    unsigned idle_exit_sec; /* stops so long after its last client; 0: never */
    bool ends_on_hangup;    /* SIGHUP stops it, as its terminal is gone */
    bool handle_signals;    /* SIGTERM and SIGINT stop the bus, SIGHUP reloads the configuration,
                            * SIGUSR1 reopens the log, SIGCHLD is waited for; for one bus per
                            * process. Without it and is_guest the exit of a worker is seen at the
                            * end of its output. */
};

enum bus_outcome {
    BUS_RUNNING,          /* the bus has not stopped */
    BUS_DONE,             /* it was asked to stop, or the client on stdin has finished */
    BUS_CLIENT_MALFORMED, /* the client on stdin sent something malformed */
    BUS_NO_WORKER_LEFT,   /* every worker has failed for good */
    BUS_BAD_COMMAND,      /* at startup, a worker could not be executed */
    BUS_SYSTEM_ERROR      /* the system refused something that the bus cannot do without */
};

/* The exit status of a daemon whose bus has stopped with this outcome. */
static inline int bus_exit_status(enum bus_outcome outcome)
{
    static const int statuses[] = {
        [BUS_DONE] = EXIT_DONE,
        [BUS_CLIENT_MALFORMED] = EXIT_DATA_ERROR,
        [BUS_NO_WORKER_LEFT] = EXIT_NO_WORKER_LEFT,
        [BUS_BAD_COMMAND] = EXIT_CONFIG_ERROR,
        [BUS_SYSTEM_ERROR] = EXIT_OS_ERROR,
    };

    return statuses[outcome];
}

#endif
