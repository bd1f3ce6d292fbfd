/* One end of the bus, client or worker: its connection and its place in the router. */
#ifndef STDIO_BUS_TRANSPORT_ENDPOINT_H
#define STDIO_BUS_TRANSPORT_ENDPOINT_H

#include "event/timers.h"
#include "router/peer.h"
#include "transport/connection.h"

struct endpoint {
    struct connection connection;
    struct peer peer;
    struct timer hold; /* started while it is held for an id */
    bool is_worker;
    bool blocks_itself; /* held until its own queue drains: we owe it an error reply */
};

static inline struct endpoint *endpoint_of_peer(struct peer *peer)
{
    return list_entry(peer, struct endpoint, peer);
}

static inline struct endpoint *endpoint_of_connection(struct connection *connection)
{
    return list_entry(connection, struct endpoint, connection);
}

#endif
