#include "build_config.h"

#include "check_bound.h"

#include <inttypes.h>

#include "chaos.h"

void check_bound(struct chaos *chaos, struct incarnation *worker, uint64_t conn)
{
    const struct client *found = client_find(chaos, conn);
    struct client *client = found != NULL ? &chaos->clients[found - chaos->clients] : NULL;
    const struct incarnation *before;

    if (!chaos_binds(chaos))
        return;
    if (chaos_exclusive(chaos) && worker->client != 0 && worker->client != conn)
        violation(chaos, "worker %ld serves client %" PRIu64 ", and has served %" PRIu64,
                  (long)worker->pid, conn, worker->client);
    worker->client = conn;
    if (client == NULL || ledger_pair(&chaos->ledger, worker->origin, conn)->bound)
        return;
    before = fleet_find(&chaos->fleet, client->bound[worker->pool]);
    if (!client->asked[worker->pool])
        violation(chaos, "client %" PRIu64 " is served by worker %ld of pool %u, where it has asked"
                  " nothing", conn, (long)worker->pid, worker->pool);
    if (before != NULL && !fleet_may_be_gone(chaos, before))
        violation(chaos, "client %" PRIu64 " went from worker %ld to %ld", conn, (long)before->pid,
                  (long)worker->pid);
    client->bound[worker->pool] = worker->origin;
    ledger_pair(&chaos->ledger, worker->origin, conn)->bound = true;
}

const struct client *check_lone_client(const struct chaos *chaos,
                                       const struct incarnation *worker)
{
    const struct client *client =
        chaos_exclusive(chaos) ? client_find(chaos, worker->client) : NULL;

    return client_stays(client) ? client : NULL;
}
