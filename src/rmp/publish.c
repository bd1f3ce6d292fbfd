#include "build_config.h"

#include "rmp/publish.h"

#include <string.h>

#include "base/error.h"
#include "rmp/known.h"
#include "rmp/metrics.h"
#include "rmp/schemas.h"
#include "rmp/subscription.h"

/* Why a publisher of this kind may not publish this schema on the topic: one sentence, static.
 * NULL: it may. Whether the topic is valid is not asked. */
static const char *rmp_acl_forbids(enum rmp_kind kind, struct slice topic, uint16_t schema_id)
{
    if (rmp_topic_is_system(topic))
        return "topics below rlp/sys/ are published by the bus alone";
    if (kind != RMP_KIND_AGENT)
        return NULL;
    if (schema_id == RMP_SCHEMA_ACTION_DECISION)
        return "action decisions are published by clients of kind ui or tui alone";
    if (slice_is(topic, RMP_TOPIC_DECISION))
        return "the topic action.decision is for clients of kind ui or tui alone";
    return NULL;
}

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

static void rmp_fanout_run(struct rmp_fanout *fanout, struct rmp_topic *topic)
{
    struct list_node *node, *following;

    list_each(&topic->subscriptions, node, following)
        rmp_fanout_one(fanout, list_entry(node, struct rmp_subscription, in_topic));
}

/* --- results --- */

struct rmp_result rmp_result_forbidden(const char *reason)
{
    return (struct rmp_result){.outcome = RMP_RESULT_FORBIDDEN, .text = slice_of_text(reason)};
}

void rmp_publish_result(struct rmp_result *result, enum rmp_outcome outcome,
                        const struct rmp_publication *publication)
{
    *result = (struct rmp_result){.outcome = outcome,
                                  .schema_id = publication->header.schema_id,
                                  .ttl_ms = publication->header.ttl_ms,
                                  .created_at_ms = publication->header.created_at_ms,
                                  .text = publication->topic};
}

/* --- judgement --- */

/* Why it is forbidden, or NULL. What has a topic needs no check of its name. */
static const char *forbids(enum rmp_kind kind, const struct rmp_publication *publication,
                           const struct rmp_topic *topic)
{
    if (topic == NULL && !rmp_topic_is_valid(publication->topic))
        return RMP_TOPIC_RULE;
    return rmp_acl_forbids(kind, publication->topic, publication->header.schema_id);
}

/* TTL and expiry (RMP 4). */
static enum rmp_outcome judge_expiry(const struct rmp_broker *broker,
                                     const struct rmp_header *header, uint64_t epoch_ms,
                                     uint64_t *expires_at_ms)
{
    switch (rmp_header_expiry(header, expires_at_ms)) {
    case RMP_OK:
        break;
    case RMP_INVALID_EXPIRY:
        return RMP_RESULT_INVALID_EXPIRY;
    default:
        return RMP_RESULT_INVALID_TTL;
    }
    if (header->ttl_ms > broker->options.max_ttl_ms)
        return RMP_RESULT_INVALID_TTL;
    return epoch_ms >= *expires_at_ms ? RMP_RESULT_MESSAGE_EXPIRED : RMP_RESULT_OK;
}

/* Whether it is refused, with *result. */
static bool refuse(struct rmp_fanout *fanout, struct rmp_topic *topic, struct rmp_result *result)
{
    struct rmp_broker *broker = fanout->broker;
    const struct rmp_publication *publication = fanout->publication;
    enum rmp_outcome outcome = RMP_RESULT_CLOSED;
    const char *reason = NULL;

    if (!broker->closed)
        reason = forbids(fanout->publisher->kind, publication, topic);
    if (reason != NULL) {
        *result = rmp_result_forbidden(reason);
        return true;
    }
    if (!broker->closed)
        outcome = judge_expiry(broker, &publication->header, fanout->time.epoch_ms,
                               &fanout->expires_at_ms);
    if (outcome == RMP_RESULT_OK)
        return false;
    if (outcome == RMP_RESULT_MESSAGE_EXPIRED && topic != NULL)
        topic->dropped++;
    if (outcome == RMP_RESULT_MESSAGE_EXPIRED)
        rmp_notices_add(broker, RMP_DROP_TTL_EXPIRED, publication, fanout->expires_at_ms,
                        fanout->time);
    rmp_publish_result(result, outcome, publication);
    return true;
}

/* --- publication --- */

/* Offers it to the subscriptions of its topic. False: the publisher waits. */
static bool offer(struct rmp_fanout *fanout, struct rmp_topic *topic, struct rmp_result *result)
{
    topic->published++;
    fanout->seen = rmp_known_see(fanout->broker, topic, fanout->publication, fanout->time.now_ms);
    rmp_fanout_run(fanout, topic);
    rmp_message_release(fanout->copy);
    if (fanout->dropped)
        rmp_publish_result(result, RMP_RESULT_BACKPRESSURE_TIMEOUT, fanout->publication);
    if (fanout->wait == NULL)
        return true;
    if (list_empty(&fanout->wait->undecided)) {
        /* Memory ran out before anything could wait. */
        rmp_wait_free(fanout->wait);
        return true;
    }
    fanout->wait->outcome = result->outcome;
    return false;
}

bool rmp_publish(struct rmp_broker *broker, struct rmp_publisher publisher,
                 const struct rmp_publication *given, struct rmp_time time,
                 struct rmp_result *result)
{
    struct rmp_publication publication = *given;
    struct rmp_fanout fanout = {.broker = broker,
                                .publication = &publication,
                                .time = time,
                                .publisher = publisher.peer,
                                .token = publisher.token};
    struct rmp_topic *topic = rmp_topics_find(&broker->topics, publication.topic);

    /* The result points to the topic as the publisher has it. */
    if (refuse(&fanout, topic, result))
        return true;
    broker->counters.received++;
    publication.number = ++broker->number;
    publication.user = publisher.peer->user;
    if (broker->topics.observer != NULL)
        rmp_topics_report(&broker->topics, publisher.peer, &publication);
    result->outcome = RMP_RESULT_OK;
    return topic == NULL || offer(&fanout, topic, result);
}

void rmp_publish_own(struct rmp_broker *broker, struct rmp_time time)
{
    struct list_node *node;

    while ((node = list_take_first(&broker->own)) != NULL) {
        struct rmp_message *message = list_entry(node, struct rmp_message, in_own);
        struct rmp_topic *topic = rmp_topics_find(&broker->topics, message->publication.topic);
        struct rmp_fanout fanout = {.broker = broker,
                                    .publication = &message->publication,
                                    .time = time,
                                    .expires_at_ms = message->expires_at_ms,
                                    .copy = message};

        message->publication.number = ++broker->number;
        if (topic != NULL) {
            topic->published++;
            rmp_fanout_run(&fanout, topic);
        }
        rmp_message_release(message);
    }
}
