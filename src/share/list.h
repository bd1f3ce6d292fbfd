/* stdio_bus --list: what this user shares. */
#ifndef STDIO_BUS_SHARE_LIST_H
#define STDIO_BUS_SHARE_LIST_H

#include <stdbool.h>

#include "share/shares.h"
#include "json/text.h"

/* Prints a line for each daemon, and what differs between those of the same command; or the same as
 * one document of JSON. Returns the exit status. */
int list_run(bool json);

/* --- stdio_bus --list --json. --- */

#endif
