/* Processes that have exited. */
#ifndef STDIO_BUS_BUS_REAP_H
#define STDIO_BUS_BUS_REAP_H

#include "bus/state.h"

/* Reaps what has exited, after SIGCHLD: workers, and as process 1 also processes that lost their
 * parents. */
void workers_reap(struct stdio_bus *bus);

#endif
