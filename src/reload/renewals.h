/* What a reload of the configuration has left to do: workers end when they are free, so that no
 * request is lost. Then they are started again, or leave with their pool.
 *
 * A worker is free when no request of either side is in flight, and no client would miss what the
 * process knows: it has no session, no task and no client, or the clients' handshake can be
 * repeated to the next process. */
#ifndef STDIO_BUS_RELOAD_RENEWALS_H
#define STDIO_BUS_RELOAD_RENEWALS_H

#include "bus/state.h"
#include "process/pool.h"

struct renewals {
    struct stdio_bus *bus;
    struct list workers; /* struct worker, that wait to be renewed */
    struct timer timer;  /* started while one of them waits for another */
    bool departs;        /* a pool or a listener is no part of the configuration any more */
    bool attends;        /* bus->attentive counts it */
};

void renewals_init(struct renewals *renewals, struct stdio_bus *bus);

/* The worker is renewed in place, or leaves. */
void renewals_add(struct renewals *renewals, struct worker *worker, enum worker_renewal renewal);

/* A pool or a listener departs. */
void renewals_depart(struct renewals *renewals);

/* The bus has to come back in each round, until renewals_run finds nothing left to do. */
void renewals_attend(struct renewals *renewals);

/* Once in such a round. `more`: there is something else to come back for. */
void renewals_run(struct renewals *renewals, bool more);

/* Whether there is anything left to do. */
bool renewals_any(const struct renewals *renewals);

/* The event loop is about to go. */
void renewals_stop(struct renewals *renewals);

#endif
