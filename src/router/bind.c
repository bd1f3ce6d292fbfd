#include "build_config.h"

#include "router/bind.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/eras.h"
#include "router/shares.h"

/* Among the workers that take messages, the one with the fewest clients, and none for an exclusive
 * pool. NULL: *may_come says how many may come before a client leaves. */
static struct peer *find_unbound(const struct group *pool, size_t *may_come, bool *any_left)
{
    bool exclusive = pool->mode.clients == CLIENTS_EXCLUSIVE;
    size_t fewest = SIZE_MAX, count, i;
    struct peer *found = NULL;

    *may_come = 0;
    *any_left = false;
    for (i = 0; i < pool->count; i++) {
        struct peer *worker = pool->workers[i];

        if (worker->availability == PEER_FAILED)
            continue;
        *any_left = true;
        if (!eras_may_serve(pool, worker)) {
            *may_come += eras_ends(worker);
            continue;
        }
        count = affinity_count(worker);
        if (exclusive && count > 0)
            continue;
        ++*may_come;
        if (worker->availability == PEER_READY && count < fewest) {
            found = worker;
            fewest = count;
        }
    }
    return eras_economize(pool) ? eras_least_busy(pool) : found;
}

/* Every worker of the pool has its client. */
static void wait_for_leave(struct decision *decision, struct group *pool)
{
    struct peer *client = decision->from;
    int64_t now_ms = decision->router->now_ms;

    if (client->hold_expired) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "every worker serves another client (busy_timeout_sec %u)",
                        pool->mode.busy_timeout_sec);
        return;
    }
    if (client->hold_until_ms == 0)
        client->hold_until_ms = now_ms + (int64_t)pool->mode.busy_timeout_sec * 1000;
    decision_hold(decision, &pool->waiting);
    if (decision->action == ACTION_HOLD)
        decision->hold_ms = client->hold_until_ms > now_ms ? client->hold_until_ms - now_ms : 1;
}

struct peer *bind_to_worker(struct decision *decision, struct group *pool)
{
    const struct group *claimed = eras_claimed(pool);
    size_t may_come;
    bool any_left;
    struct peer *worker = find_unbound(pool, &may_come, &any_left);
    bool joins = worker != NULL && !peer_is_fresh(worker) &&
                 pool->mode.clients != CLIENTS_EXCLUSIVE;

    decision->router->demand = true;
    if (!joins && decision->from->claim != claimed && shares_claims(claimed) >= may_come) {
        worker = NULL; /* each of them is for a client with a claim */
        may_come = 0;
    }
    if (worker != NULL) {
        decision->from->hold_expired = false; /* the wait for a worker is over, in time */
        if (affinity_add(decision->from, worker) != STDIO_BUS_OK)
            return NULL;
        eras_join_worker(pool, worker);
        return worker;
    }
    if (!any_left) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "no worker left to serve this request");
        return NULL;
    }
    shares_claim(decision->router, eras_claimed(pool), decision->from);
    if (may_come > 0)
        decision_hold(decision, &pool->waiting);
    else
        wait_for_leave(decision, pool);
    return NULL;
}
