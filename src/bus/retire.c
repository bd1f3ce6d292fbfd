#include "build_config.h"

#include "bus/retire.h"

#include "bus/origins.h"
#include "process/worker.h"
#include "router/affinity.h"
#include "router/shares.h"

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

    retire_processes_of(client);
    affinity_clear_client(client);
    endpoint->ops->close(endpoint);
}
