/* Clients, sessions of HTTP and listeners that refer to a pool: those that have opened it, by their
 * opening line, a path or the configuration. */
#ifndef STDIO_BUS_RELOAD_POOL_HOLDERS_H
#define STDIO_BUS_RELOAD_POOL_HOLDERS_H

#include "bus/state.h"
#include "process/pool.h"

/* Whether there is one. */
bool pool_holders_any(struct stdio_bus *bus, const struct pool *pool);

/* Another pool has its name. Clients that have a worker or a session of `from` keep that pool; the
 * others get the other one. */
void pool_holders_part(struct stdio_bus *bus, struct pool *from, struct pool *to);

/* Clients of removed pools get the pool that has the name now, where there is one. */
void pool_holders_return(struct stdio_bus *bus);

#endif
