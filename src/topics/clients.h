/* The clients of the RMP socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_TOPICS_CLIENTS_H
#define STDIO_BUS_TOPICS_CLIENTS_H

#include "topics/client.h"

/* They belong to a struct rmp_hub; user_data of visitors_archive is a struct rmp_archive. */
extern const struct visitor_kind rmp_clients_kind;

/* timer_fn of the hub: the broker's deadline, or clients that wait for memory. */
void rmp_clients_due(void *user_data);

/* The bus stops: nothing is read from clients any more, and the bridge is told. */
void rmp_clients_stop_input(struct rmp_hub *hub);

/* The bus closes all clients: publications that wait end. */
void rmp_clients_before_close(struct rmp_hub *hub);

#endif
