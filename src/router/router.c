#include "build_config.h"

#include "router/router.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "router/holds.h"
#include "router/offer.h"

void offer_refuse(const struct offer *offer, int code, const char *format, ...)
{
    va_list args;

    offer->route->action = ROUTE_REFUSE;
    offer->route->code = code;
    va_start(args, format);
    vsnprintf(offer->route->text, sizeof offer->route->text, format, args);
    va_end(args);
}

/* Enters the request into the pending table (spec 6.2). */
int offer_record(const struct offer *offer, struct requests *requests, struct peer *answerer)
{
    struct request *request = offer->from->reserved;

    if (request != NULL && request->answerer == answerer &&
        message_id_equal(request->answerer_id, offer->message->id)) {
        if (request_activate(request) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
        offer->from->reserved = NULL;
    } else {
        request = requests_add(requests, offer->from, answerer, offer->message->id,
                               offer->id_hash);
        if (request == NULL)
            return STDIO_BUS_ERR;
    }
    offer->route->recorded = request;
    return STDIO_BUS_OK;
}

/* What keeps any request from being recorded, wherever it would go. */
bool offer_refused_at_once(const struct offer *offer, const struct requests *requests)
{
    if (requests_by_asker(requests, offer->from, offer->message->id, offer->id_hash) != NULL) {
        offer_refuse(offer, JSONRPC_INVALID_REQUEST,
                     "id is already in use by a request of yours that is still in flight");
    } else if (requests_full(requests)) {
        offer_refuse(offer, JSONRPC_SERVER_ERROR,
                     "too many pending requests (max_pending_requests %zu)", requests->max);
    } else if (offer->from->hold_expired) {
        offer_refuse(offer, JSONRPC_SERVER_ERROR,
                     "id is still in use by another request that is in flight");
    } else {
        return false;
    }
    return true;
}

/* A reply (result or error, no method) to what a worker asked. False: nobody asked. */
bool offer_reply(const struct offer *offer)
{
    struct request *request = requests_by_answerer(&offer->router->from_workers, offer->from,
                                                   offer->message->id, offer->id_hash);

    if (request == NULL || request->state == REQUEST_RESERVED)
        return false;
    if (request->state == REQUEST_ABANDONED) {
        offer_discard(offer, "reply to a request of a worker that is gone");
        holds_id_free(offer->router, request);
    } else if (request->asker->full) {
        offer_hold_on(offer, &request->asker->waiting);
    } else {
        offer->route->answered = request;
        offer_forward(offer, request->asker);
    }
    return true;
}

struct router_group *offer_find_group(struct router *router, struct slice pool)
{
    size_t i;

    if (pool.data == NULL)
        return &router->all;
    for (i = 0; i < router->pool_count; i++) {
        if (slice_equal(router->pools[i].id, pool))
            return &router->pools[i];
    }
    return NULL;
}

static inline bool id_free_at(const struct offer *offer, const struct peer *worker,
                              struct request **busy)
{
    return !offer->asks || offer_id_free_at(offer, &offer->router->from_clients, worker, busy);
}

/* The worker for a message that is bound to none yet, or NULL: it was held or refused. */
static struct peer *find_worker(const struct offer *offer)
{
    struct router_group *group = offer_find_group(offer->router, offer->message->pool);
    struct peer *reserved = offer->from->reserved != NULL ? offer->from->reserved->answerer : NULL;

    if (group == NULL) {
        offer_refuse(offer, JSONRPC_INVALID_PARAMS, "no such pool");
        return NULL;
    }
    if (reserved != NULL && reserved->availability == PEER_HERE && !reserved->full &&
        router_group_has(group, reserved))
        return reserved;
    return offer_take_turn(offer, group, id_free_at);
}

/* Records what the message changes: a pending request, a new session. */
static void commit(const struct offer *offer, struct peer *worker, bool new_session)
{
    struct router *router = offer->router;

    if (offer->asks && offer_record(offer, &router->from_clients, worker) != STDIO_BUS_OK)
        return;
    if (new_session && sessions_add(&router->sessions, offer->message->session_id, worker,
                                    offer->from) == NULL) {
        if (offer->route->recorded != NULL)
            holds_id_free(router, offer->route->recorded);
        offer->route->recorded = NULL;
        return;
    }
    offer_forward(offer, worker);
}

void offer_to_worker(const struct offer *offer)
{
    struct router *router = offer->router;
    struct slice id = offer->message->session_id;
    struct session *session = id.data != NULL ? sessions_find(&router->sessions, id) : NULL;
    bool new_session = id.data != NULL && session == NULL;
    struct peer *worker;

    if (offer->asks && offer_refused_at_once(offer, &router->from_clients))
        return;
    if (new_session && !offer_session_left(offer))
        return;
    if (session != NULL) /* spec 6.1.2 */
        worker = offer_is_ready(offer, session->worker, id_free_at) ? session->worker : NULL;
    else
        worker = find_worker(offer);
    if (worker != NULL)
        commit(offer, worker, new_session);
}

static struct offer begin(struct router *router, struct peer *from, const struct message *message,
                          struct route *route)
{
    struct offer offer = {router, from, message, 0, false, route};

    route->action = ROUTE_NO_MEMORY;
    route->to = NULL;
    route->recorded = route->answered = NULL;
    route->waits_for_id = false;
    if (message->id.type != ID_NONE)
        offer.id_hash = requests_hash(&router->from_clients, message->id);
    return offer;
}

void router_from_client(struct router *router, struct peer *client, const struct message *message,
                        struct route *route)
{
    struct offer offer = begin(router, client, message, route);
    bool is_reply = message_is_response(message) && message->method.data == NULL;

    offer.asks = message->id.type != ID_NONE && !is_reply;
    if (!is_reply || message->id.type == ID_NONE || !offer_reply(&offer))
        offer_to_worker(&offer);
    offer_finish(&offer);
}

/* Spec 6.3.1. */
static void route_response(const struct offer *offer)
{
    struct request *request = NULL;

    if (offer->message->id.type != ID_NONE)
        request = requests_by_answerer(&offer->router->from_clients, offer->from,
                                       offer->message->id, offer->id_hash);
    if (request == NULL || request->state == REQUEST_RESERVED) {
        offer_discard(offer, "response to no pending request");
    } else if (request->state == REQUEST_ABANDONED) {
        offer_discard(offer, "response to a request of a client that is gone");
        holds_id_free(offer->router, request);
    } else if (request->asker->full) {
        offer_hold_on(offer, &request->asker->waiting);
    } else {
        offer->route->answered = request;
        offer_forward(offer, request->asker);
    }
}

/* A worker asks the session's owner something. */
static void route_question(const struct offer *offer, struct peer *owner)
{
    struct requests *requests = &offer->router->from_workers;
    struct request *busy;

    if (owner->input_ended)
        offer_refuse(offer, JSONRPC_SERVER_ERROR,
                     "the client cannot answer: it has closed its input");
    else if (offer_refused_at_once(offer, requests))
        return;
    else if (!offer_id_free_at(offer, requests, owner, &busy))
        offer_hold_on_id(offer, busy, NULL);
    else if (offer_record(offer, requests, owner) == STDIO_BUS_OK)
        offer_forward(offer, owner);
}

/* Spec 6.3.2, 6.3.3. */
static void route_to_owner(const struct offer *offer)
{
    const struct message *message = offer->message;
    struct session *session = NULL;

    if (message->session_id.data != NULL)
        session = sessions_find(&offer->router->sessions, message->session_id);
    if (session == NULL && message->session_id.data == NULL)
        offer_refuse(offer, JSONRPC_SERVER_ERROR, "unroutable: no sessionId to tell which client");
    else if (session == NULL)
        offer_refuse(offer, JSONRPC_SERVER_ERROR, "unroutable: no such session");
    else if (session->owner->full)
        offer_hold_on(offer, &session->owner->waiting);
    else if (offer->asks)
        route_question(offer, session->owner);
    else
        offer_forward(offer, session->owner);
}

void router_from_worker(struct router *router, struct peer *worker, const struct message *message,
                        struct route *route)
{
    struct offer offer = begin(router, worker, message, route);

    offer.asks = message->id.type != ID_NONE && message->method.data != NULL;
    if (message_is_response(message))
        route_response(&offer);
    else
        route_to_owner(&offer);
    offer_finish(&offer);
}

void router_forwarded(struct router *router, const struct route *route)
{
    if (route->answered != NULL)
        holds_id_free(router, route->answered);
}

void router_forward_failed(struct router *router, const struct route *route)
{
    if (route->recorded != NULL)
        holds_id_free(router, route->recorded);
}
