/* A peer of the broker: publisher and subscriber at once, such as a connection or the bridge. It
 * lives inside its owner. */
#ifndef STDIO_BUS_RMP_PEER_H
#define STDIO_BUS_RMP_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "rmp/frame.h"

/* --- A publication: one message on one topic, as its publisher has handed it in. --- */

/* The two clocks of a call. Neither is read by src/rmp. */
struct rmp_time {
    uint64_t epoch_ms; /* of the calendar: created_at_ms and expiry are measured by it */
    uint64_t now_ms;   /* monotonic: every delay is measured by it */
};

/* Borrowed: it lives until the call that it is given to returns. */
struct rmp_publication {
    struct rmp_header header;
    struct slice topic;
    struct slice frame; /* prefix, header and body, as they are sent in the dialect of frames */
    uint32_t user;      /* of the publisher, set by the broker (rmp/peer.h) */
    uint64_t number;    /* of this publication, set by the broker; unlike that of any other. What a
                         * subscriber made of the one before (its text as JSON) is still good as
                         * long as the number is the same. The publisher leaves it 0. */
};

static inline struct slice rmp_publication_body(const struct rmp_publication *publication)
{
    return slice_of(publication->frame.data + RMP_BODY_OFFSET,
                    publication->frame.len - RMP_BODY_OFFSET);
}

/* --- What a publisher or subscriber is told: Ok, or an error with what belongs to it. --- */

enum rmp_outcome {
    RMP_RESULT_OK,
    RMP_RESULT_CLOSED,
    RMP_RESULT_MESSAGE_EXPIRED,
    RMP_RESULT_INVALID_TTL,          /* ttl_ms */
    RMP_RESULT_BODY_LENGTH_MISMATCH, /* expected, actual */
    RMP_RESULT_BACKPRESSURE_TIMEOUT, /* text: the topic */
    RMP_RESULT_FORBIDDEN,            /* text: why */
    RMP_RESULT_BODY_TYPE_MISMATCH,   /* schema_id; text: the type that was found */
    RMP_RESULT_INVALID_EXPIRY,       /* created_at_ms, ttl_ms */
    RMP_RESULT_UNKNOWN_SCHEMA,       /* schema_id */
    RMP_RESULT_COUNT
};

/* The members that the outcome names; the others are not looked at. */
struct rmp_result {
    enum rmp_outcome outcome;
    uint16_t schema_id;
    uint64_t ttl_ms, created_at_ms;
    uint64_t expected, actual;
    struct slice text; /* borrowed */
    bool is_new;       /* RMP_RESULT_OK: the subscription was not there before */
};

/* --- The kinds of publishers (RMP 11). --- */

enum rmp_kind { RMP_KIND_AGENT, RMP_KIND_UI, RMP_KIND_TUI };

/* Reads a kind, in any case of letters: "Agent", "ui". False: it is none. */
bool rmp_kind_read(struct slice name, enum rmp_kind *kind);

/* How a subscription is named: by the number that its client chose, or by its topic. */
enum rmp_dialect { RMP_DIALECT_JSON, RMP_DIALECT_FRAMES };

struct rmp_sub_name {
    enum rmp_dialect dialect;
    uint64_t sub_id; /* JSON; in the dialect of frames 0: the topic is the name */
};

enum rmp_taken {
    RMP_TAKEN,
    RMP_BUSY, /* not taken, since the peer's output is not empty and full: the message waits in the
                 * broker, and all that follow it, until rmp_broker_resume */
    RMP_REFUSED /* not taken for want of memory: dropped for this subscription */
};

struct rmp_peer;

/* deliver is called from within any function of the broker and must not call one itself: what
 * follows from a message is done after that function has returned. */
struct rmp_peer_ops {
    /* Takes a copy of the publication into the peer's output, for its subscription `name`. */
    enum rmp_taken (*deliver)(struct rmp_peer *to, const struct rmp_sub_name *name,
                              const struct rmp_publication *publication);
    /* A publication of the peer that had to wait has ended; `token` is that of rmp_broker_publish.
     * Called by rmp_broker_run alone, and may call the broker, but not rmp_broker_run. */
    void (*published)(struct rmp_peer *publisher, uint64_t token, const struct rmp_result *result);
};

#define RMP_USER_BUS 0     /* the daemon itself */
#define RMP_USER_UNKNOWN 1 /* a client whose user is not known */
#define RMP_USERS 2        /* the first of the others */

/* Fields after `user` are the broker's. */
struct rmp_peer {
    const struct rmp_peer_ops *ops;
    enum rmp_kind kind; /* may be changed at any time */
    uint32_t user;      /* after rmp_broker_join, RMP_USER_BUS: may be changed before the first
                         * publication or subscription. A message repeats another one of the same
                         * user alone */
    uint64_t number;    /* unlike that of any other peer */
    bool busy;          /* from RMP_BUSY to rmp_broker_resume */
    bool stalled;       /* from the end of a wait for it until it takes a message */
    size_t subscription_count;
    size_t held;               /* bytes, of RMP_SUBSCRIPTIONS (rmp/memory.h) */
    size_t queued_bytes;       /* frames that wait for it in the broker */
    struct list subscriptions; /* struct rmp_subscription, in_peer */
    struct list queue;         /* struct rmp_queued, in order of arrival */
    struct list undecided;     /* those of them whose publisher still waits */
    struct list waits;         /* struct rmp_wait: its own publications that wait */
};

#endif
