#include "build_config.h"

#include "rmp/broker_archive.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/frame.h"
#include "rmp/known.h"
#include "rmp/metrics.h"
#include "rmp/queue.h"
#include "rmp/state.h"

/* The broker's own messages are published at the end of each call. */
void rmp_archive_begin(struct rmp_archive *state, struct archive *archive,
                       struct rmp_broker *broker)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_broker, counters, own_trace_id, own_msg_id, metrics_at_ms,
                         notices_at_ms, notices_suppressed),
        ARCHIVE_CHOICE(struct rmp_broker, notice_tokens, RMP_NOTICE_TOKENS_MAX),
    };

    *state = (struct rmp_archive){.archive = archive, .broker = broker};
    ASSERT(list_empty(&broker->own) && !broker->closed);
    archive_mark(archive, "broker");
    ARCHIVE_FIELDS(archive, broker, fields);
    ARCHIVE_ENUM(archive, broker->number, INT64_MAX);
    ARCHIVE_ENUM(archive, broker->last_peer, INT64_MAX);
}

void rmp_archive_end(struct rmp_archive *state)
{
    hash_table_free(&state->peers);
}

/* --- peers --- */

static bool is_peer(const void *item, const void *number)
{
    return ((const struct rmp_peer *)item)->number == *(const uint64_t *)number;
}

static struct rmp_peer *find_peer(const struct rmp_archive *state, uint64_t number)
{
    return hash_table_find(&state->peers, number, is_peer, &number);
}

void rmp_archive_peer(struct rmp_archive *state, struct rmp_peer *peer)
{
    struct archive *archive = state->archive;

    archive_mark(archive, "rmppeer");
    ARCHIVE_INTEGER(archive, peer->number);
    ARCHIVE_ENUM(archive, peer->kind, RMP_KIND_TUI);
    archive_flag(archive, &peer->busy);
    archive_flag(archive, &peer->stalled);
    archive_expect(archive, peer->number > 0 && peer->number <= state->broker->last_peer,
                   "a peer of the topic bus is still to come");
    archive_expect(archive, find_peer(state, peer->number) == NULL,
                   "two peers of the topic bus have one number");
    if (archive_ok(archive))
        archive_done(archive, hash_table_insert(&state->peers, peer->number, peer));
}

static void archive_reference(struct rmp_archive *state, struct rmp_peer **peer)
{
    uint64_t number = *peer != NULL ? (*peer)->number : 0;

    ARCHIVE_INTEGER(state->archive, number);
    if (state->archive->saves)
        return;
    *peer = number != 0 ? find_peer(state, number) : NULL;
    archive_expect(state->archive, number == 0 || *peer != NULL,
                   "the topic bus names a peer that is not there");
}

/* --- topics and subscriptions --- */

static void archive_missed(struct rmp_archive *state, struct rmp_subscription *subscription)
{
    struct archive *archive = state->archive;
    const struct rmp_missed *missed = &subscription->missed;
    size_t count = archive_count(archive, missed->count), at = 0;

    for (; count > 0 && archive_ok(archive); count--, at++) {
        uint64_t number = 0;

        while (archive->saves && missed->slots[at] == 0)
            at++;
        if (archive->saves)
            number = missed->slots[at];
        ARCHIVE_INTEGER(archive, number);
        archive_expect(archive, number > 0 && number <= state->broker->number,
                       "a subscription has missed what is still to come");
        if (archive_loads(archive))
            archive_done(archive, rmp_subscriptions_add_missed(&state->broker->subscriptions,
                                                               subscription, number, 0));
    }
}

static void archive_name(struct archive *archive, struct rmp_sub_name *name)
{
    ARCHIVE_ENUM(archive, name->dialect, RMP_DIALECT_FRAMES);
    ARCHIVE_INTEGER(archive, name->sub_id);
    archive_expect(archive, name->dialect == RMP_DIALECT_JSON || name->sub_id == 0,
                   "a subscription has two names");
}

/* The order within its peer makes no difference. */
static void archive_subscription(struct archive *archive, void *owner, void *item)
{
    struct rmp_archive *state = owner;
    struct rmp_subscriptions *all = &state->broker->subscriptions;
    struct rmp_subscription *subscription = item;
    struct rmp_peer *peer = subscription != NULL ? subscription->peer : NULL;
    struct rmp_sub_name name = {.sub_id = 0};
    uint64_t since = subscription != NULL ? subscription->since : 0;

    if (subscription != NULL)
        name = subscription->name;
    archive_reference(state, &peer);
    archive_name(archive, &name);
    ARCHIVE_INTEGER(archive, since);
    archive_expect(archive, peer != NULL, "a subscription has no peer");
    archive_expect(archive,
                   peer == NULL || rmp_subscriptions_find(all, peer, name, state->topic) == NULL,
                   "two subscriptions have one name");
    if (archive_loads(archive))
        subscription = rmp_subscriptions_add(all, peer, name, state->topic, since);
    if (archive_made(archive, subscription != NULL))
        archive_missed(state, subscription);
}

static void archive_topic(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct rmp_topic, published, delivered, dropped),
    };
    struct rmp_archive *state = owner;
    struct rmp_topics *topics = &state->broker->topics;
    struct rmp_topic *topic = item;
    struct slice name = archive_slice(archive, topic != NULL
                                                   ? slice_of(topic->name, topic->name_len)
                                                   : slice_of(NULL, 0));

    archive_expect(archive, rmp_topic_is_valid(name) && rmp_topics_find(topics, name) == NULL,
                   "a topic has no name of its own");
    if (archive_loads(archive))
        topic = rmp_topics_add(topics, name);
    if (!archive_made(archive, topic != NULL))
        return;
    ARCHIVE_FIELDS(archive, topic, fields);
    state->topic = topic;
    ARCHIVE_LIST(archive, &topic->subscriptions, struct rmp_subscription, in_topic,
                 archive_subscription, state);
    archive_expect(archive, !list_empty(&topic->subscriptions), "a topic has no subscription");
}

static void save_topics(struct rmp_archive *state)
{
    const struct hash_table *table = &state->broker->topics.table;

    for (size_t i = 0; i < table->capacity; i++) {
        struct rmp_topic *topic = table->slots[i].item;

        if (topic != NULL)
            archive_topic(state->archive, state, topic);
    }
}

void rmp_archive_topics(struct rmp_archive *state)
{
    size_t count;

    archive_mark(state->archive, "topics");
    count = archive_count(state->archive, state->broker->topics.table.count);
    if (state->archive->saves)
        save_topics(state);
    archive_load(state->archive, count, archive_topic, state);
    rmp_known_archive(state->archive, state->broker);
}

/* --- copies of publications --- */

/* A copy of a publication that waits, and the publisher that waits with it. */
struct known {
    struct rmp_message *message;
    struct rmp_wait *wait; /* NULL: none, or its end was decided */
};

static bool is_copy(const void *item, const void *number)
{
    return ((const struct known *)item)->message->publication.number == *(const uint64_t *)number;
}

/* Holds the message. NULL if out of memory. */
static struct known *know(struct rmp_archive *state, struct rmp_message *message)
{
    struct known *known = calloc(1, sizeof *known);

    if (known == NULL)
        return NULL;
    known->message = rmp_message_hold(message);
    if (hash_table_insert(&state->copies, message->publication.number, known) == STDIO_BUS_OK)
        return known;
    rmp_message_release(message);
    free(known);
    return NULL;
}

/* The header is read from the frame. NULL with a problem. */
static struct rmp_message *load_message(struct rmp_archive *state, uint64_t number,
                                        struct slice topic, struct slice frame)
{
    struct archive *archive = state->archive;
    struct rmp_publication publication = {.topic = topic, .frame = frame, .number = number};
    struct rmp_message *message;

    archive_expect(archive, number > 0 && number <= state->broker->number,
                   "a message that waits is still to come");
    archive_expect(archive, rmp_topic_is_valid(topic), "a message that waits has no topic");
    archive_expect(archive,
                   frame.len >= RMP_BODY_OFFSET &&
                       rmp_header_read(&publication.header, slice_of(frame.data + RMP_PREFIX_LEN,
                                                                     frame.len - RMP_PREFIX_LEN)) ==
                           RMP_OK &&
                       publication.header.body_len == frame.len - RMP_BODY_OFFSET,
                   "a message that waits is no frame");
    if (!archive_ok(archive))
        return NULL;
    message = rmp_message_copy(&publication, 0, &state->broker->copies_bytes);
    archive_made(archive, message != NULL);
    return message;
}

/* A message that is not in the archive yet. */
static struct known *archive_bytes_of(struct rmp_archive *state, uint64_t number,
                                      struct rmp_message *message)
{
    struct archive *archive = state->archive;
    struct slice topic = slice_of(NULL, 0), frame = slice_of(NULL, 0);
    struct known *known;

    if (message != NULL) {
        topic = message->publication.topic;
        frame = message->publication.frame;
    }
    topic = archive_slice(archive, topic);
    frame = archive_slice(archive, frame);
    if (!archive->saves)
        message = load_message(state, number, topic, frame);
    if (message == NULL)
        return NULL;
    ARCHIVE_INTEGER(archive, message->expires_at_ms);
    ARCHIVE_INTEGER(archive, message->publication.user);
    known = know(state, message);
    if (!archive->saves)
        rmp_message_release(message);
    archive_made(archive, known != NULL);
    return known;
}

/* `message`: where it saves. NULL with a problem. */
static struct known *archive_message(struct rmp_archive *state, struct rmp_message *message)
{
    uint64_t number = message != NULL ? message->publication.number : 0;
    struct known *known;

    ARCHIVE_INTEGER(state->archive, number);
    if (!archive_ok(state->archive))
        return NULL;
    known = hash_table_find(&state->copies, number, is_copy, &number);
    return known != NULL ? known : archive_bytes_of(state, number, message);
}

static void forget_copies(struct rmp_archive *state)
{
    for (size_t i = 0; i < state->copies.capacity; i++) {
        struct known *known = state->copies.slots[i].item;

        if (known == NULL)
            continue;
        rmp_message_release(known->message);
        free(known);
    }
    hash_table_free(&state->copies);
}

/* --- publications that wait --- */

static void load_wait(struct rmp_archive *state, struct known *known, struct rmp_wait record,
                      bool has_ended)
{
    struct rmp_broker *broker = state->broker;
    struct rmp_wait *wait;

    archive_expect(state->archive, known->wait == NULL, "a message has two publishers");
    if (!archive_ok(state->archive))
        return;
    wait = rmp_wait_begin(broker, record.publisher, known->message, record.token, 0);
    if (!archive_made(state->archive, wait != NULL))
        return;
    wait->deadline_ms = record.deadline_ms;
    wait->outcome = record.outcome;
    if (!has_ended) {
        known->wait = wait;
        return;
    }
    list_remove(&wait->in_order);
    list_append(&broker->ended, &wait->in_order);
}

static const struct archive_field wait_fields[] = {
    ARCHIVE_INTEGERS(struct rmp_wait, token, deadline_ms),
    ARCHIVE_CHOICE(struct rmp_wait, outcome, RMP_RESULT_BACKPRESSURE_TIMEOUT),
};

static void archive_wait(struct rmp_archive *state, const struct rmp_wait *wait, bool has_ended)
{
    struct archive *archive = state->archive;
    struct known *known = archive_message(state, wait != NULL ? wait->message : NULL);
    struct rmp_wait record = {.publisher = NULL};

    if (wait != NULL)
        record = *wait;
    archive_reference(state, &record.publisher);
    ARCHIVE_FIELDS(archive, &record, wait_fields);
    archive_expect(archive,
                   record.outcome <= RMP_RESULT_MESSAGE_EXPIRED ||
                       record.outcome == RMP_RESULT_BACKPRESSURE_TIMEOUT,
                   "a publication that waits has another outcome");
    if (archive_loads(archive) && known != NULL)
        load_wait(state, known, record, has_ended);
}

static void archive_waiting(struct archive *archive, void *owner, void *item)
{
    (void)archive;
    archive_wait(owner, item, false);
}

static void archive_ended(struct archive *archive, void *owner, void *item)
{
    (void)archive;
    archive_wait(owner, item, true);
}

/* Those that wait have undecided messages, or else their end would have been decided. */
static void check_waits(struct rmp_archive *state)
{
    struct list_node *node, *following;

    list_each(&state->broker->waits, node, following)
        archive_expect(state->archive,
                       !list_empty(&list_entry(node, struct rmp_wait, in_order)->undecided),
                       "a publisher waits, and no message of it does");
}

/* --- queues --- */

static void load_queued(struct rmp_archive *state, struct rmp_peer *peer, struct rmp_sub_name name,
                        struct known *known, bool has_place)
{
    struct rmp_broker *broker = state->broker;
    struct rmp_topic *topic = rmp_topics_find(&broker->topics, known->message->publication.topic);
    struct rmp_subscription *subscription = rmp_subscriptions_find(&broker->subscriptions, peer,
                                                                   name, topic);

    archive_expect(state->archive, subscription != NULL && subscription->topic == topic,
                   "a message waits for a subscription that is not there");
    archive_expect(state->archive, has_place || known->wait != NULL,
                   "a message waits for a place without its publisher");
    if (archive_ok(state->archive))
        archive_done(state->archive, rmp_queue_add(broker, subscription, known->message,
                                                   has_place ? NULL : known->wait));
}

static void archive_queued(struct archive *archive, void *owner, void *item)
{
    struct rmp_archive *state = owner;
    const struct rmp_queued *queued = item;
    struct known *known = archive_message(state, queued != NULL ? queued->message : NULL);
    struct rmp_sub_name name = {.sub_id = 0};
    bool has_place;

    if (queued != NULL)
        name = queued->subscription->name;
    archive_name(archive, &name);
    has_place = archive_present(archive, queued == NULL || queued->wait == NULL);
    if (archive_loads(archive) && known != NULL)
        load_queued(state, state->peer, name, known, has_place);
}

/* The order of the messages of one wait is that of their peers then, which makes no difference. */
static void archive_queue(struct archive *archive, void *owner, void *item)
{
    struct rmp_archive *state = owner;

    state->peer = item;
    archive_reference(state, &state->peer);
    archive_expect(archive,
                   state->peer != NULL && state->peer->busy && list_empty(&state->peer->queue),
                   "messages wait for a peer that takes them");
    if (archive_ok(archive))
        ARCHIVE_LIST(archive, &state->peer->queue, struct rmp_queued, in_queue, archive_queued,
                     state);
}

static bool has_queue(const struct rmp_peer *peer)
{
    return peer != NULL && !list_empty(&peer->queue);
}

static size_t count_queues(const struct hash_table *peers)
{
    size_t count = 0;

    for (size_t i = 0; i < peers->capacity; i++)
        count += has_queue(peers->slots[i].item);
    return count;
}

static void save_queues(struct rmp_archive *state)
{
    for (size_t i = 0; i < state->peers.capacity; i++) {
        if (has_queue(state->peers.slots[i].item))
            archive_queue(state->archive, state, state->peers.slots[i].item);
    }
}

static void archive_queues(struct rmp_archive *state)
{
    size_t count = archive_count(state->archive, count_queues(&state->peers));

    if (state->archive->saves) {
        save_queues(state);
        return;
    }
    archive_load(state->archive, count, archive_queue, state);
    check_waits(state);
}

void rmp_archive_queues(struct rmp_archive *state)
{
    archive_mark(state->archive, "queues");
    ARCHIVE_LIST(state->archive, &state->broker->waits, struct rmp_wait, in_order, archive_waiting,
                 state);
    ARCHIVE_LIST(state->archive, &state->broker->ended, struct rmp_wait, in_order, archive_ended,
                 state);
    archive_queues(state);
    forget_copies(state);
}
