/* Clients of one origin whose processes have crashed wait before they get another one of that
 * exclusive pool. The owner (bus/crashes.h) says for how long. */
#ifndef STDIO_BUS_ROUTER_PENALTY_H
#define STDIO_BUS_ROUTER_PENALTY_H

#include "router/decision.h"

struct penalty {
    struct list_node link; /* group->penalties */
    const struct peer_origin *origin;
    bool delays;      /* now */
    struct list held; /* its clients that wait; released by the owner when `delays` ends */
};

/* Holds the client, which wants a worker of the pool, if its origin has a penalty that delays. */
bool penalty_holds(struct decision *decision, struct group *pool);

#endif
