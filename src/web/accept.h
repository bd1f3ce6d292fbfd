/* Connections to an HTTP listener. */
#ifndef STDIO_BUS_WEB_ACCEPT_H
#define STDIO_BUS_WEB_ACCEPT_H

#include "transport/listener.h"

/* listener_fn; user_data is a struct bus_listener. The connection becomes a client of HTTP
 * (web/clients.h). It has a share at once or, where it needs a token, once it has shown one. A
 * refused one gets 403 or, where there are too many, 503. */
void http_accepted(void *user_data, int fd, const struct origin *origin);

#endif
