#include "build_config.h"

#include "router/waiting.h"

#include "base/assert.h"
#include "router/affinity.h"
#include "router/handshake.h"
#include "router/outcomes.h"
#include "router/shares.h"

static struct peer *peer_of_hold(struct list_node *node)
{
    return list_entry(node, struct peer, hold);
}

void waiting_hold(struct list *list, struct peer *peer)
{
    ASSERT(!peer_held(peer));
    list_append(list, &peer->hold);
}

void waiting_release(struct router *router, struct peer *peer)
{
    list_remove(&peer->roam);
    list_remove(&peer->hold);
    list_append(&router->released, &peer->hold);
}

struct peer *waiting_next_released(struct router *router)
{
    struct list_node *node = list_take_first(&router->released);

    return node != NULL ? peer_of_hold(node) : NULL;
}

void waiting_release_all(struct router *router, struct list *list)
{
    struct list_node *node, *following;

    list_each(list, node, following)
        waiting_release(router, peer_of_hold(node));
}

/* A held peer that waits for this id at another worker and would take it at this one. The hash
 * stands for the id: should two ids ever share one, the reservation is not used but handed on. */
static struct peer *find_roaming(struct router *router, const struct request *request)
{
    struct list_node *node;

    if (request->answerer->availability != PEER_READY || request->answerer->full ||
        request->rewritten)
        return NULL;
    for (node = router->roaming.head.next; node != &router->roaming.head; node = node->next) {
        struct peer *peer = list_entry(node, struct peer, roam);

        if (peer->hold_hash == request->id_hash && group_has(peer->hold_group, request->answerer))
            return peer;
    }
    return NULL;
}

void waiting_id_free(struct router *router, struct request *request)
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
    waiting_release(router, next);
}

void waiting_forget_request(struct router *router, struct request *request)
{
    waiting_release_all(router, &request->waiters);
    router->abandoned |= request->state == REQUEST_ABANDONED;
    request_remove(request);
}

/* A worker takes messages (again): an id may be free there and taken elsewhere. A peer that would
 * wait for its id here too keeps its place in the line. */
static void release_roaming(struct router *router, const struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&router->roaming, node, following) {
        struct peer *peer = list_entry(node, struct peer, roam);

        if (group_has(peer->hold_group, worker) &&
            !pending_has_hash(&router->from_clients, worker, peer->hold_hash))
            waiting_release(router, peer);
    }
}

/* Both in the order in which the peers were held: the first ones may leave nothing for the others,
 * and must not be the same ones each time. */
static void release_in_order(struct router *router, struct list *one, struct list *other)
{
    while (!list_empty(one) && !list_empty(other)) {
        struct peer *a = peer_of_hold(one->head.next), *b = peer_of_hold(other->head.next);

        waiting_release(router, a->hold_order < b->hold_order ? a : b);
    }
    waiting_release_all(router, one);
    waiting_release_all(router, other);
}

void waiting_worker_free(struct router *router, const struct peer *worker)
{
    waiting_release_all(router, &worker->pool->waiting);
    if (worker->pool->other_era != NULL)
        waiting_release_all(router, &worker->pool->other_era->waiting);
}

void waiting_worker_available(struct router *router, struct peer *worker,
                              enum peer_availability availability)
{
    if (availability == PEER_READY && worker->pool->removed)
        availability = PEER_LEAVING;
    else if (availability == PEER_READY && worker->drained)
        availability = PEER_DRAINING;
    worker->availability = availability;
    waiting_release_all(router, &router->waiting_for_worker);
    waiting_worker_free(router, worker);
    if (availability == PEER_READY)
        release_roaming(router, worker);
    if (availability == PEER_FAILED)
        affinity_clear_worker(worker);
}

void waiting_set_drained(struct router *router, struct peer *worker, bool drained)
{
    worker->drained = drained;
    if (peer_serves(worker))
        waiting_worker_available(router, worker, PEER_READY);
}

void waiting_set_full(struct router *router, struct peer *peer, bool full)
{
    peer->full = full;
    if (full)
        return;
    if (peer->handshake != NULL)
        handshake_note_errand(peer->handshake);
    /* It may have been the worker that a message for any worker waited for. */
    release_in_order(router, &peer->waiting, &router->waiting_for_worker);
    release_roaming(router, peer);
}

void waiting_expire(struct router *router, struct peer *peer)
{
    peer->hold_expired = true;
    waiting_release(router, peer);
}

void waiting_leave(struct router *router, struct peer *peer)
{
    list_remove(&peer->hold);
    list_remove(&peer->roam);
    peer->hold_expired = false;
    shares_end_claim(peer);
    if (peer->reserved != NULL)
        waiting_id_free(router, peer->reserved);
}

/* An errand may wait for the answer to another one. */
void waiting_late_answer(struct router *router, struct request *request)
{
    if (request->extras != NULL && list_linked(&request->extras->shared))
        handshake_note_errand(request->answerer->handshake);
    router->abandoned = true;
    waiting_id_free(router, request);
}

void waiting_subscribed(struct router *router, struct request *request,
                        enum subscription_answer answer)
{
    struct request_extras *extras = request->extras;

    if (extras == NULL || extras->watched == NULL)
        return;
    waiting_release_all(router, &extras->watched->subscription->waiting);
    subscriptions_answered(&extras->watched, answer);
    if (answer == SUBSCRIPTION_UNCERTAIN)
        handshake_note_errand(request->answerer->handshake);
}

void waiting_abandon(struct router *router, struct request *request, enum request_outcome outcome)
{
    struct pending *pending = request->table;

    outcomes_note(router, request, outcome);
    waiting_subscribed(router, request, SUBSCRIPTION_UNCERTAIN);
    request_abandon(request);
    request->free_at_ms = router->now_ms + (int64_t)router->limits->abandoned_id_sec * 1000;
    router->abandoned = true;
    request->answerer->given_up++;
    if (pending->abandoned_count > pending->max)
        waiting_late_answer(router,
                            list_entry(pending->abandoned.head.next, struct request, in_asker));
}
