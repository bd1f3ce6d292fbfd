/* All sessions of HTTP clients: from initialize to their end (web/session.h). */
#ifndef STDIO_BUS_WEB_SESSIONS_H
#define STDIO_BUS_WEB_SESSIONS_H

#include "web/hub.h"
#include "web/session.h"

/* The session of this id, or NULL. */
struct http_session *http_sessions_find(const struct http_hub *hub, struct slice id);

/* A new session of the exchange's client, its pool and token. NULL with the reason. */
struct http_session *http_sessions_add(const struct http_exchange *http, const char **problem);

/* Ends the session: requests in flight get an error, streams end. The reason is for the log. */
void http_sessions_end(struct http_session *session, const char *reason);

/* Whether a session was begun at the listener. */
bool http_sessions_use(const struct http_hub *hub, const struct bus_listener *listener);

/* Ends the sessions whose token the listener has no more. */
void http_sessions_end_revoked(struct http_hub *hub, const struct bus_listener *listener);

/* The newest session of the origin that is bound to a worker of the pool, or NULL. */
struct endpoint *http_sessions_newest(const struct http_hub *hub, const struct peer_origin *origin,
                                      const struct group *pool);

/* What held sessions were sent is offered once more, to a router that is closing. */
void http_sessions_stop_input(struct http_hub *hub);

/* Ends all sessions. */
void http_sessions_close(struct http_hub *hub);

/* --- idle sessions give way: hosts leave without DELETE --- */

/* Ends sessions that no connection serves and that have no request in flight, the longest idle
 * first, where more clients wait for a process of an exclusive pool than processes are free. A
 * session gives way to a client of its own origin, and to one of an origin that has fewer
 * processes. One that was used a moment ago is left alone, and looked at again later. */
void yield_processes(struct http_hub *hub);

/* Where the origin may have no connection more, ends the one of its sessions that has been idle
 * longest. */
void yield_connection(struct http_hub *hub, const struct peer_origin *origin);

/* --- in an archive --- */

struct router_archive;

/* All sessions with their streams and kept events, before the clients. */
void http_sessions_archive(struct router_archive *state, struct http_hub *hub);

/* The messages that wait for their session to take them. After the clients, which have sent
 * them. */
void http_sessions_archive_held(struct archive *archive, struct http_hub *hub);

/* A reference to a session, by its id: the one that is saved, or the one that was loaded. NULL is
 * one, too. */
struct http_session *http_sessions_archive_one(struct archive *archive, struct http_hub *hub,
                                               struct http_session *session);

#endif
