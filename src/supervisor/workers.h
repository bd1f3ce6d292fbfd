/* The workers of all pools (spec 3.3, 5, 7.1). */
#ifndef STDIO_BUS_SUPERVISOR_WORKERS_H
#define STDIO_BUS_SUPERVISOR_WORKERS_H

#include "bus/state.h"
#include "process/worker.h"

/* What reads the output of a process. */
enum workers_handler {
    WORKERS_MESSAGES, /* delivers it */
    WORKERS_NEW,      /* the first answer matters (supervisor/first_answer.h) */
    WORKERS_REPLAY,   /* supervisor/replay.h */
    WORKERS_PROBE,    /* supervisor/probe.h */
    WORKERS_HANDLERS
};

extern const struct stream_handler workers_handlers[WORKERS_HANDLERS];

/* Takes the reports of workers in a pool of this mode. */
const struct worker_host *workers_host_of(const struct pool_mode *mode);

/* The process of the client that has left does not count against its origin any more. */
void workers_release_origin(struct worker *worker);

/* Lets the running workers take messages, now that all have been started. */
void workers_serve(struct stdio_bus *bus);

/* Asks stateless processes which era their server serves, where that is not known. */
void workers_probe(struct stdio_bus *bus);

/* Opens links to other machines for clients that wait in pools that overflow. */
void workers_overflow(struct stdio_bus *bus);

/* Starts and ends processes of exclusive pools, after the router's demand may have changed. */
void workers_supply(struct stdio_bus *bus);

/* By enum worker_state, as reports and metrics have them. */
extern const char *const workers_state_names[WORKER_FAILED + 1];

/* The state of a worker; that of a stopped one may be "asleep" or "not started". */
const char *workers_state(const struct worker *worker);

/* Requests that the peer has to answer. */
size_t workers_answering(const struct peer *peer);

/* The worker after this one, over all pools; after NULL the first. NULL: there are no more. */
struct worker *workers_next(const struct stdio_bus *bus, const struct worker *worker);

/* NULL: no worker has this number. */
struct worker *workers_numbered(const struct stdio_bus *bus, int64_t number);

/* Calls fn for each worker, which may remove it. */
void workers_each(struct stdio_bus *bus, void (*fn)(struct worker *worker));

/* In a router that is closing: the message for which the worker is held is decided again. */
void workers_end_hold(struct worker *worker);

/* Whether `is` holds for all of them. */
bool workers_all(const struct stdio_bus *bus, bool (*is)(const struct worker *worker));

/* Reaps what has exited, after SIGCHLD: workers, and as process 1 also processes that lost their
 * parents. */
void workers_reap(struct stdio_bus *bus);

#endif
