/* The sessions of HTTP clients in the archive of an upgrade in place, with their streams and kept
 * events. */
#ifndef STDIO_BUS_WEB_SESSIONS_ARCHIVE_H
#define STDIO_BUS_WEB_SESSIONS_ARCHIVE_H

#include "router/router_archive.h"
#include "web/session.h"

/* All sessions, before the clients. */
void http_sessions_archive(struct router_archive *state, struct http_hub *hub);

/* The messages that wait for their session to take them. After the clients, which have sent
 * them. */
void http_sessions_archive_held(struct archive *archive, struct http_hub *hub);

/* --- references: the one that is saved, or the one that was loaded --- */

/* A session, by its id; NULL is one, too. */
struct http_session *http_sessions_archive_one(struct archive *archive, struct http_hub *hub,
                                               struct http_session *session);

/* One of its streams, by its number. NULL with a problem: there is none. */
struct http_stream *http_sessions_archive_stream(struct archive *archive,
                                                 struct http_session *session,
                                                 const struct http_stream *saved);

#endif
