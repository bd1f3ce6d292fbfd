/* A client or a worker as the router sees it: a peer asks, answers, and may have to wait. */
#ifndef STDIO_BUS_ROUTER_PEER_H
#define STDIO_BUS_ROUTER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "router/kept_message.h"

struct group;
struct handshake;
struct request;

/* From PEER_LEAVING on there is a process, or a client, that messages can be for. */
enum peer_availability {
    PEER_ABSENT,   /* a worker that is starting, stopping or waiting for its restart */
    PEER_FAILED,   /* a worker that will not come back */
    PEER_LEAVING,  /* a worker of a removed pool: it takes no new request from any client */
    PEER_DRAINING, /* a worker that takes messages of its clients, sessions and requests alone */
    PEER_READY     /* takes messages */
};

/* Whether a worker's process was ended because no message needed it (supervisor/sleep.h). */
enum peer_rest {
    PEER_AWAKE,
    PEER_ASLEEP, /* its clients stay */
    PEER_CALLED  /* a message waits for its next process */
};

/* What a peer was held for. */
enum peer_hold {
    HELD_FOR_WORKER,  /* some worker that takes messages */
    HELD_FOR_PROCESS, /* a worker that it can be bound to */
    HELD_FOR_ID,      /* an id that is in use */
    HELD_FOR_QUEUE,   /* room in the queue of the destination */
    HELD_FOR_ANSWER,  /* the answer to another client's request */
    HELD_FOR_REPLIES, /* room in its own queue, for errors */
    HELD_FOR_MEMORY
};

/* Peers that take turns (router/turns.h), and what they wait for. */
enum turns_kind {
    TURNS_OF_RELEASED, /* nothing: router->released */
    TURNS_OF_REQUEST,  /* an id: request->waiters */
    TURNS_OF_PEER,     /* room in the queue of a peer: peer->waiting */
    TURNS_OF_GROUP     /* a worker of a group that takes messages: group->senders */
};

struct turns {
    struct list lanes; /* struct lane, the next turn first */
    enum turns_kind kind;
    struct list_node open; /* in router->open: they take their turns now */
};

struct lane {
    struct list_node in_turns, in_origin; /* both unlinked: the peer leads none */
    struct list peers;                    /* by their hold; the leader is the first */
};

/* What clients hold of the tables that all of them share. */
enum peer_share {
    PEER_REQUESTS,
    PEER_SESSIONS,
    PEER_TASKS,
    PEER_SUBSCRIPTIONS, /* in bytes (router/subscriptions.h) */
    PEER_SHARES
};

#define PEER_HOMES 8
#define PEER_PROGRAM_MAX 48 /* bytes */

/* The clients of one user or one address, together. */
struct peer_origin {
    size_t clients;    /* that were admitted */
    struct list lanes; /* what its peers wait for (router/turns.h) */
    size_t held[PEER_SHARES];
    uint64_t homes[PEER_HOMES]; /* numbers of workers to which its brief clients were bound last */
    unsigned next_home;
};

/* Lives inside its owner, a client or a worker. The owner reads it, and changes it through the
 * router's functions alone. */
struct peer {
    uint64_t number; /* unique in the life of the bus, and unlike its neighbours in all bits; a
                      * restarted worker gets a new one */
    enum peer_availability availability;
    bool full;                  /* its output queue takes no more for now (spec 7.3.1) */
    bool input_ended;           /* a client that has closed its sending side */
    bool admitted;              /* a client that counts: it has a share (router/shares.h) */
    const char *closing;        /* a client: why it is to be closed; NULL: it is not */
    struct group *opened;       /* a client: the pool that its opening line names, for messages
                                 * that name none; NULL: it has named none */
    bool is_brief;              /* a client: one request of several of the same program, each on a
                                 * connection of its own, perhaps (HTTP). It is asked nothing */
    bool confined;              /* a client: its messages may name no other pool */
    bool own_sessions;          /* a client: its session ids mean no session of another client */
    struct peer_origin *origin; /* a client's; a worker's: of its last client, as long as that
                                 * process still ends; NULL: none */
    size_t max_requests;        /* how many requests it may have in flight */
    size_t held[PEER_SHARES];   /* active requests that it asked; what it owns */
    struct list asked;          /* requests that it sent and that are not answered yet */
    struct list answering;      /* requests that it was sent and has to answer */
    const struct list_node *checked; /* of `answering`: up to this one, all are active requests */
    struct peer *checked_asker;      /* of this client (to_client.c); NULL: none was looked at */
    struct list sessions;            /* a client: those it owns; a worker: those bound to it */
    struct turns waiting;            /* peers held until its output queue drains */

    /* For pools with a mode (config/pool_mode.h): */
    struct group *pool;   /* a worker's */
    bool drained;         /* a worker: PEER_DRAINING instead of PEER_READY (waiting_set_drained) */
    enum peer_rest rest;  /* a worker */
    bool outdated;        /* a worker: its process runs a program that a reload has replaced;
                           * nothing that it says is remembered */
    struct list bindings; /* a client: to its workers; a worker: to its clients */
    struct list logging;  /* a worker: extras of requests that ask for log messages */
    struct list loading;  /* a worker: extras of requests that load a session, oldest first */
    bool stateless;       /* a client: its last request is of MCP's stateless era */
    bool alone;           /* MCP: a client whose protocol version a shared process refuses; a
                            * worker that serves such a client, and no other */
    struct handshake *handshake; /* MCP, a worker: see router/handshake.h; NULL: none is kept */
    struct list tasks;    /* a client: those it owns, oldest first; a worker: those it runs */
    bool probed;          /* a worker: the daemon asks which era it serves (router/eras.h) */
    bool is_link;         /* a worker: of another machine; its end says nothing of its server. A
                            * client: the same; it gets no worker of a third one */
    bool is_passage;      /* a worker: its owner's (supervisor/pools.h), beside the configured ones.
                            * It is for its sessions, or for one client, and leaves with them */
    bool client_left;     /* a client of this process has disconnected: its sessions are unknown */
    size_t given_up;      /* requests that were abandoned and not answered: they may still run */
    uint64_t broadcast;   /* the last binding that has got the message which is offered again */
    uint32_t last_number; /* the last id of the daemon's own that it was sent; even */
    bool numbers_reused;  /* all of them were used once */
    int64_t hold_until_ms; /* when it stops waiting for a worker; 0: it does not wait */
    struct kept_message
        greeting;     /* a worker: its answer to the first initialize, for all clients */
    bool greets_each; /* a worker: it has answered one, and may answer further ones */

    /* While the peer is held: */
    struct list_node hold; /* on the list that will release it, or in a lane of: */
    struct turns *turns;   /* what it waits for, or router->released; NULL: a list */
    struct lane lane;      /* of those that wait for the same, if it leads them */
    enum peer_hold held_for;
    struct list_node roam; /* in a lane of router->roaming: any worker of hold_group would do */
    struct roaming_lane *roam_lane; /* NULL: in none */
    uint64_t roam_number;           /* order of arrival there */
    struct group *hold_group;
    struct group *claim;       /* the next free worker of this pool is for it (router/shares.h) */
    struct list_node claiming; /* on claim->claims */
    uint64_t hold_hash;        /* of the id that it waits for, if it waits for one */
    struct request *reserved;  /* the id that was kept free for it when it was released */
    bool hold_expired;         /* its time is over: its message is refused instead of held again */
    bool was_held;             /* since its last message that was not held */
    bool said_exit;            /* LSP: the end of its worker is what it wants */
    unsigned
        hold_failures; /* failure.total of its pool when it began to wait, plus 1; 0: unknown */

    char program[PEER_PROGRAM_MAX]; /* a client: its name in its initialize (client_program_read);
                                     * "": unknown */
};

static inline void peer_origin_init(struct peer_origin *origin)
{
    list_init(&origin->lanes);
}

/* A worker whose process has had no client. */
static inline bool peer_is_fresh(const struct peer *worker)
{
    return list_empty(&worker->bindings) && !worker->client_left && !worker->probed;
}

static inline bool peer_takes_messages(const struct peer *peer)
{
    return peer->availability == PEER_READY && !peer->full;
}

/* The same for the messages of its clients. */
static inline bool peer_takes_bound(const struct peer *peer)
{
    return peer->availability >= PEER_DRAINING && !peer->full;
}

/* A worker with a process that gets the messages of its clients; any client. */
static inline bool peer_serves(const struct peer *peer)
{
    return peer->availability >= PEER_LEAVING;
}

static inline bool peer_held(const struct peer *peer)
{
    return list_linked(&peer->hold);
}

#endif
