#include "build_config.h"

#include "router/departure.h"

#include "router/affinity.h"
#include "router/eras.h"
#include "router/greeting.h"
#include "router/one_handshake.h"
#include "router/outcomes.h"
#include "router/shares.h"
#include "router/waiting.h"

/* The ids of what it asked stay taken until the late answers were dropped. */
static void abandon_asked(struct router *router, struct peer *peer)
{
    struct list_node *node, *following;

    list_each(&peer->asked, node, following)
        waiting_abandon(router, list_entry(node, struct request, in_asker), OUTCOME_ASKER_LEFT);
}

static void fail_answering(struct router *router, struct peer *peer,
                           departure_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;

    list_each(&peer->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state == REQUEST_ACTIVE) {
            router->answered_last |= request->asker->input_ended;
            outcomes_note(router, request, OUTCOME_ANSWERER_LEFT);
            unanswered(user_data, request);
        }
        waiting_forget_request(router, request);
    }
}

bool departure_worker(struct router *router, struct peer *worker,
                      departure_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;
    bool expected;

    waiting_leave(router, worker);
    list_each(&worker->sessions, node, following)
        session_remove(&router->sessions, list_entry(node, struct session, in_worker));
    list_each(&worker->tasks, node, following)
        task_remove(&router->tasks, list_entry(node, struct task, in_worker));
    abandon_asked(router, worker);
    one_handshake_worker_ended(router, worker);
    expected = eras_worker_ended(router, worker);
    fail_answering(router, worker, unanswered, user_data);
    router_number_peer(router, worker);
    greeting_forget(worker);
    worker->broadcast = 0;
    worker->client_left = worker->outdated = false;
    worker->given_up = 0;
    waiting_release_turns(router, &worker->waiting);
    waiting_set_full(router, worker, false);
    waiting_worker_available(router, worker, PEER_ABSENT);
    return expected;
}

void departure_client_input(struct router *router, struct peer *client,
                            departure_unanswered_fn *unanswered, void *user_data)
{
    client->input_ended = true;
    fail_answering(router, client, unanswered, user_data);
}

void departure_client(struct router *router, struct peer *client,
                      departure_unanswered_fn *unanswered, void *user_data)
{
    struct list_node *node, *following;

    waiting_leave(router, client);
    list_each(&client->sessions, node, following)
        session_remove(&router->sessions, list_entry(node, struct session, in_owner));
    list_each(&client->tasks, node, following)
        task_remove(&router->tasks, list_entry(node, struct task, in_owner));
    abandon_asked(router, client);
    fail_answering(router, client, unanswered, user_data);
    affinity_clear_client(client);
    waiting_release_turns(router, &client->waiting);
    waiting_set_full(router, client, false);
    if (!client->admitted)
        return;
    router->client_count--;
    router_forget_origin(router, client->origin);
}

void departure_remove_worker(struct router *router, struct peer *worker)
{
    struct group *pool = worker->pool;

    router->worker_count--;
    greeting_forget(worker);
    router_forget_worker(router, worker, pool);
    /* A client may have waited for this worker alone. */
    waiting_worker_available(router, worker, PEER_FAILED);
}

void departure_detach_pool(struct router *router, struct group *pool, bool removed)
{
    struct group *all = &router->all;

    for (size_t i = pool->count; i-- > 0;)
        group_remove(all, pool->workers[i]);
    if (pool->other_era != NULL)
        departure_remove_pool(router, pool->other_era);
    departure_remove_pool(router, pool);
    pool->removed = removed;
    if (pool->other_era != NULL)
        pool->other_era->removed = removed;
    while (removed && pool->count > 0) {
        struct peer *worker = pool->workers[pool->count - 1];

        router_forget_worker(router, worker, pool);
        if (peer_serves(worker))
            waiting_worker_available(router, worker, PEER_READY);
    }
}

void departure_remove_pool(struct router *router, struct group *pool)
{
    struct list_node *node, *following;

    list_remove(&pool->link);
    router_merge_modes(router);
    list_each(&pool->claims, node, following)
        shares_end_claim(list_entry(node, struct peer, claiming));
    waiting_release_all(router, &pool->waiting);
    waiting_release_turns(router, &pool->senders);
    waiting_release_turns(router, &router->all.senders);
    waiting_release_all(router, &router->waiting_for_worker);
    list_each(&router->roaming.lanes, node, following) {
        const struct roaming_lane *lane = list_entry(node, struct roaming_lane, node);

        if (lane->group == pool)
            waiting_release_lane(router, lane);
    }
}
