/* The router: where does a message go (spec 6)? Pure decisions over the session and pending request
 * tables: no I/O, no clock, no knowledge of connections or processes.
 *
 * This file has the tables and the peers. to_worker.h and to_client.h decide (decision.h). A peer
 * whose message cannot go anywhere yet is held (waiting.h). departure.h has what follows when a
 * peer is gone. */
#ifndef STDIO_BUS_ROUTER_ROUTER_H
#define STDIO_BUS_ROUTER_ROUTER_H

#include "base/limits.h"
#include "base/list.h"
#include "base/siphash.h"
#include "router/group.h"
#include "router/handshake.h"
#include "router/peer.h"
#include "router/pending.h"
#include "router/roaming.h"
#include "router/sessions.h"
#include "router/tasks.h"

struct router {
    const struct limits *limits;
    struct sessions sessions;
    struct pending from_clients; /* what clients asked of workers */
    struct pending from_workers; /* what workers asked of clients */
    struct tasks tasks;
    struct group all;    /* the workers of all shared pools */
    struct group *usual; /* of messages for which no pool was named: all; where that is empty, the
                          * first pool */
    struct list pools;   /* struct group */
    struct list timing;  /* the same: of those, and of others that still have workers, the ones
                          * whose requests have deadlines (router/deadlines.h) */
    size_t client_count; /* admitted */
    size_t origin_count; /* of these */
    size_t worker_count;
    uint64_t limited_requests; /* refused by max_requests_per_client */
    uint64_t last_number;      /* of a peer, counted */
    bool timed;                /* some pool has a time limit */
    bool measures;             /* outcomes and times are counted (router/outcomes.h) */
    bool clocked;              /* one of both: now_ms is read */
    int64_t
        now_ms; /* set by the owner before each decision of a clocked router, and in every router
                     * before requests are given up: a departure, a delivered cancellation */
    bool abandoned; /* some request became abandoned, or no longer is: deadlines_next may have
                     * another result; the owner resets it */
    bool strict;    /* set by the owner: it sends no errors of its own */
    bool closing; /* the owner is shutting down: a client's message that cannot be forwarded at once
                     * is refused instead of held */
    bool demand;  /* an exclusive pool may need a process more, or less; the owner resets it */
    bool answered_last;             /* a client whose input had ended has got its last answer, or
                                     * lost its last request; the owner resets it */
    struct list waiting_for_worker; /* peers held until a certain worker is back */
    struct roaming roaming;         /* held peers that any free worker of their group would serve */
    struct turns released;          /* peers that may offer their message again */
    struct list open;               /* struct turns, whose peers may: that one among them */
    struct shared_handshakes handshakes;
    struct peer own;   /* the asker of what the daemon itself asks of workers */
    struct peer *host; /* the only client, which gets all messages of the workers of plain pools,
                        * also those that name no request or session; NULL: none */
};

/* An empty router over `limits` (borrowed). */
void router_init(struct router *router, const struct limits *limits, const struct siphash_key *key);

/* The memory that its tables take from max_memory counts in *account from now on. */
void router_count_memory(struct router *router, size_t *account);

/* Other limits (borrowed) from now on. What is in a table stays, although it may be too much. */
void router_set_limits(struct router *router, const struct limits *limits);

/* How many requests an admitted client may have in flight. */
void router_limit_client(const struct router *router, struct peer *client);

/* Frees the tables. Peers and pools belong to their owners. */
void router_free(struct router *router);

/* Adds a pool that group_init has prepared. */
void router_add_pool(struct router *router, struct group *pool);

/* Makes a pool the last one; its other era comes after it. */
void router_arrange(struct router *router, struct group *pool);

/* Puts the modes of all shared pools together, after one was added or taken out. */
void router_merge_modes(struct router *router);

/* From now on the router measures. */
void router_measure(struct router *router);

/* Makes a zeroed peer known as a client; its origin may be set. */
void router_add_client(struct router *router, struct peer *client);

/* From now on the client's messages that name no pool are for this one. */
void router_open_pool(struct peer *client, struct group *pool);

/* The same; messages that name another pool are refused. */
void router_confine(struct peer *client, struct group *pool);

/* Whether the client is one request of a program that may send others as other clients: workers may
 * ask it nothing, and it is bound to the worker that its origin's other requests had last, since
 * that may know what they name. */
void router_set_brief(struct peer *client, bool is_brief);

/* From now on the session ids of the client mean its own sessions alone: other clients may use the
 * same ids for theirs. */
void router_separate_sessions(struct peer *client);

/* From now on the client counts among those that have shares (router/shares.h). */
void router_admit_client(struct router *router, struct peer *client);

/* The client is of another origin from now on, with all that it holds. */
void router_move_client(struct router *router, struct peer *client, struct peer_origin *origin);

/* The same as router_admit_client for the origin alone, of a client that is no peer; and the end of
 * such a client. Accepts NULL. */
void router_note_origin(struct router *router, struct peer_origin *origin);
void router_forget_origin(struct router *router, struct peer_origin *origin);

/* Makes a zeroed peer known as a worker of a pool, PEER_ABSENT. STDIO_BUS_ERR if out of memory, and
 * then nothing has changed. */
int router_add_worker(struct router *router, struct peer *worker, struct group *pool);

/* Takes a worker out of the groups of its pool and of all workers. */
void router_forget_worker(struct router *router, const struct peer *worker, struct group *pool);

/* Gives a peer a new number: from now on it is another peer. */
void router_number_peer(struct router *router, struct peer *peer);

/* The pool of this id, or NULL. */
struct group *router_pool_named(const struct router *router, struct slice id);

#endif
