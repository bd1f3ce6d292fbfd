/* A publication from its judgement to its end. */
#ifndef STDIO_BUS_RMP_PUBLISH_H
#define STDIO_BUS_RMP_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "rmp/peer.h"
#include "rmp/queue.h"
#include "rmp/state.h"

struct rmp_publisher {
    struct rmp_peer *peer;
    uint64_t token; /* for ops->published */
};

/* As rmp_broker_publish, without what the broker publishes about it. */
bool rmp_publish(struct rmp_broker *broker, struct rmp_publisher publisher,
                 const struct rmp_publication *given, struct rmp_time time,
                 struct rmp_result *result);

/* Publishes broker->own: notices and snapshots that came up during a call are published at its
 * end. */
void rmp_publish_own(struct rmp_broker *broker, struct rmp_time time);

/* Sets the outcome and the members that it may need. */
void rmp_publish_result(struct rmp_result *result, enum rmp_outcome outcome,
                        const struct rmp_publication *publication);

/* RMP_RESULT_FORBIDDEN, with a static text. */
struct rmp_result rmp_result_forbidden(const char *reason);

/* --- One publication is offered to all subscriptions of its topic. --- */

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

/* The same for one of its subscriptions. */
void rmp_fanout_one(struct rmp_fanout *fanout, struct rmp_subscription *subscription);

/* --- Who may publish what (RMP 11). --- */

#endif
