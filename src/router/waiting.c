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

/* The peers take their turns from now on. */
static void open_turns(struct router *router, struct turns *turns)
{
    if (!turns_empty(turns) && !list_linked(&turns->open))
        list_append(&router->open, &turns->open);
}

void waiting_release(struct router *router, struct peer *peer)
{
    roaming_leave(&router->roaming, peer);
    turns_leave(peer);
    turns_add(&router->released, peer);
    open_turns(router, &router->released);
}

/* Whether a worker of the group takes messages, or none ever will. */
static bool group_decides(const struct group *group)
{
    bool may_come = false;

    for (size_t i = 0; i < group->count; i++) {
        const struct peer *worker = group->workers[i];

        if (peer_takes_messages(worker))
            return true;
        may_come |= worker->availability != PEER_FAILED;
    }
    return !may_come;
}

/* Whether the next peer need not be held again for the same. */
static bool goes_on(const struct turns *turns)
{
    if (turns->kind == TURNS_OF_PEER)
        return !list_entry(turns, const struct peer, waiting)->full;
    return turns->kind != TURNS_OF_GROUP ||
           group_decides(list_entry(turns, const struct group, senders));
}

struct peer *waiting_next_released(struct router *router)
{
    struct list_node *node;

    while ((node = list_take_first(&router->open)) != NULL) {
        struct turns *turns = list_entry(node, struct turns, open);
        struct peer *peer = goes_on(turns) ? turns_take(turns) : NULL;

        if (peer == NULL)
            continue;
        open_turns(router, turns);
        return peer;
    }
    return NULL;
}

void waiting_release_turns(struct router *router, struct turns *turns)
{
    struct peer *peer;

    list_remove(&turns->open);
    while ((peer = turns_take(turns)) != NULL)
        waiting_release(router, peer);
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
    if (request->answerer->availability != PEER_READY || request->answerer->full ||
        request->rewritten)
        return NULL;
    return roaming_find(&router->roaming, request->answerer, &router->all, request->id_hash);
}

void waiting_id_free(struct router *router, struct request *request)
{
    struct peer *next = NULL;

    if (!turns_empty(&request->waiters))
        next = turns_take(&request->waiters);
    else if (roaming_any(&router->roaming) && request->table == &router->from_clients)
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
    waiting_release_turns(router, &request->waiters);
    router->abandoned |= request->state == REQUEST_ABANDONED;
    request_remove(request);
}

void waiting_release_lane(struct router *router, const struct roaming_lane *lane)
{
    struct list_node *node = lane->peers.head.next, *following;

    /* The lane is freed with its last peer. */
    for (bool more = true; more; node = following) {
        following = node->next;
        more = following != &lane->peers.head;
        waiting_release(router, list_entry(node, struct peer, roam));
    }
}

/* A worker takes messages (again): an id may be free there and taken elsewhere. A peer that would
 * wait for its id here too keeps its place in the line. */
static void release_roaming(struct router *router, const struct peer *worker)
{
    struct list_node *node, *following;

    if (worker->pool == NULL) /* a client */
        return;
    list_each(&router->roaming.lanes, node, following) {
        const struct roaming_lane *lane = list_entry(node, struct roaming_lane, node);

        if (group_has(lane->group, worker) &&
            !pending_has_hash(&router->from_clients, worker, lane->id_hash))
            waiting_release_lane(router, lane);
    }
}

typedef void turns_fn(struct router *router, struct turns *turns);

/* Calls fn for the senders to each group that the worker is in. */
static void each_senders(struct router *router, const struct peer *worker, turns_fn *fn)
{
    struct group *pool = worker->pool;

    if (pool == NULL) /* a client */
        return;
    fn(router, &pool->senders);
    if (pool->other_era != NULL)
        fn(router, &pool->other_era->senders);
    fn(router, &router->all.senders);
}

void waiting_release_senders(struct router *router, const struct peer *worker)
{
    each_senders(router, worker, waiting_release_turns);
    waiting_release_all(router, &router->waiting_for_worker);
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
    waiting_release_senders(router, worker);
    waiting_worker_free(router, worker);
    if (availability == PEER_READY)
        release_roaming(router, worker);
    if (availability == PEER_FAILED)
        affinity_clear_worker(worker);
}

void waiting_call(struct router *router, struct peer *worker)
{
    if (worker->rest != PEER_ASLEEP)
        return;
    worker->rest = PEER_CALLED;
    router->demand = true;
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
    open_turns(router, &peer->waiting);
    /* It may have been the worker that a message for any worker waited for. */
    each_senders(router, peer, open_turns);
    release_roaming(router, peer);
}

void waiting_expire(struct router *router, struct peer *peer)
{
    peer->hold_expired = true;
    waiting_release(router, peer);
}

void waiting_leave(struct router *router, struct peer *peer)
{
    turns_leave(peer);
    roaming_leave(&router->roaming, peer);
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

void waiting_give_up_subscriptions(struct router *router, struct peer *client,
                                   const struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&client->asked, node, following) {
        struct request *request = list_entry(node, struct request, in_asker);

        if (worker == NULL || request->answerer == worker)
            waiting_subscribed(router, request, SUBSCRIPTION_UNCERTAIN);
    }
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
