/* Fair shares of the processes of exclusive pools, whose number is fixed (router/shares.h). */
#ifndef STDIO_BUS_SUPERVISOR_PREEMPT_H
#define STDIO_BUS_SUPERVISOR_PREEMPT_H

#include "bus/state.h"

/* Lets the services end idle clients for those that wait. Then closes clients of an origin that
 * holds most of a pool's processes, where clients of another origin have a claim to theirs. */
void preempt_processes(struct stdio_bus *bus);

#endif
