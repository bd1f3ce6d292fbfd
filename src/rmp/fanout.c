#include "build_config.h"

#include "rmp/fanout.h"

#include "base/error.h"
#include "rmp/drop.h"

/* Whether the broker may hold one more copy, for this peer: all copies are within their limit, or
 * what waits for the peer is less than half of its equal share. */
static bool may_copy(const struct rmp_fanout *fanout, const struct rmp_peer *peer)
{
    const struct rmp_broker *broker = fanout->broker;
    const struct rmp_publication *publication = fanout->publication;
    size_t size = rmp_message_size(publication->topic.len, publication->frame.len);
    size_t max = broker->options.copies_bytes;

    return size <= max && (broker->copies_bytes <= max - size ||
                           peer->queued_bytes + size <= max / (2 * broker->memory.peers));
}

static bool has_copy(struct rmp_fanout *fanout, const struct rmp_peer *peer)
{
    struct rmp_broker *broker = fanout->broker;

    if (fanout->copy == NULL && may_copy(fanout, peer)) {
        fanout->copy = rmp_message_copy(fanout->publication, fanout->expires_at_ms,
                                        &broker->copies_bytes);
        broker->counters.no_memory += fanout->copy == NULL;
    }
    return fanout->copy != NULL;
}

/* Whether the publisher waits for a place. A peer that has let a wait run out is not waited for
 * before it takes something. */
static bool may_wait(struct rmp_fanout *fanout, const struct rmp_peer *peer)
{
    if (fanout->publisher == NULL || peer->stalled)
        return false;
    if (fanout->wait == NULL)
        fanout->wait = rmp_wait_begin(fanout->broker, fanout->publisher, fanout->copy,
                                      fanout->token, fanout->time.now_ms);
    return fanout->wait != NULL;
}

static bool enqueue(struct rmp_fanout *fanout, struct rmp_subscription *subscription)
{
    struct rmp_peer *peer = subscription->peer;
    struct rmp_broker *broker = fanout->broker;

    if (!has_copy(fanout, peer))
        return false;
    if (fanout->is_replay ||
        rmp_queue_has_room(broker, subscription, fanout->publication->frame.len))
        return rmp_queue_add(broker, subscription, fanout->copy, NULL) == STDIO_BUS_OK;
    return may_wait(fanout, peer) &&
           rmp_queue_add(broker, subscription, fanout->copy, fanout->wait) == STDIO_BUS_OK;
}

void rmp_fanout_one(struct rmp_fanout *fanout, struct rmp_subscription *subscription)
{
    struct rmp_broker *broker = fanout->broker;
    struct rmp_peer *peer = subscription->peer;
    enum rmp_taken taken = RMP_BUSY;

    if (fanout->seen != 0 &&
        rmp_subscriptions_got(&broker->subscriptions, subscription, fanout->seen)) {
        subscription->topic->dropped++;
        rmp_notices_add(broker, RMP_DROP_DUPLICATE, fanout->publication, fanout->expires_at_ms,
                        fanout->time);
        return;
    }
    if (!peer->busy)
        taken = peer->ops->deliver(peer, &subscription->name, fanout->publication);
    if (taken == RMP_TAKEN) {
        rmp_subscription_sent(broker, subscription);
        return;
    }
    broker->counters.no_memory += taken == RMP_REFUSED;
    peer->busy = taken == RMP_BUSY;
    if (peer->busy && enqueue(fanout, subscription))
        return;
    fanout->dropped = true;
    rmp_drop_missed(broker, RMP_DROP_BACKPRESSURE_TIMEOUT, subscription, fanout->publication,
                    fanout->expires_at_ms, fanout->time);
}

void rmp_fanout_run(struct rmp_fanout *fanout, struct rmp_topic *topic)
{
    struct list_node *node, *following;

    list_each(&topic->subscriptions, node, following)
        rmp_fanout_one(fanout, list_entry(node, struct rmp_subscription, in_topic));
}
