#include "build_config.h"

#include "router/bind.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/eras.h"
#include "router/from_memory.h"
#include "router/shares.h"
#include "router/waiting.h"

/* Holds the client if its origin has a penalty that delays. */
static bool penalty_holds(struct decision *decision, struct group *pool)
{
    struct list_node *node, *following;

    list_each(&eras_claimed(pool)->penalties, node, following) {
        struct penalty *penalty = list_entry(node, struct penalty, link);

        if (penalty->origin != decision->from->origin || !penalty->delays)
            continue;
        shares_end_claim(decision->from);
        decision_hold(decision, &penalty->held, HELD_FOR_PROCESS);
        return true;
    }
    return false;
}

/* Workers of a pool. */
struct supply_count {
    size_t processes, passages;
};

/* The workers of a pool, before one is chosen. */
struct supply {
    struct supply_count free;     /* take messages, and have no client */
    struct supply_count may_come; /* the same, and those that may before a client leaves */
    struct peer *passage;         /* one of the free ones, or NULL */
    bool any_left;
};

static void count_worker(struct supply_count *count, const struct peer *worker)
{
    if (worker->is_passage)
        count->passages++;
    else
        count->processes++;
}

/* Whether there are more than the claims take: each one a worker, but a link's no passage. */
static bool exceeds_claims(struct supply_count count, const struct group *claimed)
{
    size_t of_links = shares_claims_of_links(claimed), others = shares_claims(claimed) - of_links;

    if (of_links > count.processes)
        of_links = count.processes;
    return count.processes + count.passages > others + of_links;
}

/* What the claims of others leave, the passage first: it cannot be what a link has a claim to. */
static struct peer *beside_claims(const struct supply *supply, const struct group *claimed,
                                  struct peer *found)
{
    if (!exceeds_claims(supply->free, claimed))
        return NULL;
    return supply->passage != NULL && shares_claims(claimed) > 0 ? supply->passage : found;
}

/* The worker of the pool to which the client's origin has bound a brief client last. A number is
 * that of one process: the next one knows nothing. NULL: there is none that takes messages. */
static struct peer *find_home(const struct group *pool, const struct peer *client)
{
    const struct peer_origin *origin = client->origin;

    if (!client->is_brief || origin == NULL || pool->mode.clients == CLIENTS_EXCLUSIVE)
        return NULL;
    for (size_t i = 0; i < pool->count; i++) {
        struct peer *worker = pool->workers[i];

        if (worker->pool != pool || worker->availability != PEER_READY || worker->alone)
            continue;
        for (size_t home = 0; home < PEER_HOMES; home++) {
            if (origin->homes[home] == worker->number)
                return worker;
        }
    }
    return NULL;
}

static void note_home(const struct peer *client, const struct peer *worker)
{
    struct peer_origin *origin = client->origin;

    if (!client->is_brief || origin == NULL)
        return;
    for (size_t home = 0; home < PEER_HOMES; home++) {
        if (origin->homes[home] == worker->number)
            return;
    }
    origin->homes[origin->next_home++ % PEER_HOMES] = worker->number;
}

/* Among the workers that take messages, the one with the fewest clients, and none for an exclusive
 * pool or a client that needs a process of its own; or NULL. */
static struct peer *find_unbound(const struct group *pool, const struct peer *client,
                                 struct supply *supply)
{
    bool exclusive = pool->mode.clients == CLIENTS_EXCLUSIVE;
    bool joins = pool->mode.frugal && !client->alone && group_is_served(pool);
    size_t fewest = SIZE_MAX, count, i;
    struct peer *found = NULL, *home = find_home(pool, client);

    *supply = (struct supply){0};
    for (i = 0; i < pool->count; i++) {
        struct peer *worker = pool->workers[i];

        if (worker->availability == PEER_FAILED ||
            (worker->is_passage && (worker->availability != PEER_READY || client->is_link)))
            continue;
        supply->any_left = true;
        if (!eras_may_serve(pool, worker)) {
            if (eras_ends(worker))
                count_worker(&supply->may_come, worker);
            continue;
        }
        if (worker->alone || (client->alone && !peer_is_fresh(worker)) ||
            (joins && peer_is_fresh(worker)))
            continue;
        count = affinity_count(worker);
        if (exclusive && count > 0)
            continue;
        count_worker(&supply->may_come, worker);
        if (worker->availability != PEER_READY)
            continue;
        if (count == 0)
            count_worker(&supply->free, worker);
        if (worker->is_passage)
            supply->passage = worker;
        if (count < fewest) {
            found = worker;
            fewest = count;
        }
    }
    if (home != NULL)
        return home;
    return eras_economize(pool) ? eras_least_busy(pool) : found;
}

/* Every worker of the pool has its client, or has failed. */
static void wait_for_leave(struct decision *decision, struct group *pool)
{
    struct peer *client = decision->from;
    int64_t now_ms = decision->router->now_ms;

    if (client->hold_expired) {
        if (eras_claimed(pool)->failure.count > 0)
            decision_refuse_exited(decision, eras_claimed(pool));
        else
            decision_refuse(decision, JSONRPC_SERVER_ERROR,
                            "every worker serves another client: too few instances "
                            "(busy_timeout_sec %u)",
                            pool->mode.busy_timeout_sec);
        return;
    }
    if (client->hold_until_ms == 0)
        client->hold_until_ms = now_ms + (int64_t)pool->mode.busy_timeout_sec * 1000;
    decision_hold(decision, &pool->waiting, HELD_FOR_PROCESS);
    if (decision->action == ACTION_HOLD)
        decision->hold_ms = client->hold_until_ms > now_ms ? client->hold_until_ms - now_ms : 1;
}

/* Where clients share a process that is asleep, a new one joins them. */
static void call_sleeper(struct router *router, const struct group *pool, const struct peer *client)
{
    for (size_t i = 0; i < pool->count && !client->alone; i++) {
        struct peer *worker = pool->workers[i];

        if (worker->pool == pool && worker->rest == PEER_ASLEEP && !worker->alone &&
            !list_empty(&worker->bindings)) {
            waiting_call(router, worker);
            return;
        }
    }
}

/* Processes have ended before they could get the client's message. True: it is refused. */
static bool refuse_after_failures(struct decision *decision, const struct group *claimed)
{
    const struct start_failure *failure = &claimed->failure;
    struct peer *client = decision->from;

    if (!client->was_held || client->hold_failures == 0)
        client->hold_failures = failure->total + 1;
    if (failure->count == 0 || failure->total + 1 - client->hold_failures < START_FAILURE_ATTEMPTS)
        return false;
    decision_refuse_exited(decision, claimed);
    return true;
}

struct peer *bind_to_worker(struct decision *decision, struct group *pool)
{
    const struct group *claimed = eras_claimed(pool);
    struct supply supply;
    struct peer *worker = from_memory_worker(decision, pool);
    bool joins, may_come;

    if (worker != NULL)
        return affinity_add(decision->from, worker) == STDIO_BUS_OK ? worker : NULL;
    worker = find_unbound(pool, decision->from, &supply);
    joins = worker != NULL && !peer_is_fresh(worker) && pool->mode.clients != CLIENTS_EXCLUSIVE;

    decision->router->demand = true;
    if (!joins && penalty_holds(decision, pool))
        return NULL;
    may_come = supply.may_come.processes + supply.may_come.passages > 0;
    if (!joins && decision->from->claim != claimed) {
        worker = beside_claims(&supply, claimed, worker);
        may_come = exceeds_claims(supply.may_come, claimed);
    }
    if (worker != NULL) {
        decision->from->hold_expired = false; /* the wait for a worker is over, in time */
        if (affinity_add(decision->from, worker) != STDIO_BUS_OK)
            return NULL;
        shares_end_claim(decision->from); /* also if it is held on, for that worker */
        eras_join_worker(pool, worker);
        worker->alone = decision->from->alone;
        note_home(decision->from, worker);
        if (worker->is_passage) /* from now on it is for this client alone */
            waiting_set_drained(decision->router, worker, true);
        return worker;
    }
    if (!supply.any_left) {
        decision_refuse_unserved(decision, pool);
        return NULL;
    }
    if (refuse_after_failures(decision, claimed))
        return NULL;
    if (pool->mode.clients != CLIENTS_EXCLUSIVE)
        call_sleeper(decision->router, pool, decision->from);
    shares_claim(decision->router, eras_claimed(pool), decision->from);
    if (may_come)
        decision_hold(decision, &pool->waiting, HELD_FOR_PROCESS);
    else
        wait_for_leave(decision, pool);
    return NULL;
}
