/* A client or a worker as the router sees it: somebody who asks, answers, and may have to wait. */
#ifndef STDIO_BUS_ROUTER_PEER_H
#define STDIO_BUS_ROUTER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "router/number.h"

struct request;
struct router_group;

enum peer_availability {
    PEER_AWAY,   /* a worker that is starting, stopping or waiting for its restart */
    PEER_HERE,   /* takes messages */
    PEER_FAILED  /* a worker that will not come back */
};

/* Lives inside its owner (client, worker), who reads it and changes it only through the router's
 * functions. */
struct peer {
    uint64_t number;       /* unique in the life of the bus; a restarted worker gets a new one */
    enum peer_availability availability;
    bool full;             /* its output queue takes no more for now (spec 7.3.1) */
    bool input_ended;      /* a client that has closed its sending side */
    struct list asked;     /* requests it sent and still waits for */
    struct list answering; /* requests it was sent and still has to answer */
    struct list sessions;  /* a client: that it owns; a worker: that are bound to it */
    struct list waiting;   /* peers held until its output queue drains */

    /* Of use in pools with keys of their own (config/sharing.h) alone: */
    size_t pool;           /* a worker's: its pool's number */
    struct list bindings;  /* a client: to its workers; a worker: to its clients */
    bool client_left;      /* a client of this process has gone, and its sessions are forgotten */
    uint64_t broadcast;    /* the last binding that has a message which is offered again */
    struct number last_id; /* the last that a request it has to answer got as its id */
    int64_t hold_until_ms; /* when it gives up waiting for a worker; 0: it does not wait */

    /* While it is held itself: */
    struct list_node hold;     /* on the list that will release it, or on router->released */
    uint64_t held_as;          /* grows with each peer that is held for a queue or a worker */
    struct list_node roam;     /* on router->roaming: any worker of `group` would do */
    struct router_group *group;
    uint64_t hold_hash;        /* of the id it waits for, when it waits for one */
    struct request *reserved;  /* the id that was kept free for it when it was released */
    bool hold_expired;         /* it has waited long enough: refuse instead of holding on */
};

static inline bool peer_held(const struct peer *peer)
{
    return list_linked(&peer->hold);
}

#endif
