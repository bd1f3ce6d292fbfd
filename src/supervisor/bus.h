/* The bus: owns everything, wires the modules, and runs. All state hangs off struct stdio_bus, so
 * two of them can live in one process. */
#ifndef STDIO_BUS_SUPERVISOR_BUS_H
#define STDIO_BUS_SUPERVISOR_BUS_H

#include "bus/options.h"

struct stdio_bus;

/* A bus that has started nothing yet. NULL when memory or descriptors are out, which was logged. */
struct stdio_bus *bus_create(const struct bus_options *options);

/* Opens the listener, starts the workers; clients are served when all were executed once.
 * STDIO_BUS_ERR after the reason was logged; then only bus_destroy is left to call. */
int bus_start(struct stdio_bus *bus);

/* In place of bus_start, for a bus whose state was loaded: it continues. STDIO_BUS_ERR after the
 * reason was logged: signals cannot be caught. */
int bus_continue(struct stdio_bus *bus);

/* One round of the event loop, waiting at most timeout_ms (-1: until something happens). */
enum bus_outcome bus_step(struct stdio_bus *bus, int timeout_ms);

/* Whether the next round has something to do that no descriptor and no timer shows. */
bool bus_has_work(const struct stdio_bus *bus);

/* Begins the graceful shutdown (spec 10.2); called again, it ends the wait for the workers. Keep
 * stepping until the outcome is not BUS_RUNNING. */
void bus_stop(struct stdio_bus *bus);

/* Kills running workers and frees everything. Accepts NULL. */
void bus_destroy(struct stdio_bus *bus);

/* Clients and workers together may need more descriptors than the usual soft limit: raises it as
 * far as the system lets it. */
void descriptor_limit_raise(struct stdio_bus *bus);

#endif
