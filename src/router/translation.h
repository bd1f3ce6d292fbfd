/* Ids and progress tokens on their way through a pool that rewrites them, and what a message of a
 * pool with keys of its own refers to. The same for both directions: who asks gets back what it
 * wrote, who answers sees numbers of ours. */
#ifndef STDIO_BUS_ROUTER_TRANSLATION_H
#define STDIO_BUS_ROUTER_TRANSLATION_H

#include "format/references.h"
#include "router/offer.h"

/* What a notification is about, by its method. A request has it too, and is not one. */
enum subject {
    ABOUT_NOTHING,   /* that we know of */
    ABOUT_CANCELLED, /* MCP: gives up a request of its sender's; it will not be answered */
    ABOUT_REQUEST,   /* LSP, ACP: the same, and it will be */
    ABOUT_PROGRESS,  /* of a request that its sender has to answer */
    ABOUT_OWN_TOKEN  /* LSP: to a token that the sender made up */
};

/* A decision in a pool with keys of its own. */
struct share {
    struct offer offer;
    const struct scan_fields *fields;
    const struct sharing *sharing; /* the pool's */
    enum subject subject;
    const struct scan_field *subject_field;
    struct message_id subject_id;
    struct slice session_id;      /* data NULL: none */
    struct references references;
    struct message_scratch scratch;
};

/* Opens a decision; the id's hash is left out. */
static inline void translation_begin(struct share *share, struct router *router, struct peer *from,
                                     const struct message *message,
                                     const struct scan_fields *fields, struct route *route)
{
    route->action = ROUTE_NO_MEMORY;
    route->to = NULL;
    route->recorded = route->answered = route->cancelled = NULL;
    route->waits_for_id = false;
    route->edit_count = 0;
    share->offer.router = router;
    share->offer.from = from;
    share->offer.message = message;
    share->offer.id_hash = 0;
    share->offer.route = route;
    share->fields = fields;
    share->references.present = 0;
}

/* Finds what the message refers to: in a request its tokens when `tokens`, in what has the method
 * of such a notification its subject, in all of them their session. */
void translation_read(struct share *share, bool tokens);

/* Enters a request into the table, under an id of ours when the pool rewrites them; the message
 * gets that id and tokens of ours. STDIO_BUS_ERR when memory is out. */
int translation_record(struct share *share, struct requests *requests, struct peer *answerer);

/* The subject's request, one of the sender's own; the message gets its id at the answerer. NULL:
 * there is none any more. */
struct request *translation_own_request(struct share *share, struct requests *requests);

/* The request that the sender reports progress of; the message gets the token of who asked. NULL:
 * there is none; *stale: the token was one of ours, for a request that is over. */
struct request *translation_progress(struct share *share, struct requests *requests, bool *stale);

/* The subject may be a number that the answerer got from us: any that it has got, and what nobody
 * can read. */
bool translation_is_ours(const struct share *share, const struct peer *answerer);

/* The request that a worker answers in a pool that rewrites ids, or NULL. */
struct request *translation_answered(const struct share *share);

/* The answer gets the id that its asker wrote. */
void translation_answer(struct share *share, const struct request *request);

/* The decision is to forward, with what was edited. */
static inline void translation_forward(const struct share *share, struct peer *to)
{
    offer_forward(&share->offer, to);
    if (share->offer.route->edit_count > 0)
        share->offer.route->action = ROUTE_FORWARD_EDITED;
}

#endif
