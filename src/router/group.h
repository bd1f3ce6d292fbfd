/* Workers that take turns: those of one pool, or of all shared pools. */
#ifndef STDIO_BUS_ROUTER_GROUP_H
#define STDIO_BUS_ROUTER_GROUP_H

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "config/pool_mode.h"
#include "router/request_counts.h"
#include "router/turns.h"

struct fresh;
struct placement;
struct remembered;

/* Whether the server of a pool serves the stateless era of MCP. */
enum era_support { ERA_SERVED, ERA_UNKNOWN, ERA_REFUSED };

/* What is known of a pool whose processes end before they have sent anything. Its owner fills it
 * (supervisor/early_exit.h). */

#define START_FAILURE_ATTEMPTS 2 /* for a client whose message reaches no process */

struct start_failure {
    unsigned count;   /* such processes in a row; 0: the pool is well */
    unsigned total;   /* ever */
    int64_t at_ms;    /* the last one */
    const char *text; /* of the last one, for clients; NULL: there was none */
    const char *data; /* the same: the member "data" of the error, JSON; NULL: none */
};

struct group {
    struct list_node link; /* of a pool: in router->pools */
    struct slice id;       /* the pool's, borrowed; data NULL: all shared pools */
    struct peer **workers;
    size_t count; /* where there are two eras: of both */
    size_t turn;  /* the place of the worker that is next */

    struct pool_mode mode;    /* of the pool; of all shared pools: what any of them asks for */
    bool plain;               /* no mode: as the specification has it */
    bool takes_long;          /* messages up to max_message; all: each shared pool does */
    bool reads_tokens;        /* the progress tokens of its requests matter */
    bool keeps_extras;        /* and more of its clients' requests (router/extras.h) */
    bool reads_tasks;         /* MCP, handshake era: clients share its workers, or its ids are
                               * rewritten */
    bool one_handshake;       /* MCP: clients share its processes, and each process gets one
                               * handshake (router/one_handshake.h) */
    bool top_sessions;        /* all: some pool has its session ids at the top level */
    struct turns senders;     /* clients held until some worker of the group takes messages */
    struct list waiting;      /* clients held until they can be bound to a worker */
    struct list claims;       /* those of them that have a claim to the next free worker */
    struct list penalties;    /* struct penalty (router/bind.h) */
    struct group *other_era;  /* MCP: of the same pool (router/eras.h); NULL: it has one era */
    bool stateless;           /* the era without a handshake */
    bool mixes_clients;       /* its processes have many clients, and no sessions say whose */
    bool removed;             /* it is no pool of the configuration any more */
    enum era_support support; /* of that era; ERA_SERVED in all other groups */
    struct peer *fallback;    /* the client of messages that are for no other one; NULL: none */
    struct remembered *remembered; /* of the server (router/remembered.h); NULL: nothing is */
    struct fresh *fresh;           /* the same, of its stateless era (router/fresh.h); NULL */
    struct list timed;             /* extras of requests with a deadline, the earliest first */
    struct list_node timing;       /* in router->timing, if there may be such requests */

    struct placement *placement; /* of its sessions (router/placement.h); NULL: it is served here
                                  * alone */

    struct start_failure failure; /* of both eras: in the one with a handshake */

    struct request_counts asked, asking; /* of what clients asked its workers, and the reverse */
};

/* An empty group. The id is borrowed. */
void group_init(struct group *group, struct slice id, const struct pool_mode *mode);

/* Frees the array of workers, and takes the group off router->timing. */
void group_free(struct group *group);

/* STDIO_BUS_ERR if out of memory, and then nothing has changed. */
int group_add(struct group *group, struct peer *worker);

/* Whether some process serves, or will serve again, the clients of the group together. */
bool group_is_served(const struct group *group);

/* Takes a worker out; the turns of the others continue. One that is not in it is left alone. */
void group_remove(struct group *group, const struct peer *worker);

bool group_has(const struct group *group, const struct peer *worker);

#endif
