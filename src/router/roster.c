#include "build_config.h"

#include "router/router.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The lists are empty: nothing was routed yet. */
static void init_lists(struct router_group *group)
{
    list_init(&group->waiting);
    list_init(&group->timed);
}

void router_init(struct router *router, const struct limits *limits,
                 const struct siphash_key *key)
{
    memset(router, 0, sizeof *router);
    router->limits = limits;
    router->all.plain = true;
    init_lists(&router->all);
    sessions_init(&router->sessions, key, limits->max_sessions);
    requests_init(&router->from_clients, key, limits->max_pending_requests);
    requests_init(&router->from_workers, key, limits->max_pending_requests);
    list_init(&router->waiting_for_worker);
    list_init(&router->roaming);
    list_init(&router->released);
}

void router_free(struct router *router)
{
    size_t i;

    for (i = 0; i < router->pool_count; i++)
        free(router->pools[i].workers);
    free(router->pools);
    free(router->all.workers);
    sessions_free(&router->sessions);
    requests_free(&router->from_clients);
    requests_free(&router->from_workers);
}

int router_add_pool(struct router *router, struct slice id)
{
    struct router_group *pools =
        realloc(router->pools, (router->pool_count + 1) * sizeof *router->pools);
    size_t i;

    if (pools == NULL)
        return STDIO_BUS_ERR;
    memset(&pools[router->pool_count], 0, sizeof *pools);
    pools[router->pool_count].id = id;
    pools[router->pool_count].plain = true;
    router->pools = pools;
    router->pool_count++;
    for (i = 0; i < router->pool_count; i++)
        init_lists(&pools[i]);
    return (int)router->pool_count - 1;
}

void router_set_sharing(struct router *router, size_t pool, const struct sharing *sharing)
{
    struct router_group *group = &router->pools[pool], *all = &router->all;

    group->sharing = *sharing;
    group->plain = sharing_is_plain(sharing);
    if (sharing->clients != CLIENTS_SHARED)
        return;
    all->plain = all->plain && group->plain;
    all->top_sessions |= !sharing->session_in_params;
    all->sharing.session_in_params |= sharing->session_in_params;
    all->sharing.rewrite_ids |= sharing->rewrite_ids;
}

static void add_peer(struct router *router, struct peer *peer)
{
    peer->number = ++router->next_number;
    list_init(&peer->asked);
    list_init(&peer->answering);
    list_init(&peer->sessions);
    list_init(&peer->waiting);
    list_init(&peer->bindings);
}

void router_add_client(struct router *router, struct peer *client)
{
    add_peer(router, client);
    client->availability = PEER_HERE;
}

bool router_group_has(const struct router_group *group, const struct peer *worker)
{
    size_t i;

    for (i = 0; i < group->count; i++) {
        if (group->workers[i] == worker)
            return true;
    }
    return false;
}

static int group_add(struct router_group *group, struct peer *worker)
{
    struct peer **workers = realloc(group->workers, (group->count + 1) * sizeof(struct peer *));

    if (workers == NULL)
        return STDIO_BUS_ERR;
    group->workers = workers;
    workers[group->count++] = worker;
    return STDIO_BUS_OK;
}

int router_add_worker(struct router *router, struct peer *worker, size_t pool)
{
    if (group_add(&router->pools[pool], worker) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (router->pools[pool].sharing.clients == CLIENTS_SHARED &&
        group_add(&router->all, worker) != STDIO_BUS_OK) {
        router->pools[pool].count--;
        return STDIO_BUS_ERR;
    }
    add_peer(router, worker);
    worker->pool = pool;
    worker->availability = PEER_AWAY;
    return STDIO_BUS_OK;
}
