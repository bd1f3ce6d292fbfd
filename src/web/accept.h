/* Connections to an HTTP listener. */
#ifndef STDIO_BUS_WEB_ACCEPT_H
#define STDIO_BUS_WEB_ACCEPT_H

#include "bus/listeners.h"

/* Its connections become clients of HTTP (web/clients.h). A client has a share at once or, where it
 * needs a token, once it has shown one. A refused client gets 403 or, where there are too many,
 * 503. */
extern const struct listener_kind http_listener;

#endif
