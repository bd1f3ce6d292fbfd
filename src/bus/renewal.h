/* What a reload of the configuration has left to do: workers end when they are free, so that no
 * request is lost. Then they are started anew, or leave with their pool.
 *
 * A worker is free when no request of either side is in flight, and no client would miss what the
 * process knows: it has no session, no task and no client, or the clients' handshake can be
 * repeated to the next process. */
#ifndef STDIO_BUS_BUS_RENEWAL_H
#define STDIO_BUS_BUS_RENEWAL_H

#include "bus/state.h"
#include "process/pool.h"

/* The worker is renewed in place, or leaves. */
void renewal_begin(struct worker *worker, enum worker_renewal renewal);

/* At the end of each round in which a worker waits to be renewed, or a pool or listener departs. */
void renewal_run(struct stdio_bus *bus);

/* timer_fn of bus->renewal: makes a round. */
void renewal_due(void *user_data);

#endif
