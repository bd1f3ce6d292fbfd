/* The sessions of HTTP clients in the archive of an upgrade in place, with their streams and kept
 * events. */
#ifndef STDIO_BUS_BUS_UPGRADE_SESSIONS_H
#define STDIO_BUS_BUS_UPGRADE_SESSIONS_H

#include "bus/http_session.h"
#include "router/router_archive.h"

/* All sessions, before the clients. */
void upgrade_sessions(struct router_archive *state, struct stdio_bus *bus);

/* The messages that wait for their session to take them. After the clients, which have sent
 * them. */
void upgrade_sessions_held(struct archive *archive, struct stdio_bus *bus);

/* --- references: the one that is saved, or the one that was loaded --- */

/* A session, by its id; NULL is one, too. */
struct http_session *upgrade_session(struct archive *archive, struct http_hub *hub,
                                     struct http_session *session);

/* One of its streams, by its number. NULL with a problem: there is none. */
struct http_stream *upgrade_stream(struct archive *archive, struct http_session *session,
                                   const struct http_stream *saved);

#endif
