#include "build_config.h"

#include "web/readiness.h"

#include <stdio.h>

#include "base/log.h"
#include "process/pool.h"

/* A stopped worker whose time does not run is started when a client needs it. */
static bool is_ready(const struct worker *worker)
{
    return worker->stream.endpoint.peer.availability == PEER_READY ||
           (worker->state == WORKER_STOPPED && !timer_started(&worker->deadline));
}

static bool has_worker(const struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        if (is_ready(list_entry(node, struct worker, link)))
            return true;
    }
    return false;
}

bool readiness_is_ready(const struct stdio_bus *bus, char *text, size_t size)
{
    struct list_node *node, *following;
    char shown[64];

    if (bus->phase != BUS_PHASE_SERVING) {
        snprintf(text, size, bus->phase == BUS_PHASE_STARTING ? "starting" : "shutting down");
        return false;
    }
    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate != POOL_SERVES || has_worker(pool))
            continue;
        snprintf(text, size, "pool %s: no worker takes messages",
                 log_escape(shown, sizeof shown, pool->group.id));
        return false;
    }
    snprintf(text, size, "ready");
    return true;
}
