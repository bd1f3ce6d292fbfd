/* The pools of the bus: workers come and go with them. */
#ifndef STDIO_BUS_SUPERVISOR_POOLS_H
#define STDIO_BUS_SUPERVISOR_POOLS_H

#include "bus/state.h"
#include "process/pool.h"

/* Creates the pools of the configuration and their workers. STDIO_BUS_ERR if out of memory. */
int pools_create(struct stdio_bus *bus);

/* After the services were created: remote pools are dialled by one of these. STDIO_BUS_ERR with
 * errno set. */
int pools_find_dialers(struct stdio_bus *bus);

/* Starts the workers that do not wait for a client. STDIO_BUS_ERR after the reason was logged. */
int pools_start(struct stdio_bus *bus);

/* Adds a pool with its workers, all stopped; the config is part of `setup`. NULL if out of
 * memory. */
struct pool *pools_add(struct stdio_bus *bus, const struct pool_config *config,
                       struct setup *setup);

/* Adds stopped workers to a pool, which get the next numbers. STDIO_BUS_ERR if out of memory: then
 * some may have been added. */
int pools_add_workers(struct stdio_bus *bus, struct pool *pool, size_t count);

/* Adds a stopped worker beside those of the configuration, drained: for sessions that are
 * elsewhere, or, when it is no longer drained, for the next client of an exclusive pool whose other
 * workers are taken. It gets no other message. NULL if out of memory. */
struct worker *pools_add_passage(struct stdio_bus *bus, struct pool *pool);

/* What the passage is dialled by, borrowed. */
void pools_set_dialer(struct worker *worker, const struct dialer *dialer);

/* Whether it is a passage that runs, or is being opened, and has no client yet. */
bool pools_passage_comes(const struct worker *worker);

/* Ends passages without a session, a client or a request, and removes those that have ended.
 * Returns whether any is left. */
bool pools_tidy_passages(struct stdio_bus *bus);

/* Removes a worker whose process is finished; a pool whose workers are. */
void pools_remove_worker(struct stdio_bus *bus, struct worker *worker);
void pools_remove(struct stdio_bus *bus, struct pool *pool);

/* Kills what is left of the workers, and frees everything. */
void pools_destroy(struct stdio_bus *bus);

#endif
