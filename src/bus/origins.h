/* The users and addresses that have clients, for their fair shares (router/shares.h). */
#ifndef STDIO_BUS_BUS_ORIGINS_H
#define STDIO_BUS_BUS_ORIGINS_H

#include "bus/state.h"
#include "transport/origin.h"

/* The origin of a connected client, or NULL. */
struct peer_origin *origins_find(const struct stdio_bus *bus, const struct origin *origin);

/* The same, created if need be; it lives until origins_release. NULL when memory is out. */
struct peer_origin *origins_get(struct stdio_bus *bus, const struct origin *origin);

/* Frees an origin that has no client any more. NULL is fine. */
void origins_release(struct peer_origin *origin);

#endif
