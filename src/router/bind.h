/* Sticky and exclusive pools: a client is bound to a worker at its first message. */
#ifndef STDIO_BUS_ROUTER_BIND_H
#define STDIO_BUS_ROUTER_BIND_H

#include "router/decision.h"

/* Binds the client to a worker of the pool. NULL: none can be its worker now, and it was held or
 * refused, or out of memory. */
struct peer *bind_to_worker(struct decision *decision, struct group *pool);

/* Clients of one origin whose processes have crashed wait before they get another one of that
 * exclusive pool. The owner (supervisor/crashes.h) says for how long. */

struct penalty {
    struct list_node link; /* group->penalties */
    const struct peer_origin *origin;
    bool delays;      /* now */
    struct list held; /* its clients that wait; released by the owner when `delays` ends */
};

#endif
