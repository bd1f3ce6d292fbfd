#include "build_config.h"

#include "bus/depart.h"

#include "bus/cancel.h"
#include "bus/deliver.h"
#include "bus/errands.h"
#include "bus/origins.h"
#include "process/worker.h"
#include "router/affinity.h"
#include "router/departure.h"
#include "router/shares.h"
#include "router/waiting.h"

void depart_unanswered(void *user_data, const struct request *request)
{
    (void)user_data;
    deliver_error(endpoint_of_peer(request->asker), request->asker_id, JSONRPC_SERVER_ERROR,
                  "client disconnected before answering");
}

void depart_client(struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;
    struct peer *peer = &endpoint->peer;
    bool was_admitted = peer->admitted;

    cancel_requests_of(bus, peer);
    retire_processes_of(peer);
    bus->router.demand = true;
    bus_read_clock(bus);
    departure_client(&bus->router, peer, depart_unanswered, bus);
    errands_run(bus);
    if (was_admitted && bus->router.client_count == 0)
        bus_start_idle(bus);
    stdio_bus_event_loop_stop_timer(bus->loop, &endpoint->hold_timer);
}

/* --- retire --- */

/* The process counts against the origin of its client until it has ended. Its crashes were that
 * client's: the next one does not wait for them. */
static void retire(struct worker *worker, struct peer_origin *origin)
{
    worker_handle(worker, WORKER_RETIRE);
    restart_forget(&worker->restart);
    if (worker_finished(worker))
        return;
    origins_hold(origin);
    shares_ending(&worker->stream.endpoint.peer, origin);
}

void retire_processes_of(struct peer *client)
{
    struct list_node *node, *following;

    list_each(&client->bindings, node, following) {
        struct peer *worker = list_entry(node, struct binding, in_client)->worker;

        if (worker->pool->mode.clients == CLIENTS_EXCLUSIVE || worker->alone)
            retire(list_entry(endpoint_of_peer(worker), struct worker, stream.endpoint),
                   client->origin);
    }
}

void retire_client(struct peer *client)
{
    struct endpoint *endpoint = endpoint_of_peer(client);
    struct stdio_bus *bus = endpoint->bus;

    retire_processes_of(client);
    waiting_give_up_subscriptions(&bus->router, client, NULL);
    affinity_clear_client(client);
    endpoint->ops->close(endpoint);
}
