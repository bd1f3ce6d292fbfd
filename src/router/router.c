#include "build_config.h"

#include "router/router.h"

#include <string.h>

#include "base/error.h"

/* Pools that are left out of the group of all: a message for any worker does not go there. */
static bool takes_turns(const struct group *pool)
{
    return pool->mode.clients == CLIENTS_SHARED && !pool->mode.by_name;
}

static void choose_usual(struct router *router)
{
    bool is_all = router->all.count > 0 || list_empty(&router->pools);

    router->usual = is_all ? &router->all : list_entry(router->pools.head.next, struct group, link);
}

/* What one pool asks for is looked for in every message. */
void router_merge_modes(struct router *router)
{
    struct group *all = &router->all;
    struct list_node *node, *following;

    choose_usual(router);
    all->plain = all->takes_long = true;
    all->top_sessions = all->reads_tasks = false;
    all->mode.session_in_params = all->mode.rewrite_ids = false;
    list_each(&router->pools, node, following) {
        const struct group *pool = list_entry(node, struct group, link);

        router->timed |= pool->mode.clients == CLIENTS_EXCLUSIVE || pool->one_handshake ||
                         pool->mode.request_timeout_sec > 0;
        router->clocked |= router->timed;
        if (!takes_turns(pool))
            continue;
        all->plain &= pool->plain;
        all->takes_long &= pool->takes_long;
        all->reads_tasks |= pool->reads_tasks;
        all->top_sessions |= !pool->mode.session_in_params;
        all->mode.session_in_params |= pool->mode.session_in_params;
        all->mode.rewrite_ids |= pool->mode.rewrite_ids;
    }
}

void router_number_peer(struct router *router, struct peer *peer)
{
    peer->number = ++router->last_number * UINT64_C(0x9e3779b97f4a7c15); /* odd: none comes twice */
}

static void add_peer(struct router *router, struct peer *peer)
{
    router_number_peer(router, peer);
    peer->max_requests = SIZE_MAX;
    list_init(&peer->asked);
    list_init(&peer->answering);
    list_init(&peer->sessions);
    turns_init(&peer->waiting, TURNS_OF_PEER);
    list_init(&peer->bindings);
    list_init(&peer->loading);
    list_init(&peer->logging);
    list_init(&peer->tasks);
}

/* Clients and origins that come one after the other may make it four times as much
 * (router/shares.h). */
static size_t max_subscriptions(const struct limits *limits)
{
    return limits->max_memory / 16;
}

void router_init(struct router *router, const struct limits *limits, const struct siphash_key *key)
{
    static const struct pool_mode shared = {.clients = CLIENTS_SHARED};

    memset(router, 0, sizeof *router);
    router->limits = limits;
    group_init(&router->all, slice_of(NULL, 0), &shared);
    list_init(&router->pools);
    list_init(&router->timing);
    sessions_init(&router->sessions, key, limits->max_sessions);
    pending_init(&router->from_clients, key, limits->max_pending_requests);
    router->from_clients.own_numbers = true;
    pending_init(&router->from_workers, key, limits->max_pending_requests);
    tasks_init(&router->tasks, key, limits->max_pending_requests, &router->from_clients);
    list_init(&router->waiting_for_worker);
    roaming_init(&router->roaming);
    turns_init(&router->released, TURNS_OF_RELEASED);
    list_init(&router->open);
    list_init(&router->handshakes.errands);
    subscriptions_init(&router->handshakes.subscriptions, key, max_subscriptions(limits));
    add_peer(router, &router->own);
    choose_usual(router);
}

void router_set_limits(struct router *router, const struct limits *limits)
{
    router->limits = limits;
    router->sessions.max = limits->max_sessions;
    router->from_clients.max = limits->max_pending_requests;
    router->from_workers.max = limits->max_pending_requests;
    router->tasks.max = limits->max_pending_requests;
    router->handshakes.subscriptions.max_bytes = max_subscriptions(limits);
}

void router_count_memory(struct router *router, size_t *account)
{
    router->handshakes.subscriptions.account = account;
}

void router_limit_client(const struct router *router, struct peer *client)
{
    size_t max = router->limits->max_requests_per_client;

    client->max_requests = max > 0 ? max : SIZE_MAX;
}

void router_free(struct router *router)
{
    group_free(&router->all);
    sessions_free(&router->sessions);
    subscriptions_free(&router->handshakes.subscriptions);
    tasks_free(&router->tasks);
    roaming_free(&router->roaming);
    pending_free(&router->from_clients);
    pending_free(&router->from_workers);
}

void router_add_pool(struct router *router, struct group *pool)
{
    list_append(&router->pools, &pool->link);
    router_merge_modes(router);
}

void router_arrange(struct router *router, struct group *pool)
{
    list_remove(&pool->link);
    list_append(&router->pools, &pool->link);
    if (pool->other_era != NULL) {
        list_remove(&pool->other_era->link);
        list_append(&router->pools, &pool->other_era->link);
    }
    choose_usual(router);
}

void router_measure(struct router *router)
{
    router->measures = router->clocked = true;
}

void router_add_client(struct router *router, struct peer *client)
{
    add_peer(router, client);
    client->availability = PEER_READY;
}

void router_open_pool(struct peer *client, struct group *pool)
{
    client->opened = pool;
    client->confined = false;
}

void router_confine(struct peer *client, struct group *pool)
{
    client->opened = pool;
    client->confined = true;
}

void router_separate_sessions(struct peer *client)
{
    client->own_sessions = true;
}

void router_set_brief(struct peer *client, bool is_brief)
{
    client->is_brief = is_brief;
}

void router_admit_client(struct router *router, struct peer *client)
{
    client->admitted = true;
    router_limit_client(router, client);
    router->client_count++;
    router_note_origin(router, client->origin);
}

void router_note_origin(struct router *router, struct peer_origin *origin)
{
    if (origin != NULL && origin->clients++ == 0)
        router->origin_count++;
}

void router_forget_origin(struct router *router, struct peer_origin *origin)
{
    if (origin != NULL && --origin->clients == 0)
        router->origin_count--;
}

void router_move_client(struct router *router, struct peer *client, struct peer_origin *origin)
{
    struct peer_origin *before = client->origin;
    struct turns *turns = client->turns;

    for (int share = 0; share < PEER_SHARES; share++) {
        origin->held[share] += client->held[share];
        if (before != NULL)
            before->held[share] -= client->held[share];
    }
    if (turns != NULL)
        turns_leave(client);
    client->origin = origin;
    if (turns != NULL)
        turns_add(turns, client);
    if (!client->admitted)
        return;
    router_note_origin(router, origin);
    router_forget_origin(router, before);
}

void router_forget_worker(struct router *router, const struct peer *worker, struct group *pool)
{
    group_remove(&router->all, worker);
    choose_usual(router);
    group_remove(pool, worker);
    if (pool->other_era != NULL)
        group_remove(pool->other_era, worker);
}

int router_add_worker(struct router *router, struct peer *worker, struct group *pool)
{
    if (group_add(pool, worker) != STDIO_BUS_OK ||
        (pool->other_era != NULL && group_add(pool->other_era, worker) != STDIO_BUS_OK) ||
        (takes_turns(pool) && group_add(&router->all, worker) != STDIO_BUS_OK)) {
        router_forget_worker(router, worker, pool);
        return STDIO_BUS_ERR;
    }
    choose_usual(router);
    add_peer(router, worker);
    router->worker_count++;
    worker->pool = pool;
    worker->availability = PEER_ABSENT;
    return STDIO_BUS_OK;
}

struct group *router_pool_named(const struct router *router, struct slice id)
{
    struct list_node *node, *following;

    list_each(&router->pools, node, following) {
        struct group *pool = list_entry(node, struct group, link);

        if (slice_equal(pool->id, id))
            return pool;
    }
    return NULL;
}
