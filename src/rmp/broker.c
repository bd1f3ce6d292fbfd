#include "build_config.h"

#include "rmp/broker.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "rmp/known.h"
#include "rmp/message.h"
#include "rmp/metrics.h"
#include "rmp/publish.h"
#include "rmp/queue.h"
#include "rmp/state.h"

#define MAX_TTL_MS 3600000
#define QUEUE_MAX 1024
#define QUEUE_BYTES ((size_t)4 << 20)
#define COPIES_BYTES ((size_t)256 << 20)
#define SUBSCRIPTION_BYTES ((size_t)16 << 20)
#define KEY_BYTES ((size_t)32 << 20)
#define NO_MEMORY "the bus is out of memory"

/* --- its life --- */

static void set_options(struct rmp_broker *broker, const struct rmp_broker_options *given)
{
    struct rmp_broker_options *options = &broker->options;

    *options = *given;
    if (options->max_ttl_ms == 0)
        options->max_ttl_ms = MAX_TTL_MS;
    if (options->queue_max == 0)
        options->queue_max = QUEUE_MAX;
    if (options->queue_bytes == 0)
        options->queue_bytes = QUEUE_BYTES;
    if (options->copies_bytes == 0)
        options->copies_bytes = COPIES_BYTES;
    if (options->subscription_bytes == 0)
        options->subscription_bytes = SUBSCRIPTION_BYTES;
    if (options->key_bytes == 0)
        options->key_bytes = KEY_BYTES;
    broker->memory.total = options->memory;
    rmp_broker_bound(broker, options->subscription_bytes, options->key_bytes);
    broker->topics.key = broker->subscriptions.key = broker->dedupe.key = options->key;
    broker->subscriptions.memory = &broker->memory;
    broker->dedupe.max = RMP_DEDUPE_MAX;
    broker->dedupe.horizon_ms = options->max_ttl_ms > RMP_DEDUPE_HORIZON_MIN_MS
                                    ? options->max_ttl_ms
                                    : RMP_DEDUPE_HORIZON_MIN_MS;
}

struct rmp_broker *rmp_broker_create(const struct rmp_broker_options *options)
{
    struct rmp_broker *broker = calloc(1, sizeof *broker);

    if (broker == NULL)
        return NULL;
    set_options(broker, options);
    list_init(&broker->sweep);
    list_init(&broker->waits);
    list_init(&broker->ended);
    list_init(&broker->own);
    rmp_notices_init(broker);
    broker->metrics_at_ms = UINT64_MAX;
    /* Of this run, and no one else's. */
    broker->own_trace_id.high = siphash(&options->key, "trace", 5);
    broker->own_trace_id.low = siphash(&options->key, "id", 2);
    return broker;
}

void rmp_broker_bound(struct rmp_broker *broker, size_t subscription_bytes, size_t key_bytes)
{
    broker->memory.max[RMP_SUBSCRIPTIONS] = subscription_bytes;
    broker->memory.max[RMP_KEYS] = key_bytes;
}

void rmp_broker_observe(struct rmp_broker *broker, struct rmp_observer *observer)
{
    rmp_topics_observe(&broker->topics, observer);
}

static void free_waits(struct list *waits)
{
    while (!list_empty(waits))
        rmp_wait_free(list_entry(waits->head.next, struct rmp_wait, in_order));
}

static void free_own(struct list *own)
{
    struct list_node *node;

    while ((node = list_take_first(own)) != NULL)
        rmp_message_release(list_entry(node, struct rmp_message, in_own));
}

void rmp_broker_free(struct rmp_broker *broker)
{
    if (broker == NULL)
        return;
    for (size_t i = 0; i < broker->subscriptions.table.capacity; i++) {
        struct rmp_subscription *subscription = broker->subscriptions.table.slots[i].item;

        if (subscription != NULL)
            rmp_queue_clear(broker, subscription->peer);
    }
    free_waits(&broker->waits);
    free_waits(&broker->ended);
    free_own(&broker->own);
    for (size_t i = 0; i < broker->topics.table.capacity; i++) {
        if (broker->topics.table.slots[i].item != NULL)
            rmp_known_clear(broker, broker->topics.table.slots[i].item);
    }
    rmp_subscriptions_free(&broker->subscriptions);
    rmp_topics_free(&broker->topics);
    rmp_memory_free(&broker->memory);
    ASSERT(broker->copies_bytes == 0);
    free(broker);
}

const struct rmp_counters *rmp_broker_counters(const struct rmp_broker *broker)
{
    return &broker->counters;
}

struct rmp_gauges rmp_broker_gauges(const struct rmp_broker *broker)
{
    return rmp_metrics_gauges(broker);
}

/* --- peers --- */

void rmp_broker_join(struct rmp_broker *broker, struct rmp_peer *peer,
                     const struct rmp_peer_ops *ops, enum rmp_kind kind)
{
    *peer = (struct rmp_peer){.ops = ops, .kind = kind, .number = ++broker->last_peer};
    list_init(&peer->subscriptions);
    list_init(&peer->queue);
    list_init(&peer->undecided);
    list_init(&peer->waits);
    broker->memory.peers++;
}

static void end_subscription(struct rmp_broker *broker, struct rmp_subscription *subscription)
{
    struct rmp_topic *topic = subscription->topic;

    rmp_queue_forget(broker, subscription);
    rmp_subscriptions_remove(&broker->subscriptions, subscription);
    if (!list_empty(&topic->subscriptions))
        return;
    rmp_known_clear(broker, topic);
    rmp_topics_remove(&broker->topics, topic);
}

void rmp_broker_leave(struct rmp_broker *broker, struct rmp_peer *peer)
{
    struct list_node *node;

    rmp_queue_clear(broker, peer);
    while (!list_empty(&peer->subscriptions))
        end_subscription(broker, list_entry(peer->subscriptions.head.next, struct rmp_subscription,
                                            in_peer));
    while ((node = list_take_first(&peer->waits)) != NULL)
        list_entry(node, struct rmp_wait, in_peer)->publisher = NULL;
    broker->memory.peers--;
}

void rmp_broker_resume(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_time time)
{
    rmp_queue_hand_over(broker, peer, time);
    rmp_publish_own(broker, time);
}

/* --- subscriptions --- */

/* Adds the subscription and, if it has none yet, the topic. NULL if out of memory. */
static struct rmp_subscription *add_subscription(struct rmp_broker *broker, struct rmp_peer *peer,
                                                 struct rmp_sub_name name, struct rmp_topic *topic,
                                                 struct slice topic_name)
{
    struct rmp_topic *there = topic != NULL ? topic : rmp_topics_add(&broker->topics, topic_name);
    struct rmp_subscription *subscription;

    if (there == NULL)
        return NULL;
    subscription = rmp_subscriptions_add(&broker->subscriptions, peer, name, there,
                                         broker->number + 1);
    if (subscription == NULL && topic == NULL)
        rmp_topics_remove(&broker->topics, there);
    return subscription;
}

/* Why the peer gets no subscription, or NULL. */
static const char *refuses(struct rmp_broker *broker, const struct rmp_peer *peer, size_t topic_len,
                           const struct rmp_subscription *old)
{
    switch (rmp_subscriptions_room(&broker->subscriptions, peer, topic_len, old)) {
    case RMP_ROOM:
        return NULL;
    case RMP_NO_SHARE:
        return "there are too many subscriptions: the memory for those of all clients is used up";
    case RMP_NO_MEMORY:
        break;
    }
    broker->counters.no_memory++;
    return NO_MEMORY;
}

struct rmp_result rmp_broker_subscribe(struct rmp_broker *broker, struct rmp_peer *peer,
                                       struct rmp_sub_name name, struct slice topic_name,
                                       struct rmp_time time)
{
    struct rmp_result ok = {.outcome = RMP_RESULT_OK};
    struct rmp_topic *topic;
    struct rmp_subscription *old;
    const char *reason;

    if (broker->closed)
        return (struct rmp_result){.outcome = RMP_RESULT_CLOSED};
    if (!rmp_topic_is_valid(topic_name))
        return rmp_result_forbidden(RMP_TOPIC_RULE);
    topic = rmp_topics_find(&broker->topics, topic_name);
    old = rmp_subscriptions_find(&broker->subscriptions, peer, name, topic);
    if (old != NULL && old->topic == topic)
        return ok;
    reason = refuses(broker, peer, topic_name.len, old);
    if (reason != NULL)
        return rmp_result_forbidden(reason);
    if (add_subscription(broker, peer, name, topic, topic_name) == NULL) {
        broker->counters.no_memory++;
        return rmp_result_forbidden(NO_MEMORY);
    }
    if (old != NULL)
        end_subscription(broker, old);
    rmp_metrics_subscribed(broker, topic_name, time.now_ms);
    ok.is_new = true;
    return ok;
}

void rmp_broker_replay(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_sub_name name,
                       const struct rmp_publication *given, struct rmp_time time)
{
    const struct rmp_topic *topic = rmp_topics_find(&broker->topics, given->topic);
    struct rmp_subscription *subscription = rmp_subscriptions_find(&broker->subscriptions, peer,
                                                                   name, topic);
    struct rmp_publication publication = *given;
    struct rmp_fanout fanout = {
        .broker = broker, .publication = &publication, .time = time, .is_replay = true};

    ASSERT(subscription != NULL && subscription->topic == topic);
    publication.number = ++broker->number;
    (void)rmp_header_expiry(&publication.header, &fanout.expires_at_ms);
    rmp_fanout_one(&fanout, subscription);
    rmp_message_release(fanout.copy);
    broker->counters.replayed++;
    rmp_publish_own(broker, time);
}

bool rmp_broker_unsubscribe(struct rmp_broker *broker, struct rmp_peer *peer,
                            struct rmp_sub_name name, struct slice topic_name)
{
    struct rmp_topic *topic = NULL;
    struct rmp_subscription *subscription;

    if (name.dialect == RMP_DIALECT_FRAMES)
        topic = rmp_topics_find(&broker->topics, topic_name);
    subscription = rmp_subscriptions_find(&broker->subscriptions, peer, name, topic);
    if (subscription == NULL)
        return false;
    end_subscription(broker, subscription);
    return true;
}

/* --- publications --- */

bool rmp_broker_publish(struct rmp_broker *broker, struct rmp_peer *publisher,
                        const struct rmp_publication *publication, struct rmp_time time,
                        uint64_t token, struct rmp_result *result)
{
    struct rmp_publisher from = {.peer = publisher, .token = token};
    bool ended = rmp_publish(broker, from, publication, time, result);

    rmp_publish_own(broker, time);
    return ended;
}

/* --- time --- */

uint64_t rmp_broker_deadline(const struct rmp_broker *broker)
{
    uint64_t deadline = broker->metrics_at_ms, sweep_ms = rmp_known_deadline(broker);
    const struct rmp_wait *wait;

    if (!list_empty(&broker->ended))
        return 0;
    if (!list_empty(&broker->waits)) {
        wait = list_entry(broker->waits.head.next, struct rmp_wait, in_order);
        if (wait->deadline_ms < deadline)
            deadline = wait->deadline_ms;
    }
    return sweep_ms < deadline ? sweep_ms : deadline;
}

static void end_waits(struct rmp_broker *broker, enum rmp_outcome outcome, uint64_t until_ms,
                      struct rmp_time time)
{
    while (!list_empty(&broker->waits)) {
        struct rmp_wait *wait = list_entry(broker->waits.head.next, struct rmp_wait, in_order);

        if (wait->deadline_ms > until_ms)
            break;
        rmp_wait_end(broker, wait, outcome, time);
    }
}

static void report_ended(struct rmp_broker *broker)
{
    while (!list_empty(&broker->ended)) {
        struct rmp_wait *wait = list_entry(broker->ended.head.next, struct rmp_wait, in_order);
        struct rmp_peer *publisher = wait->publisher;
        struct rmp_result result;

        list_remove(&wait->in_order);
        rmp_publish_result(&result, wait->outcome, &wait->message->publication);
        if (publisher != NULL)
            publisher->ops->published(publisher, wait->token, &result);
        rmp_wait_free(wait);
    }
}

void rmp_broker_run(struct rmp_broker *broker, struct rmp_time time)
{
    end_waits(broker, RMP_RESULT_BACKPRESSURE_TIMEOUT, time.now_ms, time);
    rmp_known_sweep(broker, time.now_ms);
    rmp_metrics_run(broker, time);
    rmp_publish_own(broker, time);
    report_ended(broker);
}

void rmp_broker_close(struct rmp_broker *broker, struct rmp_time time)
{
    broker->closed = true;
    end_waits(broker, RMP_RESULT_CLOSED, UINT64_MAX, time);
    rmp_publish_own(broker, time);
}
