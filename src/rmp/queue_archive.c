#include "build_config.h"

#include "rmp/queue_archive.h"

#include <stdlib.h>

#include "base/error.h"
#include "rmp/queue.h"
#include "rmp/state.h"

#define NO_MEMORY "out of memory"

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
    if (message == NULL)
        archive_fail(archive, NO_MEMORY);
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
    if (known == NULL)
        archive_fail(archive, NO_MEMORY);
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
    if (wait == NULL) {
        archive_fail(state->archive, NO_MEMORY);
        return;
    }
    wait->deadline_ms = record.deadline_ms;
    wait->outcome = record.outcome;
    if (!has_ended) {
        known->wait = wait;
        return;
    }
    list_remove(&wait->in_order);
    list_append(&broker->ended, &wait->in_order);
}

/* `wait`: where it saves. */
static void archive_wait(struct rmp_archive *state, const struct rmp_wait *wait, bool has_ended)
{
    struct archive *archive = state->archive;
    struct known *known = archive_message(state, wait != NULL ? wait->message : NULL);
    struct rmp_wait record = {.publisher = NULL};

    if (wait != NULL)
        record = *wait;
    rmp_archive_reference(state, &record.publisher);
    ARCHIVE_INTEGER(archive, record.token);
    ARCHIVE_INTEGER(archive, record.deadline_ms);
    ARCHIVE_ENUM(archive, record.outcome, RMP_RESULT_BACKPRESSURE_TIMEOUT);
    archive_expect(archive,
                   record.outcome <= RMP_RESULT_MESSAGE_EXPIRED ||
                       record.outcome == RMP_RESULT_BACKPRESSURE_TIMEOUT,
                   "a publication that waits has another outcome");
    if (!archive->saves && archive_ok(archive) && known != NULL)
        load_wait(state, known, record, has_ended);
}

static void archive_waits(struct rmp_archive *state, const struct list *waits, bool has_ended)
{
    size_t count = archive_count(state->archive, list_count(waits));
    struct list_node *node = waits->head.next;

    for (; count > 0 && archive_ok(state->archive); count--)
        archive_wait(state, ARCHIVE_NEXT(state->archive, node, struct rmp_wait, in_order),
                     has_ended);
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
    if (archive_ok(state->archive) && rmp_queue_add(broker, subscription, known->message,
                                                    has_place ? NULL : known->wait) != STDIO_BUS_OK)
        archive_fail(state->archive, NO_MEMORY);
}

/* `queued`: where it saves. */
static void archive_queued(struct rmp_archive *state, struct rmp_peer *peer,
                           const struct rmp_queued *queued)
{
    struct archive *archive = state->archive;
    struct known *known = archive_message(state, queued != NULL ? queued->message : NULL);
    struct rmp_sub_name name = {.sub_id = 0};
    bool has_place = queued == NULL || queued->wait == NULL;

    if (queued != NULL)
        name = queued->subscription->name;
    rmp_archive_name(archive, &name);
    archive_flag(archive, &has_place);
    if (!archive->saves && archive_ok(archive) && known != NULL)
        load_queued(state, peer, name, known, has_place);
}

static void save_queue(struct rmp_archive *state, struct rmp_peer *peer)
{
    struct list_node *node, *following;

    (void)archive_count(state->archive, list_count(&peer->queue));
    rmp_archive_reference(state, &peer);
    list_each(&peer->queue, node, following)
        archive_queued(state, peer, list_entry(node, struct rmp_queued, in_queue));
}

/* The order of the messages of one wait is that of their peers then, which makes no difference. */
static void load_queue(struct rmp_archive *state)
{
    struct archive *archive = state->archive;
    size_t count = archive_count(archive, 0);
    struct rmp_peer *peer = NULL;

    rmp_archive_reference(state, &peer);
    archive_expect(archive, peer != NULL && peer->busy && list_empty(&peer->queue),
                   "messages wait for a peer that takes them");
    for (; count > 0 && archive_ok(archive); count--)
        archive_queued(state, peer, NULL);
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
            save_queue(state, state->peers.slots[i].item);
    }
}

static void archive_queues(struct rmp_archive *state)
{
    size_t count = archive_count(state->archive, count_queues(&state->peers));

    if (state->archive->saves) {
        save_queues(state);
        return;
    }
    for (; count > 0 && archive_ok(state->archive); count--)
        load_queue(state);
    check_waits(state);
}

void rmp_archive_queues(struct rmp_archive *state)
{
    archive_mark(state->archive, "queues");
    archive_waits(state, &state->broker->waits, false);
    archive_waits(state, &state->broker->ended, true);
    archive_queues(state);
    forget_copies(state);
}
