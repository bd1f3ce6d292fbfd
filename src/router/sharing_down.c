/* From a worker of a pool with keys of its own (config/sharing.h) to clients. */
#include "build_config.h"

#include "router/router.h"

#include "base/error.h"
#include "router/bindings.h"
#include "router/holds.h"
#include "router/translation.h"

static struct slice session_key(const struct share *share, struct slice id,
                                char key[SESSIONS_KEY_MAX])
{
    if (share->sharing->clients == CLIENTS_SHARED)
        return id;
    return sessions_scoped_key(key, share->offer.from, id);
}

/* --- answers (spec 6.3.1) --- */

/* A session that the answer tells is the asker's (ACP session/new). */
static int learn(struct share *share, const struct request *request)
{
    struct sessions *sessions = &share->offer.router->sessions;
    const struct message *message = share->offer.message;
    char buffer[SESSIONS_KEY_MAX], decoded[STDIO_BUS_MAX_SESSION_ID_LEN];
    struct references found;
    struct slice id;

    if (request->details == NULL || !request->details->learns || !message->has_result)
        return STDIO_BUS_OK;
    references_find(&found, message->bytes, 0);
    if (!references_string(&found, REFERENCE_RESULT_SESSION, message->bytes, decoded,
                           sizeof decoded, &id))
        return STDIO_BUS_OK;
    id = session_key(share, id, buffer);
    if (sessions_find(sessions, id) != NULL || sessions_full(sessions))
        return STDIO_BUS_OK;
    return sessions_add(sessions, id, share->offer.from, request->asker) != NULL ? STDIO_BUS_OK
                                                                               : STDIO_BUS_ERR;
}

static void answer(struct share *share)
{
    struct request *request = NULL;

    if (share->sharing->rewrite_ids)
        request = translation_answered(share);
    else if (share->offer.message->id.type != ID_NONE)
        request = requests_by_answerer(&share->offer.router->from_clients, share->offer.from,
                                       share->offer.message->id, share->offer.id_hash);
    if (request == NULL || request->state == REQUEST_RESERVED) {
        offer_discard(&share->offer, "response to no pending request");
    } else if (request->state == REQUEST_ABANDONED) {
        offer_drop(&share->offer, "response to a request that was given up");
        holds_id_free(share->offer.router, request);
    } else if (request->asker->full) {
        offer_hold_on(&share->offer, &request->asker->waiting);
    } else if (learn(share, request) == STDIO_BUS_OK) {
        share->offer.route->answered = request;
        translation_answer(share, request);
        translation_forward(share, request->asker);
    }
}

/* --- what nobody asked for --- */

/* The client that it can only be for: the worker's only one, or else the only one that waits for an
 * answer of it. */
static struct peer *lone_client(const struct peer *worker)
{
    struct list_node *first = worker->bindings.head.next, *node, *following;
    struct peer *found = NULL;

    if (list_empty(&worker->bindings))
        return NULL;
    if (first->next == &worker->bindings.head)
        return list_entry(first, struct binding, in_worker)->client;
    list_each(&worker->answering, node, following) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state != REQUEST_ACTIVE || request->asker == found)
            continue;
        if (found != NULL)
            return NULL;
        found = request->asker;
    }
    return found;
}

static void ask(struct share *share, struct peer *client)
{
    struct requests *requests = &share->offer.router->from_workers;
    struct request *busy;

    if (client->input_ended)
        offer_refuse(&share->offer, JSONRPC_SERVER_ERROR,
                     "the client cannot answer: it has closed its input");
    else if (offer_refused_at_once(&share->offer, requests))
        return;
    else if (!share->sharing->rewrite_ids &&
             !offer_id_free_at(&share->offer, requests, client, &busy))
        offer_hold_on_id(&share->offer, busy, NULL);
    else if (translation_record(share, requests, client) == STDIO_BUS_OK)
        translation_forward(share, client);
}

static void send_to(struct share *share, struct peer *client)
{
    if (client->full)
        offer_hold_on(&share->offer, &client->waiting);
    else if (share->offer.asks)
        ask(share, client);
    else
        translation_forward(share, client);
}

/* To all of its clients: when one of them takes nothing now, later. */
static void broadcast(const struct share *share)
{
    const struct list *bindings = &share->offer.from->bindings;
    struct list_node *node, *following;

    if (list_empty(bindings)) {
        offer_drop(&share->offer, "the worker has no client");
        return;
    }
    list_each(bindings, node, following) {
        struct peer *client = list_entry(node, struct binding, in_worker)->client;

        if (client->full) {
            offer_hold_on(&share->offer, &client->waiting);
            return;
        }
    }
    share->offer.route->action = ROUTE_BROADCAST;
}

/* What names a request of one client, or of the worker's own, goes where that is. */
static bool to_subject(struct share *share)
{
    struct router *router = share->offer.router;
    struct request *request = NULL;
    struct peer *client = NULL;
    bool stale = false;

    if (share->offer.asks)
        return false;
    if (share->subject == ABOUT_PROGRESS) {
        request = translation_progress(share, &router->from_clients, &stale);
        client = request != NULL ? request->asker : NULL;
    } else if (share->subject != ABOUT_NOTHING) {
        request = translation_own_request(share, &router->from_workers);
        client = request != NULL ? request->answerer : NULL;
        stale = request == NULL && share->subject != ABOUT_OWN_TOKEN &&
                share->sharing->rewrite_ids;
    }
    if (request == NULL && !stale)
        return false;
    if (client == NULL) {
        offer_drop(&share->offer, "it names a request that is over");
        return true;
    }
    send_to(share, client);
    if (share->subject == ABOUT_CANCELLED && share->offer.route->to != NULL)
        share->offer.route->cancelled = request;
    return true;
}

/* A session that is not known yet may be one that a request in flight is about to start; but not
 * where it may as well be that of a client who has left: to nobody else. */
static void to_session(struct share *share)
{
    struct peer *worker = share->offer.from, *client = NULL;
    char buffer[SESSIONS_KEY_MAX];
    struct session *session = sessions_find(&share->offer.router->sessions,
                                            session_key(share, share->session_id, buffer));

    if (session != NULL)
        client = session->owner;
    else if (!worker->client_left)
        client = lone_client(worker);
    if (client != NULL)
        send_to(share, client);
    else
        offer_refuse(&share->offer, JSONRPC_SERVER_ERROR, "unroutable: no such session");
}

static void to_client(struct share *share)
{
    bool exclusive = share->sharing->clients == CLIENTS_EXCLUSIVE;
    struct peer *client;

    if (to_subject(share))
        return;
    if (share->session_id.data != NULL && !exclusive) {
        to_session(share);
        return;
    }
    if (share->sharing->clients == CLIENTS_STICKY && !share->offer.asks) {
        broadcast(share);
        return;
    }
    client = lone_client(share->offer.from);
    if (client != NULL)
        send_to(share, client);
    else if (exclusive && !share->offer.asks)
        offer_drop(&share->offer, "the worker has no client");
    else
        offer_refuse(&share->offer, JSONRPC_SERVER_ERROR, "unroutable: %s",
                     share->sharing->clients == CLIENTS_SHARED ? "no sessionId to tell which client"
                                                               : "nothing tells which client");
}

void router_share_from_worker(struct router *router, struct peer *worker,
                              const struct message *message, const struct scan_fields *fields,
                              struct route *route)
{
    bool is_response = message_is_response(message);
    struct share share;

    translation_begin(&share, router, worker, message, fields, route);
    share.offer.asks = message->id.type != ID_NONE && message->method.data != NULL;
    share.sharing = &router->pools[worker->pool].sharing;
    if (message->id.type != ID_NONE && !(share.sharing->rewrite_ids && is_response))
        share.offer.id_hash = requests_hash(&router->from_clients, message->id);
    if (is_response) {
        answer(&share);
    } else {
        translation_read(&share, sharing_reads_tokens(share.sharing));
        to_client(&share);
    }
    offer_finish(&share.offer);
    if (route->action != ROUTE_BROADCAST && route->action != ROUTE_HOLD)
        worker->broadcast = 0; /* those who should have got the rest have gone */
}

void router_cancelled(struct router *router, const struct route *route)
{
    if (route->cancelled->state == REQUEST_ACTIVE)
        holds_abandon(router, route->cancelled);
}

/* --- requests whose time is over --- */

static void expire_pool(struct router *router, struct router_group *pool,
                        router_expired_fn *expired, void *user_data)
{
    struct list_node *node, *following;

    list_each(&pool->timed, node, following) {
        struct request_details *details = list_entry(node, struct request_details, timed);

        if (details->deadline_ms > router->now_ms)
            return;
        expired(user_data, details->request);
        holds_abandon(router, details->request);
    }
}

int64_t router_expire(struct router *router, router_expired_fn *expired, void *user_data)
{
    int64_t next = -1;
    size_t i;

    for (i = 0; i < router->pool_count; i++) {
        struct list *timed = &router->pools[i].timed;
        int64_t deadline_ms;

        expire_pool(router, &router->pools[i], expired, user_data);
        if (list_empty(timed))
            continue;
        deadline_ms = list_entry(timed->head.next, struct request_details, timed)->deadline_ms;
        if (next < 0 || deadline_ms < next)
            next = deadline_ms;
    }
    return next;
}
