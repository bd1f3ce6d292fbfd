/* The listeners in a reload (reload/reload.h). */
#ifndef STDIO_BUS_RELOAD_LISTENERS_H
#define STDIO_BUS_RELOAD_LISTENERS_H

#include "config/setup.h"
#include "reload/renewals.h"

/* Opens the listeners of the setup that are not there. STDIO_BUS_ERR after the reason was logged.
 */
int reload_listeners_prepare(struct stdio_bus *bus, struct setup *setup);

/* Closes them again. */
void reload_listeners_undo(struct stdio_bus *bus);

/* The listeners are those of the setup from now on. After the pools. */
void reload_listeners_commit(struct renewals *renewals, struct setup *setup);

#endif
