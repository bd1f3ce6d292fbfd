/* stdio_bus --list: what this user shares. */
#ifndef STDIO_BUS_SHARE_LIST_H
#define STDIO_BUS_SHARE_LIST_H

#include <stdbool.h>

#include "bus/service.h"

/* Prints a line for each daemon, and what differs between those of the same command; or the same as
 * one document of JSON. Returns the exit status. */
int list_run(bool json);

/* The same as a page of a browser, until a signal ends the process. `services`: see page/viewer.h.
 * Returns the exit status. */
int list_page_run(const struct service *const *services);

#endif
