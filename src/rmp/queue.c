#include "build_config.h"

#include "rmp/queue.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/metrics.h"

static size_t bytes_of(const struct rmp_queued *queued)
{
    return queued->message->publication.frame.len;
}

bool rmp_queue_has_room(const struct rmp_broker *broker,
                        const struct rmp_subscription *subscription, size_t bytes)
{
    const struct rmp_broker_options *options = &broker->options;
    size_t waiting = subscription->peer->queued_bytes;

    return subscription->queued < options->queue_max &&
           (waiting == 0 ||
            (waiting < options->queue_bytes && bytes <= options->queue_bytes - waiting));
}

/* --- places --- */

static void take_place(struct rmp_queued *queued)
{
    queued->subscription->queued++;
    queued->subscription->peer->queued_bytes += bytes_of(queued);
}

/* The wait has one undecided message less. Without any it has ended. */
static void settle(struct rmp_broker *broker, struct rmp_queued *queued)
{
    struct rmp_wait *wait = queued->wait;

    queued->wait = NULL;
    list_remove(&queued->in_undecided);
    list_remove(&queued->in_wait);
    if (list_empty(&wait->undecided)) {
        list_remove(&wait->in_order);
        list_append(&broker->ended, &wait->in_order);
    }
}

/* Room has come: messages without a place get theirs, in their order. */
static void fill_places(struct rmp_broker *broker, struct rmp_peer *peer)
{
    struct list_node *node, *following;

    list_each(&peer->undecided, node, following) {
        struct rmp_queued *queued = list_entry(node, struct rmp_queued, in_undecided);

        if (rmp_queue_has_room(broker, queued->subscription, bytes_of(queued))) {
            settle(broker, queued);
            take_place(queued);
        }
    }
}

int rmp_queue_add(struct rmp_broker *broker, struct rmp_subscription *subscription,
                  struct rmp_message *message, struct rmp_wait *wait)
{
    struct rmp_queued *queued = calloc(1, sizeof *queued);

    if (queued == NULL) {
        broker->counters.no_memory++;
        return STDIO_BUS_ERR;
    }
    queued->subscription = subscription;
    queued->message = rmp_message_hold(message);
    queued->wait = wait;
    list_append(&subscription->peer->queue, &queued->in_queue);
    broker->queued++;
    if (wait != NULL) {
        list_append(&subscription->peer->undecided, &queued->in_undecided);
        list_append(&wait->undecided, &queued->in_wait);
    } else {
        take_place(queued);
    }
    return STDIO_BUS_OK;
}

/* Without filling its place. */
static void take_out(struct rmp_broker *broker, struct rmp_queued *queued)
{
    if (queued->wait != NULL) {
        settle(broker, queued);
    } else {
        queued->subscription->queued--;
        queued->subscription->peer->queued_bytes -= bytes_of(queued);
    }
    list_remove(&queued->in_queue);
    broker->queued--;
    rmp_message_release(queued->message);
    free(queued);
}

static void drop(struct rmp_broker *broker, struct rmp_queued *queued, enum rmp_drop_reason reason,
                 struct rmp_time time)
{
    const struct rmp_message *message = queued->message;

    if (queued->wait != NULL && queued->wait->outcome == RMP_RESULT_OK)
        queued->wait->outcome = reason == RMP_DROP_TTL_EXPIRED ? RMP_RESULT_MESSAGE_EXPIRED
                                                               : RMP_RESULT_BACKPRESSURE_TIMEOUT;
    rmp_drop_missed(broker, reason, queued->subscription, &message->publication,
                    message->expires_at_ms, time);
}

/* --- the peer --- */

void rmp_queue_hand_over(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_time time)
{
    struct list_node *node;

    peer->busy = false;
    while ((node = list_take_first(&peer->queue)) != NULL) {
        struct rmp_queued *queued = list_entry(node, struct rmp_queued, in_queue);
        enum rmp_taken taken;

        if (time.epoch_ms >= queued->message->expires_at_ms) {
            drop(broker, queued, RMP_DROP_TTL_EXPIRED, time);
        } else {
            taken = peer->ops->deliver(peer, &queued->subscription->name,
                                       &queued->message->publication);
            peer->busy = taken == RMP_BUSY;
            if (peer->busy) {
                list_prepend(&peer->queue, node);
                break;
            }
            peer->stalled = false;
            broker->counters.no_memory += taken == RMP_REFUSED;
            if (taken == RMP_TAKEN)
                rmp_subscription_sent(broker, queued->subscription);
            else
                drop(broker, queued, RMP_DROP_BACKPRESSURE_TIMEOUT, time);
        }
        take_out(broker, queued);
    }
    fill_places(broker, peer);
}

void rmp_queue_forget(struct rmp_broker *broker, struct rmp_subscription *subscription)
{
    struct rmp_peer *peer = subscription->peer;
    struct list_node *node, *following;

    list_each(&peer->queue, node, following) {
        struct rmp_queued *queued = list_entry(node, struct rmp_queued, in_queue);

        if (queued->subscription == subscription)
            take_out(broker, queued);
    }
    fill_places(broker, peer);
}

void rmp_queue_clear(struct rmp_broker *broker, struct rmp_peer *peer)
{
    struct list_node *node;

    while ((node = list_take_first(&peer->queue)) != NULL)
        take_out(broker, list_entry(node, struct rmp_queued, in_queue));
}

/* --- waits --- */

struct rmp_wait *rmp_wait_begin(struct rmp_broker *broker, struct rmp_peer *publisher,
                                struct rmp_message *message, uint64_t token, uint64_t now_ms)
{
    struct rmp_wait *wait = calloc(1, sizeof *wait);

    if (wait == NULL) {
        broker->counters.no_memory++;
        return NULL;
    }
    wait->publisher = publisher;
    wait->message = rmp_message_hold(message);
    wait->token = token;
    wait->deadline_ms = now_ms + RMP_WAIT_MS;
    list_init(&wait->undecided);
    list_append(&broker->waits, &wait->in_order);
    broker->counters.waits++;
    if (publisher != NULL)
        list_append(&publisher->waits, &wait->in_peer);
    return wait;
}

void rmp_wait_end(struct rmp_broker *broker, struct rmp_wait *wait, enum rmp_outcome outcome,
                  struct rmp_time time)
{
    struct list_node *node;

    ASSERT(!list_empty(&wait->undecided));
    wait->outcome = outcome;
    while ((node = list_take_first(&wait->undecided)) != NULL) {
        struct rmp_queued *queued = list_entry(node, struct rmp_queued, in_wait);

        queued->subscription->peer->stalled = true;
        drop(broker, queued, RMP_DROP_BACKPRESSURE_TIMEOUT, time);
        take_out(broker, queued);
    }
}

void rmp_wait_free(struct rmp_wait *wait)
{
    list_remove(&wait->in_order);
    if (wait->publisher != NULL)
        list_remove(&wait->in_peer);
    rmp_message_release(wait->message);
    free(wait);
}
