/* The clients of the RMP socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_BUS_RMP_CLIENTS_H
#define STDIO_BUS_BUS_RMP_CLIENTS_H

#include "bus/rmp_hub.h"

/* listener_fn; user_data is a struct bus_listener. */
void rmp_clients_accepted(void *user_data, int fd, const struct origin *origin);

/* timer_fn of the hub: the broker's deadline, or clients that wait for memory. */
void rmp_clients_due(void *user_data);

/* The bus stops: nothing is read from clients any more, and the bridge is told. A hub that is NULL
 * has none, here and below. */
void rmp_clients_stop_input(struct rmp_hub *hub);

/* Closes every client once it has what waits for it; at once if `now`. */
void rmp_clients_close(struct rmp_hub *hub, bool now);

static inline size_t rmp_clients_count(const struct rmp_hub *hub)
{
    return hub != NULL ? hub->client_count : 0;
}

#endif
