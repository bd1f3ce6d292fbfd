/* The state of a broker, which the files of src/rmp share; users of the broker see rmp/broker.h. */
#ifndef STDIO_BUS_RMP_STATE_H
#define STDIO_BUS_RMP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "rmp/dedupe.h"
#include "rmp/frame.h"
#include "rmp/memory.h"
#include "rmp/subscription.h"

struct rmp_broker {
    struct rmp_broker_options options;
    struct rmp_counters counters;
    struct rmp_topics topics;
    struct rmp_subscriptions subscriptions;
    struct rmp_dedupe_rules dedupe;
    struct rmp_memory memory;
    struct list sweep;        /* struct rmp_known, in_sweep: by check_ms */
    struct list waits, ended; /* struct rmp_wait; by deadline; still to be reported */
    struct list own;          /* struct rmp_message: notices and metrics to be published */
    uint64_t number;          /* of the last publication */
    uint64_t last_peer;       /* its number */
    size_t copies_bytes;      /* of all struct rmp_message */
    size_t queued;            /* messages in the queues of all peers */
    size_t stats_at;          /* where the next snapshot of topics begins in their table */
    bool closed;

    struct rmp_id own_trace_id;  /* of metrics */
    uint64_t own_msg_id;         /* the last one */
    uint64_t metrics_at_ms;      /* UINT64_MAX: snapshots have no subscriber */
    uint64_t notices_at_ms;      /* the clock of the token bucket */
    uint64_t notice_tokens;      /* in thousandths */
    uint64_t notices_suppressed; /* since the last notice */
};

/* A subscription has got a message. */
static inline void rmp_subscription_sent(struct rmp_broker *broker,
                                         const struct rmp_subscription *subscription)
{
    broker->counters.sent++;
    subscription->topic->delivered++;
}

#endif
