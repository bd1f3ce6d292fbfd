/* The clients of the RMP socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_TOPICS_CLIENTS_H
#define STDIO_BUS_TOPICS_CLIENTS_H

#include "topics/client.h"

/* listener_fn; user_data is a struct bus_listener. */
void rmp_clients_accepted(void *user_data, int fd, const struct origin *origin);

/* timer_fn of the hub: the broker's deadline, or clients that wait for memory. */
void rmp_clients_due(void *user_data);

/* The bus stops: nothing is read from clients any more, and the bridge is told. */
void rmp_clients_stop_input(struct rmp_hub *hub);

/* Closes every client once it has what waits for it; at once if `now`. */
void rmp_clients_close(struct rmp_hub *hub, bool now);

/* Disconnects each client that has taken nothing since the last call while bytes wait for it. */
void rmp_clients_remove_idle(struct rmp_hub *hub, const char *reason);

/* Calls fn for the connection of each client. */
void rmp_clients_connections(struct rmp_hub *hub, void (*fn)(struct connection *connection));

/* Saves the clients, or loads them where there are none. */
struct rmp_archive;
void rmp_clients_archive(struct rmp_archive *topics, struct rmp_hub *hub);

#endif
