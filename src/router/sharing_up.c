/* From client to worker where pools have keys of their own (config/sharing.h). */
#include "build_config.h"

#include "router/router.h"

#include "base/error.h"
#include "router/bindings.h"
#include "router/holds.h"
#include "router/translation.h"

static const struct sharing *sharing_of(const struct offer *offer, const struct peer *worker)
{
    return &offer->router->pools[worker->pool].sharing;
}

static inline bool id_free_at(const struct offer *offer, const struct peer *worker,
                              struct request **busy)
{
    return !offer->asks || sharing_of(offer, worker)->rewrite_ids ||
           offer_id_free_at(offer, &offer->router->from_clients, worker, busy);
}

/* --- a sticky or exclusive pool: bound at the first message --- */

/* Among those that take messages, the one with the fewest clients, and none for an exclusive pool.
 * NULL: *may_come says that there may be one without waiting for a client to leave. */
static struct peer *find_unbound(const struct router_group *group, bool *may_come, bool *any_left)
{
    bool exclusive = group->sharing.clients == CLIENTS_EXCLUSIVE;
    size_t fewest = SIZE_MAX, count, i;
    struct peer *found = NULL;

    *may_come = *any_left = false;
    for (i = 0; i < group->count; i++) {
        struct peer *worker = group->workers[i];

        if (worker->availability == PEER_FAILED)
            continue;
        *any_left = true;
        count = bindings_count(worker);
        if (exclusive && count > 0)
            continue;
        *may_come = true;
        if (worker->availability == PEER_HERE && count < fewest) {
            found = worker;
            fewest = count;
        }
    }
    return found;
}

/* All workers of the pool have their clients. */
static void wait_for_leave(const struct share *share, struct router_group *group)
{
    struct peer *client = share->offer.from;

    if (client->hold_expired) {
        offer_refuse(&share->offer, JSONRPC_SERVER_ERROR,
                     "every worker serves another client (busy_timeout_sec %u)",
                     group->sharing.busy_timeout_sec);
        return;
    }
    if (client->hold_until_ms == 0)
        client->hold_until_ms = share->offer.router->now_ms +
                                (int64_t)group->sharing.busy_timeout_sec * 1000;
    offer_hold_on(&share->offer, &group->waiting);
    share->offer.route->action = ROUTE_HOLD_UNTIL;
    share->offer.route->hold_until_ms = client->hold_until_ms;
}

static struct peer *bind_client(const struct share *share, struct router_group *group)
{
    bool may_come, any_left;
    struct peer *worker = find_unbound(group, &may_come, &any_left);

    share->offer.router->demand = true;
    if (worker != NULL) {
        share->offer.from->hold_expired = false; /* the wait for a worker is over, in time */
        return bindings_add(share->offer.from, worker) == STDIO_BUS_OK ? worker : NULL;
    }
    if (!any_left)
        offer_refuse(&share->offer, JSONRPC_SERVER_ERROR, "no worker left to serve this request");
    else if (may_come)
        offer_hold_on(&share->offer, &group->waiting);
    else
        wait_for_leave(share, group);
    return NULL;
}

static struct peer *bound_worker(const struct share *share, struct router_group *group)
{
    struct peer *worker =
        bindings_worker(share->offer.from, (size_t)(group - share->offer.router->pools));

    if (worker == NULL)
        worker = bind_client(share, group);
    if (worker == NULL ||
        (share->offer.asks &&
         offer_refused_at_once(&share->offer, &share->offer.router->from_clients)))
        return NULL;
    return worker;
}

/* --- the decision --- */

/* Where ids are rewritten, what was not translated may name another client's request. */
static bool is_kept_back(const struct share *share, const struct peer *worker)
{
    if (share->subject == ABOUT_NOTHING || !sharing_of(&share->offer, worker)->rewrite_ids)
        return false;
    if (share->offer.asks)
        offer_refuse(&share->offer, JSONRPC_INVALID_REQUEST, "the method of a notification");
    else if (share->subject != ABOUT_OWN_TOKEN || translation_is_ours(share, worker))
        offer_drop(&share->offer, "it names a request that is over");
    else
        return false;
    return true;
}

/* Records what the message changes; session_id is the key of a new session, if it starts one. */
static void commit(struct share *share, struct peer *worker, struct slice session_id)
{
    struct router *router = share->offer.router;

    if (is_kept_back(share, worker))
        return;
    if (share->offer.asks &&
        translation_record(share, &router->from_clients, worker) != STDIO_BUS_OK)
        return;
    if (session_id.data != NULL &&
        sessions_add(&router->sessions, session_id, worker, share->offer.from) == NULL) {
        if (share->offer.route->recorded != NULL)
            holds_id_free(router, share->offer.route->recorded);
        share->offer.route->recorded = NULL;
        return;
    }
    translation_forward(share, worker);
}

static void to_shared(struct share *share, struct router_group *group)
{
    struct router *router = share->offer.router;
    struct slice id = share->session_id, none = {NULL, 0};
    struct session *session = id.data != NULL ? sessions_find(&router->sessions, id) : NULL;
    struct peer *worker;

    if (share->offer.asks && offer_refused_at_once(&share->offer, &router->from_clients))
        return;
    if (session == NULL && id.data != NULL && !offer_session_left(&share->offer))
        return;
    if (session != NULL)
        worker = session->worker;
    else
        worker = offer_take_turn(&share->offer, group, id_free_at);
    if (worker == NULL ||
        (session != NULL && !offer_is_ready(&share->offer, worker, id_free_at)))
        return;
    share->sharing = sharing_of(&share->offer, worker);
    commit(share, worker, session == NULL ? id : none);
}

static void to_bound(struct share *share, struct router_group *group)
{
    struct peer *worker = bound_worker(share, group);
    char buffer[SESSIONS_KEY_MAX];
    struct slice key = {NULL, 0};

    if (worker == NULL || !offer_is_ready(&share->offer, worker, id_free_at))
        return;
    if (share->session_id.data != NULL && group->sharing.clients == CLIENTS_STICKY) {
        /* They are the worker's own affair, so that two workers may use one id. */
        key = sessions_scoped_key(buffer, worker, share->session_id);
        if (sessions_find(&share->offer.router->sessions, key) != NULL)
            key.data = NULL;
        else if (!offer_session_left(&share->offer))
            return;
    }
    commit(share, worker, key);
}

/* A notification that names a request goes where that is. False: it names none. */
static bool to_subject(struct share *share)
{
    struct router *router = share->offer.router;
    struct request *request = NULL;
    struct peer *worker = NULL;
    bool stale = false;

    if (share->offer.asks)
        return false;
    if (share->subject == ABOUT_PROGRESS) {
        request = translation_progress(share, &router->from_workers, &stale);
        worker = request != NULL ? request->asker : NULL;
        stale = stale || share->sharing->rewrite_ids; /* each token that it was given is known */
    } else if (share->subject != ABOUT_NOTHING) {
        request = translation_own_request(share, &router->from_clients);
        worker = request != NULL ? request->answerer : NULL;
        stale = request == NULL && share->subject != ABOUT_OWN_TOKEN &&
                share->sharing->rewrite_ids;
    }
    if (request == NULL && !stale)
        return false;
    if (worker == NULL || worker->availability != PEER_HERE) {
        offer_drop(&share->offer, "it names a request that is over");
    } else if (worker->full) {
        offer_hold_on(&share->offer, &worker->waiting);
    } else {
        if (share->subject == ABOUT_CANCELLED)
            share->offer.route->cancelled = request;
        translation_forward(share, worker);
    }
    return true;
}

/* Whatever pool its client names, a session's messages go to its worker: as that one needs them. */
static struct router_group *group_of_session(const struct offer *offer)
{
    struct slice id = offer->message->session_id;
    struct session *session = id.data != NULL ? sessions_find(&offer->router->sessions, id) : NULL;

    return session != NULL ? &offer->router->pools[session->worker->pool] : NULL;
}

/* False: the message is none for a pool with keys of its own. */
static bool find_group(struct share *share, struct router_group **group, bool *top_session)
{
    struct router *router = share->offer.router;
    struct slice pool = share->offer.message->pool;

    *group = pool.data == NULL && router->all.count == 0 ? &router->pools[0]
                                                         : offer_find_group(router, pool);
    if (*group == NULL)
        return false;
    *top_session = (*group)->top_sessions || (*group)->plain;
    if ((*group)->plain)
        *group = group_of_session(&share->offer);
    return *group != NULL && !(*group)->plain;
}

/* A reply that nobody waits for could be taken for one to another request, whose id is the same at
 * the worker. */
static void to_pool(struct share *share, bool is_reply)
{
    struct router_group *group;
    bool top_session;

    if (!find_group(share, &group, &top_session)) {
        offer_to_worker(&share->offer);
        return;
    }
    if (is_reply) {
        offer_discard(&share->offer, "reply to no pending request");
        return;
    }
    if (share->offer.asks && message_is_response(share->offer.message)) {
        offer_refuse(&share->offer, JSONRPC_INVALID_REQUEST, "a result or error in a request");
        return;
    }
    share->sharing = &group->sharing;
    translation_read(share, sharing_reads_tokens(&group->sharing));
    if (top_session && share->offer.message->session_id.data != NULL)
        share->session_id = share->offer.message->session_id;
    if (to_subject(share))
        return;
    if (group->sharing.clients == CLIENTS_SHARED)
        to_shared(share, group);
    else
        to_bound(share, group);
}

void router_share_from_client(struct router *router, struct peer *client,
                              const struct message *message, const struct scan_fields *fields,
                              struct route *route)
{
    struct share share;
    bool is_reply = message_is_response(message) && message->method.data == NULL;

    translation_begin(&share, router, client, message, fields, route);
    share.offer.asks = message->id.type != ID_NONE && !is_reply;
    if (message->id.type != ID_NONE)
        share.offer.id_hash = requests_hash(&router->from_clients, message->id);
    if (!is_reply || message->id.type == ID_NONE || !offer_reply(&share.offer)) {
        to_pool(&share, is_reply);
    } else if (route->answered != NULL) {
        translation_answer(&share, route->answered);
        translation_forward(&share, route->to);
    }
    offer_finish(&share.offer);
    if (route->action != ROUTE_HOLD && route->action != ROUTE_HOLD_UNTIL)
        client->hold_until_ms = 0;
}
