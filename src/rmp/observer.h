/* What the broker reports of its topics and publications to one observer, such as another service
 * that carries them elsewhere. */
#ifndef STDIO_BUS_RMP_OBSERVER_H
#define STDIO_BUS_RMP_OBSERVER_H

#include "rmp/peer.h"

/* The operations are called from within functions of the broker and must not call one themselves.
 * The name of a topic is the first of its names (rmp/subscription.h). */
struct rmp_observer {
    /* A topic has its first subscription; has lost its last one. *mark belongs to the observer from
     * the one call to the other. */
    void (*opened)(struct rmp_observer *observer, struct slice topic, void **mark);
    void (*closed)(struct rmp_observer *observer, void **mark);

    /* A peer has published; it was not refused. */
    void (*accepted)(struct rmp_observer *observer, const struct rmp_peer *publisher,
                     const struct rmp_publication *publication);
};

#endif
