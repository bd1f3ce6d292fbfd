/* The clients of the RMP socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_BUS_RMP_CLIENTS_H
#define STDIO_BUS_BUS_RMP_CLIENTS_H

#include "transport/listener.h"

/* listener_fn; user_data is a struct bus_listener. */
void rmp_clients_accepted(void *user_data, int fd, const struct origin *origin);

#endif
