#include "build_config.h"

#include "supervisor/preempt.h"

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/service.h"
#include "process/pool.h"
#include "router/shares.h"
#include "supervisor/pools.h"

/* The origin's last client that has a process of the pool. */
static struct client *newest_client(const struct stdio_bus *bus, const struct peer_origin *origin,
                                    const struct group *pool)
{
    struct list_node *node;

    for (node = bus->clients.list.head.prev; node != &bus->clients.list.head; node = node->prev) {
        struct client *client = client_at(node);
        const struct peer *peer = &client->stream.endpoint.peer;

        if (peer->origin == origin && shares_has_process(pool, peer))
            return client;
    }
    return NULL;
}

/* The same, of the clients of services before others. */
static struct endpoint *newest_endpoint(const struct stdio_bus *bus,
                                        const struct peer_origin *origin, const struct group *pool)
{
    struct client *client;

    each_service(bus, at, newest) {
        struct endpoint *newest = at.service->newest(at.state, origin, pool);

        if (newest != NULL)
            return newest;
    }
    client = newest_client(bus, origin, pool);
    return client != NULL ? &client->stream.endpoint : NULL;
}

/* Its processes are for clients that have less than their share. */
static void preempt(struct stdio_bus *bus, struct endpoint *endpoint)
{
    static const struct message_id no_id;
    static const char reason[] =
        "another user or address is due its share of the workers: try again later";

    log_warn(bus->log, endpoint->context, "closing it: %s", reason);
    deliver_error(endpoint, no_id, JSONRPC_SERVER_ERROR, reason);
    retire_client(&endpoint->peer);
}

/* Links to other machines for clients that wait: those that are being opened, too. */
static size_t count_links_coming(const struct pool *pool)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&pool->workers, node, following)
        count += pools_passage_comes(list_entry(node, struct worker, link));
    return count;
}

void preempt_processes(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    each_service(bus, at, yield)
        at.service->yield(at.state);
    list_each(&bus->pools, node, following) {
        const struct pool *supply = list_entry(node, struct pool, link);
        const struct group *pool = &supply->group;
        const struct peer_origin *origin;
        struct endpoint *endpoint;

        while ((origin = shares_holding_most(&bus->router, pool, count_links_coming(supply))) !=
                   NULL &&
               (endpoint = newest_endpoint(bus, origin, pool)) != NULL)
            preempt(bus, endpoint);
    }
}
