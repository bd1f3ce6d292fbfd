/* Sessions whose client has left the asking node. At the serving node their owner is the link,
 * which stays: the link says so, in line with all that the client has sent. */
#ifndef STDIO_BUS_FEDERATION_LEFT_SESSIONS_H
#define STDIO_BUS_FEDERATION_LEFT_SESSIONS_H

#include "endpoint/stream.h"
#include "router/placement.h"

/* placement's `left`: tells the serving node, if the session's worker is a link. */
void left_sessions_tell(struct placement *placement, const struct session *session);

/* For pools in which a session id is that of a process: no other node is asked for it. */
void left_sessions_init(struct placement *placement);

/* Reads what the client of a link sends. */
extern const struct stream_handler left_sessions_handler;

#endif
