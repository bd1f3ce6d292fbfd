/* The workers of all pools (spec 3.3, 5, 7.1). */
#ifndef STDIO_BUS_BUS_WORKERS_H
#define STDIO_BUS_BUS_WORKERS_H

#include "bus/state.h"
#include "process/worker.h"

/* Creates the pools of the configuration and their workers. STDIO_BUS_ERR when memory is out. */
int workers_create(struct stdio_bus *bus);

/* Starts the workers that do not wait for a client. STDIO_BUS_ERR after the reason was logged. */
int workers_start(struct stdio_bus *bus);

/* Lets the running workers take messages, now that all have been started. */
void workers_serve(struct stdio_bus *bus);

/* Asks stateless processes which era their server serves, where that is not known. */
void workers_probe(struct stdio_bus *bus);

/* Starts and ends processes of exclusive pools, after the router's demand may have changed. */
void workers_supply(struct stdio_bus *bus);

/* Calls fn for each worker. */
void workers_each(struct stdio_bus *bus, void (*fn)(struct worker *worker));

/* Whether `is` holds for all of them. */
bool workers_all(const struct stdio_bus *bus, bool (*is)(const struct worker *worker));

void workers_destroy(struct stdio_bus *bus);

#endif
