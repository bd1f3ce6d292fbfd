/* The messages that wait for a busy peer, in order of arrival, and the publishers that wait for a
 * place among them. */
#ifndef STDIO_BUS_RMP_QUEUE_H
#define STDIO_BUS_RMP_QUEUE_H

#include <stdbool.h>

#include "rmp/message.h"
#include "rmp/state.h"

#define RMP_WAIT_MS 50

/* One message in the queue of one peer. It has its place, within the limits, or it waits for one;
 * whichever comes first, a place or its turn, ends the waiting. */
struct rmp_queued {
    struct list_node in_queue;     /* peer->queue */
    struct list_node in_undecided; /* peer->undecided, while it waits for a place */
    struct list_node in_wait;      /* wait->undecided, the same */
    struct rmp_subscription *subscription;
    struct rmp_message *message;
    struct rmp_wait *wait; /* NULL: it has its place */
};

/* A publication that waits for places. */
struct rmp_wait {
    struct list_node in_order;  /* broker->waits, or broker->ended */
    struct list_node in_peer;   /* publisher->waits */
    struct rmp_peer *publisher; /* NULL: it has left */
    struct list undecided;
    struct rmp_message *message;
    uint64_t token, deadline_ms;
    enum rmp_outcome outcome;
};

/* Whether this number of bytes more may wait for the subscription. */
bool rmp_queue_has_room(const struct rmp_broker *broker,
                        const struct rmp_subscription *subscription, size_t bytes);

/* The message waits for the subscription: in its place, or else (wait != NULL) for one.
 * STDIO_BUS_ERR if out of memory. */
int rmp_queue_add(struct rmp_broker *broker, struct rmp_subscription *subscription,
                  struct rmp_message *message, struct rmp_wait *wait);

/* Delivers what waits for the peer until it is busy. */
void rmp_queue_hand_over(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_time time);

/* Removes what waits for the subscription. */
void rmp_queue_forget(struct rmp_broker *broker, struct rmp_subscription *subscription);

/* Removes all that waits for the peer. */
void rmp_queue_clear(struct rmp_broker *broker, struct rmp_peer *peer);

/* --- waits --- */

/* A wait of the publisher that begins now, without any undecided message yet; of no publisher: of
 * one that has left. NULL if out of memory. */
struct rmp_wait *rmp_wait_begin(struct rmp_broker *broker, struct rmp_peer *publisher,
                                struct rmp_message *message, uint64_t token, uint64_t now_ms);

/* Ends it: what is undecided is dropped. It is to be reported, with this outcome. */
void rmp_wait_end(struct rmp_broker *broker, struct rmp_wait *wait, enum rmp_outcome outcome,
                  struct rmp_time time);

/* Forgets it. */
void rmp_wait_free(struct rmp_wait *wait);

#endif
