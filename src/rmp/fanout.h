/* One publication is offered to all subscriptions of its topic. */
#ifndef STDIO_BUS_RMP_FANOUT_H
#define STDIO_BUS_RMP_FANOUT_H

#include "rmp/queue.h"
#include "rmp/state.h"

/* One publication on its way. */
struct rmp_fanout {
    struct rmp_broker *broker;
    const struct rmp_publication *publication;
    struct rmp_time time;
    uint64_t expires_at_ms;
    uint64_t seen;              /* the number of the publication that it repeats; 0: none */
    struct rmp_peer *publisher; /* that may wait; NULL: the broker */
    uint64_t token;
    bool is_replay; /* it may wait beyond the limits of the queue */

    struct rmp_message *copy; /* once one is needed; the caller releases it */
    struct rmp_wait *wait;    /* if the publisher waits */
    bool dropped;             /* for a subscription at least: no room, and no wait */
};

void rmp_fanout_run(struct rmp_fanout *fanout, struct rmp_topic *topic);

/* The same for one of its subscriptions. */
void rmp_fanout_one(struct rmp_fanout *fanout, struct rmp_subscription *subscription);

#endif
