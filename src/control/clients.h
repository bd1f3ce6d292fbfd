/* The clients of the control socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_CONTROL_CLIENTS_H
#define STDIO_BUS_CONTROL_CLIENTS_H

#include "base/archive.h"
#include "control/control.h"

/* listener_fn; user_data is a struct bus_listener. */
void control_clients_accepted(void *user_data, int fd, const struct origin *origin);

/* Saves the control with its clients, or loads them. */
void control_clients_archive(struct archive *archive, struct control *control);

/* Calls fn for the connection of each. */
void control_clients_connections(struct control *control,
                                 void (*fn)(struct connection *connection));

/* Closes every client once it has read its replies; at once if `now`. */
void control_clients_close(struct control *control, bool now);

#endif
