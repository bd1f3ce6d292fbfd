/* Sessions (MCP, Streamable HTTP, handshake era): each is a client of the router without a
 * connection of its own. The POSTs of its client are its messages; what it is sent goes to its
 * streams (web/stream.h). */
#ifndef STDIO_BUS_WEB_SESSION_H
#define STDIO_BUS_WEB_SESSION_H

#include "web/stream.h"

/* The exchange is one of the session's from now on: a POST, or what a GET asks for. */
void http_session_join(struct http_session *session, struct http_exchange *http);

/* Offers the message of a POST to the router. A request is answered when its answer comes. */
void http_session_post(struct http_exchange *http, const struct message *message);

/* Serves a GET: the general stream or, data of last_event not NULL, the stream that it names. */
void http_session_get(struct http_exchange *http, struct slice last_event);

/* Serves the requests of a session. */
extern const struct http_kind http_session_kind;

/* Prepares a zeroed session: its operations, its lists. */
void http_session_init(struct http_session *session);

/* A session that no connection serves becomes one of hub->resting, by its used_ms. */
void http_session_rest(struct http_session *session);

/* Offers what waits, unless the router holds the session. */
void http_session_run(struct http_session *session);

#endif
