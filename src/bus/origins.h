/* The users and addresses that have clients, for their fair shares (router/shares.h). An origin
 * lives as long as a connection, or a process that was a client's, refers to it. */
#ifndef STDIO_BUS_BUS_ORIGINS_H
#define STDIO_BUS_BUS_ORIGINS_H

#include "base/archive.h"
#include "bus/state.h"
#include "http/event_log.h"
#include "transport/origin.h"

/* The origin, if it lives, or NULL. */
struct peer_origin *origins_find(const struct stdio_bus *bus, const struct origin *origin);

/* The same, created if need be, with a reference for the caller. NULL if out of memory. */
struct peer_origin *origins_get(struct stdio_bus *bus, const struct origin *origin);

/* What its connections share. */
struct transport_origin *origins_transport(struct peer_origin *origin);

/* The events that its sessions of HTTP keep. */
struct event_owner *origins_events(struct peer_origin *origin);

/* An origin in an archive; and a reference to one that lives, or NULL, which is held where it is
 * loaded. */
void origin_archive(struct archive *archive, struct origin *origin);
void origins_archive(struct archive *archive, struct stdio_bus *bus, struct peer_origin **origin);

/* One reference more, or less; the last one frees it. Accepts NULL. */
void origins_hold(struct peer_origin *origin);
void origins_release(struct peer_origin *origin);

#endif
