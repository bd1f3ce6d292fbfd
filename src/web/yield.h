/* Idle sessions of HTTP clients give way: hosts leave without DELETE. */
#ifndef STDIO_BUS_WEB_YIELD_H
#define STDIO_BUS_WEB_YIELD_H

#include "web/hub.h"

/* Ends sessions that no connection serves and that have no request in flight, the longest idle
 * first, where more clients wait for a process of an exclusive pool than processes are free. A
 * session gives way to a client of its own origin, and to one of an origin that has fewer
 * processes. One that was used a moment ago is left alone, and looked at again later. */
void yield_processes(struct http_hub *hub);

/* Where the origin may have no connection more, ends the one of its sessions that has been idle
 * longest. */
void yield_connection(struct http_hub *hub, const struct peer_origin *origin);

#endif
