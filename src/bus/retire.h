/* Processes that serve one client each, and their clients: one ends with the other. */
#ifndef STDIO_BUS_BUS_RETIRE_H
#define STDIO_BUS_BUS_RETIRE_H

#include "bus/state.h"

/* Ends the processes that the client has to itself. */
void retire_processes_of(struct peer *client);

/* Closes the client, whose own processes end; it is bound to no worker any more. */
void retire_client(struct peer *client);

#endif
