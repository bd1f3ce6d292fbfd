/* What the daemon itself sends to processes whose clients share a handshake
 * (router/errand.h). */
#ifndef STDIO_BUS_BUS_ERRANDS_H
#define STDIO_BUS_BUS_ERRANDS_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

void errands_run_all(struct stdio_bus *bus);

/* Tells a client that lists have changed: bits, by enum handshake_list. Nothing in strict mode. */
void errands_announce(struct endpoint *client, unsigned lists);

/* To be called after anything that may note one, before the next message. */
static inline void errands_run(struct stdio_bus *bus)
{
    if (bus->router.handshakes.noted)
        errands_run_all(bus);
}

#endif
