#include "build_config.h"

#include "reload/pool_holders.h"

#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/service.h"
#include "router/affinity.h"

static void each_holder(struct stdio_bus *bus, pool_holder_fn *fn, void *user_data)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following)
        fn(user_data,
           (struct pool_holder){.at = &list_entry(node, struct bus_listener, link)->pool});
    list_each(&bus->clients.list, node, following) {
        struct peer *peer = &client_at(node)->stream.endpoint.peer;

        fn(user_data, (struct pool_holder){&peer->opened, peer, true});
    }
    each_service(bus, at, each_holder)
        at.service->each_holder(at.state, fn, user_data);
}

/* --- whether there is one --- */

struct question {
    const struct pool *pool;
    bool found;
};

static void look(void *user_data, struct pool_holder holder)
{
    struct question *question = user_data;

    question->found |= *holder.at == &question->pool->group;
}

bool pool_holders_any(struct stdio_bus *bus, const struct pool *pool)
{
    struct question question = {.pool = pool};

    each_holder(bus, look, &question);
    return question.found;
}

/* --- two pools of one name --- */

struct parting {
    struct pool *from, *to;
};

static bool is_of(const struct peer *worker, struct pool *pool)
{
    return worker->pool == &pool->group || worker->pool == &pool->stateless;
}

static bool is_attached(const struct peer *peer, struct pool *pool)
{
    const struct list_node *node;

    for (node = peer->bindings.head.next; node != &peer->bindings.head; node = node->next) {
        if (is_of(list_entry(node, struct binding, in_client)->worker, pool))
            return true;
    }
    for (node = peer->sessions.head.next; node != &peer->sessions.head; node = node->next) {
        if (is_of(list_entry(node, struct session, in_owner)->worker, pool))
            return true;
    }
    return false;
}

static void part(void *user_data, struct pool_holder holder)
{
    struct parting *parting = user_data;
    bool stays = holder.peer != NULL && is_attached(holder.peer, parting->from);

    if (*holder.at == &parting->from->group && !stays)
        *holder.at = &parting->to->group;
    else if (*holder.at == NULL && stays && holder.opens)
        *holder.at = &parting->from->group;
}

void pool_holders_part(struct stdio_bus *bus, struct pool *from, struct pool *to)
{
    struct parting parting = {from, to};

    each_holder(bus, part, &parting);
}

/* --- a name that is there again --- */

static void give_back(void *user_data, struct pool_holder holder)
{
    struct stdio_bus *bus = user_data;
    struct group *present;

    if (*holder.at == NULL || !(*holder.at)->removed)
        return;
    present = router_pool_named(&bus->router, (*holder.at)->id);
    if (present != NULL)
        *holder.at = present;
}

void pool_holders_return(struct stdio_bus *bus)
{
    each_holder(bus, give_back, bus);
}
