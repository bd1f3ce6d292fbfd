/* The pools in a reload (reload/reload.h). */
#ifndef STDIO_BUS_RELOAD_POOLS_H
#define STDIO_BUS_RELOAD_POOLS_H

#include "config/setup.h"
#include "reload/renewals.h"

/* Makes the pools and workers that the setup needs beside those that there are. STDIO_BUS_ERR if
 * out of memory. */
int reload_pools_prepare(struct stdio_bus *bus, struct setup *setup);

/* Removes them again. */
void reload_pools_undo(struct stdio_bus *bus);

/* The pools are those of the setup from now on. The others leave, and so do workers that are too
 * many. */
void reload_pools_commit(struct renewals *renewals, struct setup *setup);

#endif
