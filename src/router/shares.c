#include "build_config.h"

#include "router/shares.h"

#include "base/assert.h"
#include "router/affinity.h"

/* Less than 1/(2 * present) of max. */
static bool is_below(size_t held, size_t max, size_t present)
{
    return (uint64_t)held * 2 * present < max;
}

static bool is_left(const struct router *router, const struct peer *client, enum peer_share share,
                    size_t max)
{
    return is_below(client->held[share], max, router->client_count) ||
           (client->origin != NULL &&
            is_below(client->origin->held[share], max, router->origin_count));
}

bool shares_left_of_requests(const struct router *router, const struct pending *pending,
                             const struct peer *asker)
{
    if (pending->active_count < pending->max)
        return true;
    if (pending == &router->from_workers)
        return is_below(asker->held[PEER_REQUESTS], pending->max, router->worker_count);
    return is_left(router, asker, PEER_REQUESTS, pending->max);
}

bool shares_left_of_sessions(const struct router *router, const struct peer *owner)
{
    return !sessions_full(&router->sessions) ||
           is_left(router, owner, PEER_SESSIONS, router->sessions.max);
}

bool shares_left_of_tasks(const struct router *router, const struct peer *owner)
{
    return router->tasks.table.count < router->tasks.max ||
           is_left(router, owner, PEER_TASKS, router->tasks.max);
}

bool shares_left_of_subscriptions(const struct router *router, const struct peer *client,
                                  size_t uri_len)
{
    const struct subscriptions *all = &router->handshakes.subscriptions;

    return all->bytes + SUBSCRIPTION_BYTES(uri_len) <= all->max_bytes ||
           is_left(router, client, PEER_SUBSCRIPTIONS, all->max_bytes);
}

bool shares_left_of_connections(const struct router *router, size_t count,
                                const struct peer_origin *origin)
{
    size_t max = router->limits->max_connections;
    size_t held = origin != NULL ? origin->clients : 0;

    return count < max || is_below(held, max, router->origin_count + (held == 0));
}

/* --- processes of exclusive pools --- */

/* NULL: the worker serves no client of this group, or is the link of one. */
static const struct peer *client_of(const struct group *pool, const struct peer *worker)
{
    return worker->pool != pool || worker->is_passage || list_empty(&worker->bindings)
               ? NULL
               : list_entry(worker->bindings.head.next, struct binding, in_worker)->client;
}

/* Workers that have no client, and may get one: all of them, or without those whose process still
 * ends after its client has left. */
static size_t count_unbound(const struct group *pool, bool with_ending)
{
    size_t count = 0, i;

    for (i = 0; i < pool->count; i++) {
        const struct peer *worker = pool->workers[i];

        count += worker->availability != PEER_FAILED && worker->pool == pool &&
                 list_empty(&worker->bindings) && !worker->is_passage &&
                 (with_ending || worker->origin == NULL);
    }
    return count;
}

bool shares_has_process(const struct group *pool, const struct peer *client)
{
    const struct peer *worker = affinity_worker(client, pool);

    return worker != NULL && !worker->is_passage;
}

size_t shares_processes(const struct group *pool, const struct peer_origin *origin)
{
    size_t count = 0, i;

    for (i = 0; i < pool->count; i++) {
        const struct peer *client = client_of(pool, pool->workers[i]);

        count += client != NULL && client->origin == origin;
    }
    return count;
}

/* Workers that the origin has used up, and those that it is to get. */
static size_t count_coming_and_going(const struct group *pool, const struct peer_origin *origin)
{
    const struct list_node *node;
    size_t count = 0, i;

    for (i = 0; i < pool->count; i++)
        count += !pool->workers[i]->is_passage && pool->workers[i]->origin == origin;
    for (node = pool->claims.head.next; node != &pool->claims.head; node = node->next)
        count += list_entry(node, struct peer, claiming)->origin == origin;
    return count;
}

static size_t share_of_processes(const struct router *router, const struct group *pool)
{
    size_t count = 0, share, i;

    for (i = 0; i < pool->count; i++)
        count += !pool->workers[i]->is_passage;
    share = router->origin_count > 0 ? count / (2 * router->origin_count) : 0;
    return share > 0 ? share : 1;
}

void shares_claim(const struct router *router, struct group *pool, struct peer *client)
{
    const struct peer_origin *origin = client->origin;

    if (client->claim != NULL || origin == NULL || pool->mode.clients != CLIENTS_EXCLUSIVE ||
        shares_processes(pool, origin) + count_coming_and_going(pool, origin) >=
            share_of_processes(router, pool))
        return;
    shares_add_claim(pool, client);
}

void shares_add_claim(struct group *pool, struct peer *client)
{
    client->claim = pool;
    list_append(&pool->claims, &client->claiming);
}

void shares_end_claim(struct peer *client)
{
    client->claim = NULL;
    list_remove(&client->claiming);
}

size_t shares_claims(const struct group *pool)
{
    return list_count(&pool->claims);
}

size_t shares_claims_of_links(const struct group *pool)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = pool->claims.head.next; node != &pool->claims.head; node = node->next)
        count += list_entry(node, struct peer, claiming)->is_link;
    return count;
}

/* Whether a client of the origin waits for a worker, and more clients wait than workers come. */
static bool is_awaited_by(const struct group *pool, const struct peer_origin *origin, size_t coming)
{
    const struct list_node *node;

    if (list_count(&pool->waiting) <= coming)
        return false;
    for (node = pool->waiting.head.next; node != &pool->waiting.head; node = node->next) {
        if (list_entry(node, struct peer, hold)->origin == origin)
            return true;
    }
    return false;
}

bool shares_press(const struct group *pool, const struct peer *worker)
{
    const struct group *other = pool->other_era;
    size_t coming = count_unbound(pool, false);

    if (shares_claims(pool) > coming)
        return true;
    if (worker->origin == NULL)
        return false;
    return is_awaited_by(pool, worker->origin, coming) ||
           (other != NULL && is_awaited_by(other, worker->origin, coming));
}

void shares_ending(struct peer *worker, struct peer_origin *origin)
{
    ASSERT(worker->origin == NULL);
    worker->origin = origin;
}

void shares_ended(struct peer *worker)
{
    worker->origin = NULL;
}

size_t shares_coming(const struct group *pool)
{
    size_t count = 0, i;

    for (i = 0; i < pool->count; i++) {
        const struct peer *worker = pool->workers[i];

        count += worker->availability != PEER_FAILED && !worker->drained &&
                 list_empty(&worker->bindings);
    }
    return count;
}

const struct peer_origin *shares_holding_most(const struct router *router, const struct group *pool,
                                              size_t coming)
{
    size_t most = share_of_processes(router, pool), i;
    size_t claims = shares_claims(pool), of_others = claims - shares_claims_of_links(pool);
    const struct peer_origin *found = NULL;

    if (claims <= count_unbound(pool, true) + (coming < of_others ? coming : of_others))
        return NULL;
    for (i = 0; i < pool->count; i++) {
        const struct peer *client = client_of(pool, pool->workers[i]);
        size_t count;

        if (client == NULL || client->origin == NULL || client->origin == found)
            continue;
        count = shares_processes(pool, client->origin);
        if (count > most) {
            most = count;
            found = client->origin;
        }
    }
    return found;
}
