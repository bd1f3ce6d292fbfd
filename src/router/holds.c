#include "build_config.h"

#include "router/holds.h"

#include "base/error.h"
#include "router/bindings.h"

static struct peer *peer_of_hold(struct list_node *node)
{
    return list_entry(node, struct peer, hold);
}

void router_hold(struct list *list, struct peer *peer)
{
    list_append(list, &peer->hold);
}

void router_release(struct router *router, struct peer *peer)
{
    list_remove(&peer->roam);
    list_remove(&peer->hold);
    list_append(&router->released, &peer->hold);
}

struct peer *router_next_released(struct router *router)
{
    struct list_node *node = list_take_first(&router->released);

    return node != NULL ? peer_of_hold(node) : NULL;
}

static void release_all(struct router *router, struct list *list)
{
    struct list_node *node, *following;

    list_each(list, node, following)
        router_release(router, peer_of_hold(node));
}

/* A held peer that waits for this id at another worker and would take it at this one. The hash
 * stands for the id: should two ids ever share one, the reservation is not used but handed on. */
static struct peer *find_roaming(struct router *router, const struct request *request)
{
    struct list_node *node;

    if (request->answerer->availability != PEER_HERE || request->answerer->full ||
        request->rewritten)
        return NULL;
    for (node = router->roaming.head.next; node != &router->roaming.head; node = node->next) {
        struct peer *peer = list_entry(node, struct peer, roam);

        if (peer->hold_hash == request->id_hash && router_group_has(peer->group, request->answerer))
            return peer;
    }
    return NULL;
}

void holds_id_free(struct router *router, struct request *request)
{
    struct peer *next = NULL;

    if (!list_empty(&request->waiters))
        next = peer_of_hold(request->waiters.head.next);
    else if (!list_empty(&router->roaming) && request->table == &router->from_clients)
        next = find_roaming(router, request);
    if (next == NULL) {
        request_remove(request);
        return;
    }
    request_reserve(request, next);
    router_release(router, next);
}

void holds_forget_request(struct router *router, struct request *request)
{
    release_all(router, &request->waiters);
    request_remove(request);
}

/* A worker takes messages (again): some ids may be free there that are not elsewhere. Who would
 * wait for its id here too keeps its place in the line. */
static void release_roaming(struct router *router, const struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&router->roaming, node, following) {
        struct peer *peer = list_entry(node, struct peer, roam);

        if (router_group_has(peer->group, worker) &&
            !requests_has_hash(&router->from_clients, worker, peer->hold_hash))
            router_release(router, peer);
    }
}

/* Both in the order in which they were held: those who come first may leave nothing for the others,
 * and must not be the same ones each time. */
static void release_in_order(struct router *router, struct list *one, struct list *other)
{
    while (!list_empty(one) && !list_empty(other)) {
        struct peer *a = peer_of_hold(one->head.next), *b = peer_of_hold(other->head.next);

        router_release(router, a->held_as < b->held_as ? a : b);
    }
    release_all(router, one);
    release_all(router, other);
}

void router_worker_available(struct router *router, struct peer *worker,
                             enum peer_availability availability)
{
    worker->availability = availability;
    release_all(router, &router->waiting_for_worker);
    release_all(router, &router->pools[worker->pool].waiting);
    if (availability == PEER_HERE)
        release_roaming(router, worker);
    if (availability == PEER_FAILED)
        bindings_clear_worker(worker);
}

void router_set_full(struct router *router, struct peer *peer, bool full)
{
    peer->full = full;
    if (full)
        return;
    /* It may have been the worker that a message for any worker waited for. */
    release_in_order(router, &peer->waiting, &router->waiting_for_worker);
    release_roaming(router, peer);
}

void router_hold_expired(struct router *router, struct peer *peer)
{
    peer->hold_expired = true;
    router_release(router, peer);
}

/* Whatever the peer was waiting for, it waits no more. */
static void leave_hold(struct router *router, struct peer *peer)
{
    list_remove(&peer->hold);
    list_remove(&peer->roam);
    peer->hold_expired = false;
    if (peer->reserved != NULL)
        holds_id_free(router, peer->reserved);
}

void holds_abandon(struct router *router, struct request *request)
{
    struct requests *requests = request->table;

    request_abandon(request);
    if (requests->abandoned_count > requests->max)
        holds_id_free(router, list_entry(requests->abandoned.head.next, struct request, in_asker));
}

/* What it asked will be answered to nobody, but the ids stay taken until the answers came. */
static void abandon_asked(struct router *router, struct peer *peer)
{
    struct list_node *node, *following;

    list_each(&peer->asked, node, following)
        holds_abandon(router, list_entry(node, struct request, in_asker));
}

static void fail_answering(struct router *router, struct peer *peer,
                           router_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;

    list_each(&peer->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state == REQUEST_ACTIVE)
            unanswered(user_data, request->asker, request->asker_id);
        holds_forget_request(router, request);
    }
}

void router_worker_gone(struct router *router, struct peer *worker,
                        router_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;

    leave_hold(router, worker);
    list_each(&worker->sessions, node, following)
        session_remove(&router->sessions, list_entry(node, struct session, in_worker));
    abandon_asked(router, worker);
    fail_answering(router, worker, unanswered, user_data);
    worker->number = ++router->next_number;
    worker->broadcast = 0;
    worker->client_left = false;
    router_set_full(router, worker, false);
    router_worker_available(router, worker, PEER_AWAY);
}

void router_client_input_ended(struct router *router, struct peer *client,
                               router_unanswered_fn *unanswered, void *user_data)
{
    client->input_ended = true;
    fail_answering(router, client, unanswered, user_data);
}

void router_client_gone(struct router *router, struct peer *client,
                        router_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;

    leave_hold(router, client);
    list_each(&client->sessions, node, following)
        session_remove(&router->sessions, list_entry(node, struct session, in_owner));
    abandon_asked(router, client);
    fail_answering(router, client, unanswered, user_data);
    bindings_clear_client(client);
    router_set_full(router, client, false);
}
