#include "build_config.h"

#include "federation/topics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "config/nats_keys.h"
#include "federation/hub.h"
#include "federation/service.h"
#include "monitor/metrics.h"
#include "rmp/bridge.h"
#include "rmp/broker.h"
#include "rmp/control.h"
#include "rmp/subscription.h"
#include "router/router_archive.h"

#define CONTEXT "nats"
#define NODE_HEADER "Stdio-Bus-Node"
#define SUBJECT_SIZE (NATS_NAME_SIZE(RMP_TOPIC_MAX) + 80) /* with the prefix, and a NUL */
#define HEADERS_SIZE 64
#define NAME_SHOWN_MAX 100 /* of a topic, in the log */

/* What publications may take of BROKER_KEPT_MAX: the rest is for answers. */
#define KEPT_MAX (BROKER_KEPT_MAX / 2)

struct topics_metrics {
    uint64_t subscribed, sent, taken, refused, lost;
};

struct nats_topics {
    struct stdio_bus *bus;
    struct nats_hub *hub;
    struct rmp_broker *broker; /* the topic bus; NULL: there is none */
    struct rmp_rules rules;
    struct rmp_observer observer;
    const struct rmp_peer *imported; /* the publisher of a publication of NATS; NULL: none now */
    uint64_t id;                     /* of this daemon: it knows its own messages by it */
    struct topics_metrics metrics;
};

/* A topic with a subscriber here, and a subscription at NATS. */
struct carried_topic {
    struct nats_subscription subscription;
    struct nats_topics *of;
    struct slice name; /* within this struct */
    char text[];       /* the subject, NUL, the name */
};

/* --- topics and subjects --- */

/* Requests to an agent or a runner would be carried out at each node that has one. Decisions are
 * for the users of a node, whom it knows itself. */
static bool is_carried(struct slice topic)
{
    return !rmp_topic_is_system(topic) && !slice_is(topic, RMP_TOPIC_CONTROL) &&
           !slice_is(topic, RMP_TOPIC_DECISION) &&
           !(topic.len >= sizeof RMP_AGENT_PREFIX - 1 &&
             memcmp(topic.data, RMP_AGENT_PREFIX, sizeof RMP_AGENT_PREFIX - 1) == 0);
}

/* The subject, with a NUL after it. */
static struct slice write_subject(char to[SUBJECT_SIZE], const struct nats_topics *topics,
                                  struct slice topic)
{
    int len = snprintf(to, SUBJECT_SIZE, "%s.topic.", nats_config_prefix(&topics->hub->config));
    size_t end = (size_t)len + nats_write_name(to + len, topic);

    to[end] = '\0';
    return slice_of(to, end);
}

/* --- to NATS --- */

static void report_lost(struct nats_topics *topics, struct slice topic, const char *reason)
{
    char name[NAME_SHOWN_MAX];

    topics->metrics.lost++;
    log_warn(topics->bus->log, CONTEXT, "a message on %s is lost for other nodes: %s",
             log_escape(name, sizeof name, topic), reason);
}

static void send_publication(struct nats_topics *topics, const struct rmp_publication *publication)
{
    struct broker *broker = &topics->hub->broker;
    size_t waiting = broker_is_ready(broker) ? broker->connection.output.bytes : broker->kept.len;
    char subject[SUBJECT_SIZE] UNINITIALIZED, headers[HEADERS_SIZE] UNINITIALIZED;
    int len = snprintf(headers, sizeof headers,
                       "NATS/1.0\r\n" NODE_HEADER ": %016" PRIx64 "\r\n\r\n", topics->id);
    const struct nats_head head = {.subject = write_subject(subject, topics, publication->topic),
                                   .headers = slice_of(headers, (size_t)len)};

    if (waiting + publication->frame.len > KEPT_MAX) {
        report_lost(topics, publication->topic, "too much waits for the server");
        return;
    }
    switch (broker_send(broker, &head, publication->frame)) {
    case STDIO_BUS_OK:
        topics->metrics.sent++;
        break;
    case STDIO_BUS_EINVAL:
        report_lost(topics, publication->topic, "it is longer than max_payload of the server");
        break;
    default:
        report_lost(topics, publication->topic, "out of memory");
    }
}

static void accepted(struct rmp_observer *observer, const struct rmp_peer *publisher,
                     const struct rmp_publication *publication)
{
    struct nats_topics *topics = list_entry(observer, struct nats_topics, observer);

    if (publisher != topics->imported && is_carried(publication->topic) &&
        publication->header.schema_id != RMP_SCHEMA_ACTION_DECISION)
        send_publication(topics, publication);
}

/* --- from NATS --- */

static bool is_own(const struct nats_topics *topics, struct slice headers)
{
    struct slice value = nats_header(headers, NODE_HEADER);
    char id[17];

    snprintf(id, sizeof id, "%016" PRIx64, topics->id);
    return slice_is(value, id);
}

/* The topic bus judges time, and who may publish what. Without "validate" it takes any body. */
static bool is_usable(const struct nats_topics *topics, enum rmp_error error)
{
    switch (error) {
    case RMP_OK:
    case RMP_INVALID_TTL:
    case RMP_INVALID_EXPIRY:
    case RMP_EXPIRED:
        return true;
    case RMP_BODY_DECODE_ERROR:
    case RMP_BODY_TYPE_MISMATCH:
        return !topics->bus->options.config->rmp.validate;
    default:
        return false;
    }
}

/* Each message has a publisher of its own, which leaves at once: what waits goes on without it. To
 * the topic bus all nodes are one user, who is no user interface. */
static bool publish(struct nats_topics *topics, const struct rmp_publication *publication,
                    struct rmp_time time)
{
    static const struct rmp_peer_ops no_ops;
    struct rmp_peer peer;
    struct rmp_result result = {.outcome = RMP_RESULT_OK};

    rmp_broker_join(topics->broker, &peer, &no_ops, RMP_KIND_AGENT);
    peer.user = RMP_USER_UNKNOWN;
    topics->imported = &peer;
    (void)rmp_broker_publish(topics->broker, &peer, publication, time, 0, &result);
    topics->imported = NULL;
    rmp_broker_leave(topics->broker, &peer);
    return result.outcome == RMP_RESULT_OK || result.outcome == RMP_RESULT_BACKPRESSURE_TIMEOUT ||
           result.outcome == RMP_RESULT_MESSAGE_EXPIRED;
}

static void message(struct nats_subscription *subscription, const struct nats_frame *from)
{
    const struct carried_topic *topic = list_entry(subscription, struct carried_topic,
                                                   subscription);
    struct nats_topics *topics = topic->of;
    const struct rmp_time time = {
        .epoch_ms = clock_epoch_ms(),
        .now_ms = (uint64_t)stdio_bus_event_loop_now_ms(topics->bus->loop)};
    struct rmp_frame frame;

    if (is_own(topics, from->headers))
        return;
    topics->metrics.taken++;
    if (is_usable(topics, rmp_frame_read(&frame, from->payload, &topics->rules, time.epoch_ms)) &&
        publish(topics,
                &(struct rmp_publication){
                    .header = frame.header, .topic = topic->name, .frame = frame.wire},
                time))
        return;
    topics->metrics.refused++;
    log_warn(topics->bus->log, CONTEXT,
             "a message on a topic is refused: it is no frame of RMP, or "
             "other nodes may not send it");
}

/* --- subscriptions --- */

static struct carried_topic *carry(struct nats_topics *topics, struct slice name)
{
    char subject[SUBJECT_SIZE] UNINITIALIZED;
    struct slice bytes = write_subject(subject, topics, name);
    struct carried_topic *topic = calloc(1, sizeof *topic + bytes.len + 1 + name.len);

    if (topic == NULL)
        return NULL;
    memcpy(topic->text, bytes.data, bytes.len);
    memcpy(topic->text + bytes.len + 1, name.data, name.len);
    topic->name = slice_of(topic->text + bytes.len + 1, name.len);
    topic->of = topics;
    topic->subscription.subject = topic->text;
    topic->subscription.message = message;
    if (broker_subscribe(&topics->hub->broker, &topic->subscription) == STDIO_BUS_OK)
        return topic;
    free(topic);
    return NULL;
}

static void opened(struct rmp_observer *observer, struct slice name, void **mark)
{
    struct nats_topics *topics = list_entry(observer, struct nats_topics, observer);

    *mark = NULL;
    if (!is_carried(name))
        return;
    *mark = carry(topics, name);
    if (*mark == NULL)
        log_error(topics->bus->log, CONTEXT, "out of memory: a topic has no messages of others");
    else
        topics->metrics.subscribed++;
}

static void closed(struct rmp_observer *observer, void **mark)
{
    struct nats_topics *topics = list_entry(observer, struct nats_topics, observer);
    struct carried_topic *topic = *mark;

    if (topic == NULL)
        return;
    broker_unsubscribe(&topics->hub->broker, &topic->subscription);
    free(topic);
    *mark = NULL;
    topics->metrics.subscribed--;
}

/* --- operations --- */

static bool is_wanted(const struct bus_options *options)
{
    return options->config->nats.topics;
}

static void *create(struct stdio_bus *bus)
{
    struct nats_topics *topics = calloc(1, sizeof *topics);
    struct siphash_key random;

    if (topics == NULL)
        return NULL;
    random = siphash_random_key();
    topics->bus = bus;
    topics->hub = services_state(bus, &nats_service);
    topics->rules = (struct rmp_rules){&bus->options.config->rmp.schemas,
                                       bus->options.config->rmp.max_body};
    topics->observer = (struct rmp_observer){opened, closed, accepted};
    topics->id = siphash(&random, "node", 4);
    return topics;
}

static void start(void *state)
{
    struct nats_topics *topics = state;

    topics->broker = topics->bus->topics;
    if (topics->broker != NULL)
        rmp_broker_observe(topics->broker, &topics->observer);
    else
        log_warn(topics->bus->log, CONTEXT, "\"topics\" has no effect: there is no topic bus");
}

static void detach(void *state)
{
    struct nats_topics *topics = state;

    if (topics->broker != NULL)
        rmp_broker_observe(topics->broker, NULL);
    topics->broker = NULL;
}

static void destroy(void *state)
{
    free(state);
}

#define VALUE(member) METRIC_AT(struct nats_topics, metrics.member)

static const struct metric metrics[] = {
    {"stdio_bus_nats_topics", "Topics that are taken from NATS.", VALUE(subscribed)},
    {"stdio_bus_nats_topics_sent_total", "Publications that were sent to NATS.", VALUE(sent)},
    {"stdio_bus_nats_topics_taken_total", "Publications that came over NATS.", VALUE(taken)},
    {"stdio_bus_nats_topics_refused_total", "Publications of these that were refused.",
     VALUE(refused)},
    {"stdio_bus_nats_topics_lost_total", "Publications that could not be sent.", VALUE(lost)},
    {.name = NULL},
};

/* The topics themselves are those of the topic bus. */
static void archive(void *state, struct router_archive *to)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct nats_topics, id, metrics.sent, metrics.taken, metrics.refused,
                         metrics.lost),
    };
    struct nats_topics *topics = state;

    ARCHIVE_FIELDS(to->archive, topics, fields);
    if (archive_loads(to->archive))
        start(topics);
}

const struct service nats_topics_service = {
    .is_wanted = is_wanted,
    .create = create,
    .start = start,
    .detach = detach,
    .destroy = destroy,
    .metrics = metrics,
    .archive = ARCHIVE_OP(archive),
};
