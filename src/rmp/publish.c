#include "build_config.h"

#include "rmp/publish.h"

#include <string.h>

#include "rmp/acl.h"
#include "rmp/fanout.h"
#include "rmp/known.h"
#include "rmp/notices.h"

/* --- results --- */

struct rmp_result rmp_result_forbidden(const char *reason)
{
    return (struct rmp_result){.outcome = RMP_RESULT_FORBIDDEN,
                               .text = slice_of(reason, strlen(reason))};
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
