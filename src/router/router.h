/* The router: where does this message go (spec 6)? Pure decisions over the session and pending
 * request tables: no I/O, no clock, no knowledge of connections or processes.
 *
 * A peer whose message cannot go anywhere yet is *held*: it is put on the list of what it waits for
 * and comes back through router_next_released, exactly when that has changed. The owner then offers
 * the same message again. */
#ifndef STDIO_BUS_ROUTER_ROUTER_H
#define STDIO_BUS_ROUTER_ROUTER_H

#include "base/limits.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/splice.h"
#include "config/sharing.h"
#include "format/message.h"
#include "router/peer.h"
#include "router/requests.h"
#include "router/sessions.h"

/* Workers that take turns: those of one pool, or of all shared pools. */
struct router_group {
    struct slice id; /* the pool's; data NULL for the group of all */
    struct peer **workers;
    size_t count;
    size_t turn; /* whose turn it is next */

    bool top_sessions; /* all: the session ids of some of its pools stand at the top level */
    bool plain; /* nothing of what follows is of use: as the specification has it */
    struct sharing sharing;
    struct list waiting; /* peers held until a worker has no client */
    struct list timed;   /* details of requests with a deadline, the first one first */
};

struct router {
    const struct limits *limits;
    struct sessions sessions;
    struct requests from_clients; /* what clients asked of workers */
    struct requests from_workers; /* what workers asked of session owners */
    struct router_group all;
    struct router_group *pools;
    size_t pool_count;
    uint64_t next_number;
    uint64_t hold_count;
    int64_t now_ms; /* set by the owner, for what has a deadline */
    bool demand;    /* an exclusive pool may need a process more, or less; the owner looks, and
                     * resets it */
    struct list waiting_for_worker; /* peers held until some worker takes messages */
    struct list roaming;            /* held peers that any free worker of their group would serve */
    struct list released;           /* peers that may try again */
};

enum route_action {
    ROUTE_FORWARD,   /* to route->to; then call router_forwarded or router_forward_failed */
    ROUTE_HOLD,      /* the sender is held; offer the message again when it is released */
    ROUTE_REFUSE,    /* not delivered: tell the sender code and text if it asked something */
    ROUTE_DISCARD,   /* not delivered: log the text */
    ROUTE_NO_MEMORY, /* nothing happened: offer the message again later */

    /* In pools with keys of their own alone: */
    ROUTE_FORWARD_EDITED, /* as FORWARD, with values in the message replaced: route->edits */
    ROUTE_BROADCAST,      /* to all clients that the sender is bound to */
    ROUTE_HOLD_UNTIL,     /* as HOLD, but call router_hold_expired at route->hold_until_ms */
    ROUTE_DROP            /* not delivered, and that is nothing to worry about */
};

#define ROUTE_EDITS_MAX 3

struct route {
    enum route_action action;
    struct peer *to;
    struct request *recorded; /* FORWARD of a request: its entry in the pending table */
    struct request *answered; /* FORWARD of an answer: what it answers */
    bool waits_for_id;        /* HOLD: until an id is free, which nothing else bounds */
    int code;
    char text[160];
    int64_t hold_until_ms;
    struct request *cancelled; /* FORWARD: the message gives this request up for good */
    unsigned edit_count;
    struct splice_edit edits[ROUTE_EDITS_MAX]; /* live as long as the route and route->answered */
    char numbers[ROUTE_EDITS_MAX][NUMBER_DIGITS]; /* texts of edits */
};

/* Told of each request that will not be answered because its answerer has gone. Must not call the
 * router. */
typedef void router_unanswered_fn(void *user_data, struct peer *asker, struct message_id id);

/* An empty router over `limits` (borrowed). */
void router_init(struct router *router, const struct limits *limits,
                 const struct siphash_key *key);

/* Frees the tables; peers are their owners'. */
void router_free(struct router *router);

/* Adds a pool; the id is borrowed. Its number (0, 1, ...) or STDIO_BUS_ERR when memory is out. */
int router_add_pool(struct router *router, struct slice id);

/* Gives a pool without workers, and nothing routed yet, keys of its own. */
void router_set_sharing(struct router *router, size_t pool, const struct sharing *sharing);

/* Makes a zeroed peer known as a client. */
void router_add_client(struct router *router, struct peer *client);

/* Makes a zeroed peer known as a worker of a pool, PEER_AWAY. STDIO_BUS_ERR when memory is out. */
int router_add_worker(struct router *router, struct peer *worker, size_t pool);

/* True when the worker is one of the group's. */
bool router_group_has(const struct router_group *group, const struct peer *worker);

/* Decides about a client's message (spec 6.1, 6.2; replies to workers' requests). */
void router_from_client(struct router *router, struct peer *client, const struct message *message,
                        struct route *route);

/* Decides about a worker's message (spec 6.3). */
void router_from_worker(struct router *router, struct peer *worker, const struct message *message,
                        struct route *route);

/* The same where some pool has keys of its own: a client's message, and that of a worker of such a
 * pool. `fields` is what the scanner found. */
void router_share_from_client(struct router *router, struct peer *client,
                              const struct message *message, const struct scan_fields *fields,
                              struct route *route);
void router_share_from_worker(struct router *router, struct peer *worker,
                              const struct message *message, const struct scan_fields *fields,
                              struct route *route);

/* Told of each request whose time is over; it is abandoned after the call. Must not call the
 * router. */
typedef void router_expired_fn(void *user_data, struct request *request);

/* Gives up the requests whose deadline (request_timeout_sec) is at or before router->now_ms.
 * Returns the next deadline, or -1. */
int64_t router_expire(struct router *router, router_expired_fn *expired, void *user_data);

/* The forwarded message is in the destination's queue: an answered request is done with. */
void router_forwarded(struct router *router, const struct route *route);

/* After router_forwarded, where route->cancelled is set: it will be answered to nobody. */
void router_cancelled(struct router *router, const struct route *route);

/* It could not be queued (memory): as if it had never been offered. */
void router_forward_failed(struct router *router, const struct route *route);

/* The worker takes messages now, will not come back, or is away for a moment. */
void router_worker_available(struct router *router, struct peer *worker,
                             enum peer_availability availability);

/* The worker's output has ended: its sessions are invalidated (spec 3.4.4), what it had to answer
 * is discarded (spec 7.1.2) and told to `unanswered`. It is PEER_AWAY then, and a new peer. */
void router_worker_gone(struct router *router, struct peer *worker,
                        router_unanswered_fn *unanswered, void *user_data);

/* The client will answer nothing any more; what workers asked of it is told to `unanswered`. */
void router_client_input_ended(struct router *router, struct peer *client,
                               router_unanswered_fn *unanswered, void *user_data);

/* The client has disconnected: its sessions are invalidated (spec 3.4.5), its pending requests
 * discarded (spec 7.2), and it is on no list any more. */
void router_client_gone(struct router *router, struct peer *client,
                        router_unanswered_fn *unanswered, void *user_data);

/* The peer's output queue is over its limit, or below half of it again (spec 7.3.1). */
void router_set_full(struct router *router, struct peer *peer, bool full);

/* The peer has been held for an id too long: its message will be refused when offered again. */
void router_hold_expired(struct router *router, struct peer *peer);

/* Holds a peer until the caller releases it with router_release: the memory is out. */
void router_hold(struct list *list, struct peer *peer);
void router_release(struct router *router, struct peer *peer);

/* Takes the next peer that may try again, or NULL. */
struct peer *router_next_released(struct router *router);

#endif
