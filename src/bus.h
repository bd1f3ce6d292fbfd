/* The bus: owns everything, wires the modules, and runs. No state outside of struct stdio_bus, so
 * two of them can live in one process. */
#ifndef STDIO_BUS_BUS_H
#define STDIO_BUS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "config/config.h"
#include "format/framing.h"

struct stdio_bus;

enum bus_listen_mode { BUS_LISTEN_STDIO, BUS_LISTEN_UNIX, BUS_LISTEN_TCP }; /* spec 4.1.1 */

struct bus_options {
    const struct config *config; /* borrowed until bus_destroy */
    struct log *log;             /* borrowed until bus_destroy */
    enum bus_listen_mode mode;
    const char *unix_path; /* borrowed until bus_destroy */
    const char *tcp_host;  /* "": loopback */
    uint16_t tcp_port;     /* 0: the system picks one */
    const struct framing *framing; /* of the clients; NULL: NDJSON */
    bool handle_signals;   /* SIGTERM, SIGINT and SIGHUP stop it, SIGUSR1 reopens the log;
                            * for one bus per process */
};

/* Why the bus has stopped. */
enum bus_outcome {
    BUS_RUNNING,          /* it has not */
    BUS_DONE,             /* it was asked to, or the client on stdin has finished */
    BUS_CLIENT_MALFORMED, /* the client on stdin sent something malformed */
    BUS_NO_WORKER_LEFT,   /* every worker has failed for good */
    BUS_BAD_COMMAND,      /* at startup, a worker could not be executed */
    BUS_SYSTEM_ERROR      /* the system refused something that we cannot do without */
};

/* A bus that has started nothing yet. NULL when memory or descriptors are out, after saying so. */
struct stdio_bus *bus_create(const struct bus_options *options);

/* Opens the listener, starts the workers; clients are served when all were executed once.
 * STDIO_BUS_ERR after the reason was logged; then only bus_destroy is left to call. */
int bus_start(struct stdio_bus *bus);

/* One round of the event loop, waiting at most timeout_ms (-1: until something happens). */
enum bus_outcome bus_step(struct stdio_bus *bus, int timeout_ms);

/* Begins the graceful shutdown (spec 10.2); called again, it ends the wait for the workers. Go on
 * stepping until the outcome is not BUS_RUNNING. */
void bus_stop(struct stdio_bus *bus);

/* Frees everything; kills what still runs. NULL is fine. */
void bus_destroy(struct stdio_bus *bus);

#endif
