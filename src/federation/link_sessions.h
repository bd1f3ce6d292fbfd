/* What a link says of sessions, in line with all that its clients send. At the serving node the
 * owner of a session is a link, which stays when its client has left, and another link may lead to
 * the client that goes on with it. */
#ifndef STDIO_BUS_FEDERATION_LINK_SESSIONS_H
#define STDIO_BUS_FEDERATION_LINK_SESSIONS_H

#include "endpoint/stream.h"
#include "router/placement.h"

/* placement's `left`: tells the serving node, if the session's worker is a link. */
void link_sessions_left(struct placement *placement, const struct session *session);

/* The session, which the serving node has already, is that of another client from now on. What was
 * said of its former one may still be on its way, by another link: it does not end it any more. */
void link_sessions_joined(const struct session *session);

/* For pools in which a session id is that of a process: no other node is asked for it. */
void link_sessions_init(struct placement *placement);

/* Reads what the client of a link sends. */
extern const struct stream_handler link_sessions_handler;

#endif
