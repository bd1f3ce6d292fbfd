/* What the decisions of router.c and of sharing_up.c, sharing_down.c and translation.c have in
 * common. Of no use to anybody else. */
#ifndef STDIO_BUS_ROUTER_OFFER_H
#define STDIO_BUS_ROUTER_OFFER_H

#include <stdio.h>

#include "router/holds.h"
#include "router/router.h"

/* What the functions of one decision share. */
struct offer {
    struct router *router;
    struct peer *from;
    const struct message *message;
    uint64_t id_hash;
    bool asks; /* it will be recorded as a pending request */
    struct route *route;
};

/* NULL: there is no such pool. */
struct router_group *offer_find_group(struct router *router, struct slice pool);

/* Enters the request into the pending table (spec 6.2). STDIO_BUS_ERR when memory is out. */
int offer_record(const struct offer *offer, struct requests *requests, struct peer *answerer);

/* What keeps any request from being recorded, wherever it would go. */
bool offer_refused_at_once(const struct offer *offer, const struct requests *requests);

/* A reply (result or error, no method) to what a worker asked. False: nobody asked. */
bool offer_reply(const struct offer *offer);

/* Everything else that a client sends, as the specification has it. */
void offer_to_worker(const struct offer *offer);

void offer_refuse(const struct offer *offer, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline void offer_finish(const struct offer *offer)
{
    /* An id that was kept free and then not used goes to the next in line. */
    if (offer->from->reserved != NULL)
        holds_id_free(offer->router, offer->from->reserved);
    if (offer->route->action != ROUTE_HOLD)
        offer->from->hold_expired = false;
}

static inline void offer_forward(const struct offer *offer, struct peer *to)
{
    offer->route->action = ROUTE_FORWARD;
    offer->route->to = to;
}

static inline void offer_discard(const struct offer *offer, const char *text)
{
    offer->route->action = ROUTE_DISCARD;
    snprintf(offer->route->text, sizeof offer->route->text, "%s", text);
}

static inline void offer_drop(const struct offer *offer, const char *text)
{
    offer_discard(offer, text);
    offer->route->action = ROUTE_DROP;
}

/* Held until `list`'s owner changes. */
static inline void offer_hold_on(const struct offer *offer, struct list *list)
{
    offer->route->action = ROUTE_HOLD;
    offer->from->held_as = ++offer->router->hold_count;
    list_append(list, &offer->from->hold);
}

/* Held until the id is free. */
static inline void offer_hold_on_id(const struct offer *offer, struct request *busy,
                                    struct router_group *group)
{
    offer_hold_on(offer, &busy->waiters);
    offer->route->waits_for_id = true;
    offer->from->hold_hash = offer->id_hash;
    if (group != NULL) {
        offer->from->group = group;
        list_append(&offer->router->roaming, &offer->from->roam);
    }
}

/* True when the answerer could take the id from this sender now; *busy is then NULL or the entry
 * that was reserved for it, otherwise the request that has the id. */
static inline bool offer_id_free_at(const struct offer *offer, const struct requests *requests,
                                    const struct peer *answerer, struct request **busy)
{
    *busy = requests_by_answerer(requests, answerer, offer->message->id, offer->id_hash);
    return *busy == NULL || *busy == offer->from->reserved;
}

/* False: the message would start a session too many, and was refused. */
static inline bool offer_session_left(const struct offer *offer)
{
    const struct sessions *sessions = &offer->router->sessions;

    if (!sessions_full(sessions))
        return true;
    offer_refuse(offer, JSONRPC_SERVER_ERROR, "too many sessions (max_sessions %zu)",
                 sessions->max);
    return false;
}

/* True when the worker could take the message's id now, with *busy as above. */
typedef bool offer_id_free_fn(const struct offer *offer, const struct peer *worker,
                              struct request **busy);

/* A worker that the message is bound to takes it now, or the sender is held. */
static inline bool offer_is_ready(const struct offer *offer, struct peer *worker,
                                  offer_id_free_fn *id_free)
{
    struct request *busy = NULL;

    if (worker->availability != PEER_HERE)
        offer_hold_on(offer, &offer->router->waiting_for_worker);
    else if (worker->full)
        offer_hold_on(offer, &worker->waiting);
    else if (!id_free(offer, worker, &busy))
        offer_hold_on_id(offer, busy, NULL);
    else
        return true;
    return false;
}

/* Whose turn is it (spec 6.1.1, 6.1.3: round-robin)? Passes over those that cannot take the message
 * now. NULL: nobody can, and the sender was held or refused. */
static inline struct peer *offer_take_turn(const struct offer *offer, struct router_group *group,
                                           offer_id_free_fn *id_free)
{
    struct request *first_busy = NULL; /* a worker would take it if this id were free there */
    bool may_come = false;             /* some worker will take messages again */
    size_t at = group->turn, i;

    for (i = 0; i < group->count; i++, at++) {
        struct peer *worker;
        struct request *busy = NULL;

        if (at >= group->count)
            at = 0;
        worker = group->workers[at];
        if (worker->availability != PEER_FAILED)
            may_come = true;
        if (worker->availability != PEER_HERE || worker->full)
            continue;
        if (id_free(offer, worker, &busy)) {
            group->turn = at + 1;
            return worker;
        }
        if (first_busy == NULL)
            first_busy = busy;
    }
    if (first_busy != NULL)
        offer_hold_on_id(offer, first_busy, group);
    else if (may_come)
        offer_hold_on(offer, &offer->router->waiting_for_worker);
    else
        offer_refuse(offer, JSONRPC_SERVER_ERROR, "no worker left to serve this request");
    return NULL;
}

#endif
