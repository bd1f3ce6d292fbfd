#include "build_config.h"

#include "rmp/broker_archive.h"

#include "base/assert.h"
#include "base/error.h"
#include "rmp/header_archive.h"
#include "rmp/known.h"
#include "rmp/metrics.h"
#include "rmp/state.h"

#define NO_MEMORY "out of memory"

/* --- counters --- */

static void archive_counters(struct archive *archive, struct rmp_counters *counters)
{
    ARCHIVE_INTEGER(archive, counters->received);
    ARCHIVE_INTEGER(archive, counters->sent);
    ARCHIVE_INTEGER(archive, counters->drops_ttl);
    ARCHIVE_INTEGER(archive, counters->drops_duplicate);
    ARCHIVE_INTEGER(archive, counters->drops_backpressure);
    ARCHIVE_INTEGER(archive, counters->replayed);
    ARCHIVE_INTEGER(archive, counters->waits);
    ARCHIVE_INTEGER(archive, counters->notices_suppressed);
    ARCHIVE_INTEGER(archive, counters->no_memory);
}

/* The broker's own messages are published at the end of each call. */
void rmp_archive_begin(struct rmp_archive *state, struct archive *archive,
                       struct rmp_broker *broker)
{
    *state = (struct rmp_archive){.archive = archive, .broker = broker};
    ASSERT(list_empty(&broker->own) && !broker->closed);
    archive_mark(archive, "broker");
    archive_counters(archive, &broker->counters);
    ARCHIVE_ENUM(archive, broker->number, INT64_MAX);
    ARCHIVE_ENUM(archive, broker->last_peer, INT64_MAX);
    rmp_id_archive(archive, &broker->own_trace_id);
    ARCHIVE_INTEGER(archive, broker->own_msg_id);
    ARCHIVE_INTEGER(archive, broker->metrics_at_ms);
    ARCHIVE_INTEGER(archive, broker->notices_at_ms);
    ARCHIVE_ENUM(archive, broker->notice_tokens, RMP_NOTICE_TOKENS_MAX);
    ARCHIVE_INTEGER(archive, broker->notices_suppressed);
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
    if (archive_ok(archive) && hash_table_insert(&state->peers, peer->number, peer) != STDIO_BUS_OK)
        archive_fail(archive, NO_MEMORY);
}

void rmp_archive_reference(struct rmp_archive *state, struct rmp_peer **peer)
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
        if (!archive->saves && archive_ok(archive) &&
            rmp_subscriptions_add_missed(&state->broker->subscriptions, subscription, number, 0) !=
                STDIO_BUS_OK)
            archive_fail(archive, NO_MEMORY);
    }
}

void rmp_archive_name(struct archive *archive, struct rmp_sub_name *name)
{
    ARCHIVE_ENUM(archive, name->dialect, RMP_DIALECT_FRAMES);
    ARCHIVE_INTEGER(archive, name->sub_id);
    archive_expect(archive, name->dialect == RMP_DIALECT_JSON || name->sub_id == 0,
                   "a subscription has two names");
}

/* `subscription`: where it saves. The order within its peer makes no difference. */
static void archive_subscription(struct rmp_archive *state, struct rmp_topic *topic,
                                 struct rmp_subscription *subscription)
{
    struct archive *archive = state->archive;
    struct rmp_subscriptions *all = &state->broker->subscriptions;
    struct rmp_peer *peer = subscription != NULL ? subscription->peer : NULL;
    struct rmp_sub_name name = {.sub_id = 0};
    uint64_t since = subscription != NULL ? subscription->since : 0;

    if (subscription != NULL)
        name = subscription->name;
    rmp_archive_reference(state, &peer);
    rmp_archive_name(archive, &name);
    ARCHIVE_INTEGER(archive, since);
    archive_expect(archive, peer != NULL, "a subscription has no peer");
    archive_expect(archive, peer == NULL || rmp_subscriptions_find(all, peer, name, topic) == NULL,
                   "two subscriptions have one name");
    if (!archive_ok(archive))
        return;
    if (!archive->saves)
        subscription = rmp_subscriptions_add(all, peer, name, topic, since);
    if (subscription == NULL)
        archive_fail(archive, NO_MEMORY);
    else
        archive_missed(state, subscription);
}

static void archive_subscriptions(struct rmp_archive *state, struct rmp_topic *topic)
{
    struct archive *archive = state->archive;
    size_t count = archive_count(archive, list_count(&topic->subscriptions));
    struct list_node *node = topic->subscriptions.head.next;

    archive_expect(archive, count > 0, "a topic has no subscription");
    for (; count > 0 && archive_ok(archive); count--)
        archive_subscription(state, topic,
                             ARCHIVE_NEXT(archive, node, struct rmp_subscription, in_topic));
}

static struct rmp_topic *load_topic(struct rmp_archive *state, struct slice name)
{
    struct rmp_topics *topics = &state->broker->topics;
    struct rmp_topic *topic;

    archive_expect(state->archive,
                   rmp_topic_is_valid(name) && rmp_topics_find(topics, name) == NULL,
                   "a topic has no name of its own");
    if (!archive_ok(state->archive))
        return NULL;
    topic = rmp_topics_add(topics, name);
    if (topic == NULL)
        archive_fail(state->archive, NO_MEMORY);
    return topic;
}

/* `topic`: where it saves. */
static void archive_topic(struct rmp_archive *state, struct rmp_topic *topic)
{
    struct archive *archive = state->archive;
    struct slice name = slice_of(NULL, 0);

    if (topic != NULL)
        name = slice_of(topic->name, topic->name_len);
    name = archive_slice(archive, name);
    if (!archive->saves)
        topic = load_topic(state, name);
    if (topic == NULL)
        return;
    ARCHIVE_INTEGER(archive, topic->published);
    ARCHIVE_INTEGER(archive, topic->delivered);
    ARCHIVE_INTEGER(archive, topic->dropped);
    archive_subscriptions(state, topic);
}

static void save_topics(struct rmp_archive *state)
{
    const struct hash_table *table = &state->broker->topics.table;

    for (size_t i = 0; i < table->capacity; i++) {
        struct rmp_topic *topic = table->slots[i].item;

        if (topic != NULL)
            archive_topic(state, topic);
    }
}

void rmp_archive_topics(struct rmp_archive *state)
{
    size_t count;

    archive_mark(state->archive, "topics");
    count = archive_count(state->archive, state->broker->topics.table.count);
    if (state->archive->saves)
        save_topics(state);
    for (; !state->archive->saves && count > 0 && archive_ok(state->archive); count--)
        archive_topic(state, NULL);
    rmp_known_archive(state->archive, state->broker);
}
