/* The request for an upgrade in place (bus/upgrade.h), and what it can meet. */
#ifndef STDIO_BUS_BUS_UPGRADE_REQUEST_H
#define STDIO_BUS_BUS_UPGRADE_REQUEST_H

#include "bus/state.h"

/* Asks for an upgrade, which begins at the end of the round. NULL, or why there is none, which was
 * logged. */
const char *upgrade_request(struct stdio_bus *bus);

#define UPGRADE_REFUSED "not upgraded, going on: "

/* Why the state of the bus cannot be handed over, in words; NULL: it can. */
const char *upgrade_obstacle(const struct stdio_bus *bus);

#endif
