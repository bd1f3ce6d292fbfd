/* A pool: workers that run the same program, and how many of them are kept started (spec 3.3). */
#ifndef STDIO_BUS_PROCESS_POOL_H
#define STDIO_BUS_PROCESS_POOL_H

#include "config/pool_url.h"
#include "config/setup.h"
#include "process/worker.h"
#include "router/fresh.h"
#include "router/remembered.h"
#include "router/router.h"

#define POOL_FAILURE_MAX 1024 /* bytes of the text of a failure */

enum pool_fate {
    POOL_SERVES,
    POOL_NEW,      /* a reload prepares it */
    POOL_REPLACED, /* another one has its name; this one serves the clients that have opened it */
    POOL_REMOVED   /* only its requests in flight are answered yet */
};

/* What workers have carried, and how often their processes were executed and ended unasked. */
struct pool_past {
    struct traffic carried;
    uint64_t starts, restarts;
};

struct pool {
    struct group group;           /* the router's view: id, mode, turns */
    struct remembered remembered; /* of the server; in use if group.remembered is it */
    struct fresh fresh;           /* the same, of its other era; in use if stateless.fresh is it */
    struct group stateless;       /* MCP: its other era, if it has one (router/eras.h) */
    struct list_node link;        /* in a list of its owner's */
    const struct pool_config *config;
    struct list workers; /* struct worker, in the order of their numbers */
    struct setup *setup; /* a reference: the configuration is part of it; NULL: it never changes */
    enum pool_fate fate;
    bool is_held;          /* its owner's (reload/pools.h): a client may refer to it */
    struct pool_past past; /* the same: of workers that are gone */
    char failure_text[POOL_FAILURE_MAX]; /* the same (supervisor/early_exit.h): of group.failure, */
    char *failure_data;                  /* which is freed with the pool */
    bool halted;        /* a user has stopped it (supervisor/halt.h); no client has come since */
    bool seen_protocol; /* a worker speaks one that the configuration does not name */
};

/* A pool without workers, known to the router; the config is borrowed. NULL if out of memory. */
struct pool *pool_create(const struct pool_config *config, struct router *router);

/* Forgets what the server has answered. */
void pool_forget(struct pool *pool);

/* The same, and what those processes say that run now is not remembered: the next ones run another
 * program. */
void pool_change_program(struct pool *pool);

/* Adds a stopped worker with this number; `nofile` (NULL: ours) is the descriptor limit of its
 * processes. NULL if out of memory. */
struct worker *pool_add_worker(struct pool *pool, unsigned number, const struct rlimit *nofile,
                               struct router *router, struct transport *transport,
                               const struct worker_host *host, void *bus);

/* The pool's configuration is this one from now on, which is part of `setup`; it differs from the
 * one before in nothing that CHANGE_SHARING is about. Processes that run continue. */
void pool_adopt(struct pool *pool, const struct pool_config *config, struct setup *setup);

/* The pool of a worker. */
struct pool *pool_of(const struct worker *worker);

/* Whether pool_supply starts and ends its processes. */
bool pool_is_supplied(const struct pool *pool);

/* How many clients of this machine wait for one of its workers, while all of them are taken. */
size_t pool_lacks(const struct pool *pool);

/* Whether its last process ended before it had sent anything, and no later one has. */
bool pool_is_failing(struct pool *pool);

/* Takes out a worker whose process is finished, and frees it. */
void pool_remove_worker(struct worker *worker, struct router *router);

/* Kills what is left of the workers, and frees everything. The router must not be used any more. */
void pool_destroy(struct pool *pool);

/* How many of the pool's first workers are started with the bus: all, an exclusive pool's spare
 * ones, or none of a lazy pool. The others are for clients that come. */
size_t pool_starts(const struct pool *pool);

/* In a pool that is exclusive or has two eras: starts the processes that clients wait for, those of
 * workers that are called while they sleep, and the spare ones, and retires those that no client
 * needs any more. Those that end are hurried where clients wait for them (shares_press). In a pool
 * that is failing one process is started at a time, and only if a client waits for it. */
void pool_supply(struct pool *pool);

#endif
