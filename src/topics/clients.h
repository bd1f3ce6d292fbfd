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

/* --- a client that continues after an upgrade in place (topics/hub_archive.h) --- */

/* One without a connection; NULL if out of memory. */
struct rmp_client *rmp_clients_new(struct rmp_hub *hub);

/* What its connection is opened with. */
struct connection_options rmp_clients_options(struct rmp_client *client, int fd);

/* It is one of the hub's clients from now on; a peer of its broker. */
void rmp_clients_enter(struct rmp_client *client);
void rmp_clients_join(struct rmp_client *client);

#endif
