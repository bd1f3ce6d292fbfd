#include "build_config.h"

#include "rmp/subscription.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/utf8.h"
#include "rmp/frame.h"

#define SYSTEM_PREFIX "rlp/sys/"
#define RUNS_PREFIX "rlp/runs/"
#define TRACE_PREFIX "trace:"
#define EVENTS_SUFFIX "/events"
#define LENGTH(literal) (sizeof(literal) - 1)
#define EVENTS_LENGTH (LENGTH(RUNS_PREFIX) + RMP_UUID_LEN + LENGTH(EVENTS_SUFFIX))
#define DELETE 0x7F
#define C1_LEAD 0xC2 /* before the controls U+0080 to U+009F */
#define C1_LAST 0x9F

bool rmp_topic_is_valid(struct slice name)
{
    const unsigned char *p = (const unsigned char *)name.data, *end;
    size_t len;

    if (name.len == 0 || name.len > RMP_TOPIC_MAX)
        return false;
    end = p + name.len;
    for (; p < end; p += len) {
        len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        if (len == 0 || *p < ' ' || *p == DELETE || (*p == C1_LEAD && p[1] <= C1_LAST))
            return false;
    }
    return true;
}

bool rmp_topic_is_system(struct slice name)
{
    return name.len >= strlen(SYSTEM_PREFIX) &&
           memcmp(name.data, SYSTEM_PREFIX, strlen(SYSTEM_PREFIX)) == 0;
}

/* The events of a run have two names (RMP 10): with "trace:" before the UUID, as in the table, and
 * without. Both are one topic, so that a client that subscribes to both gets each event once. */
struct topic_name {
    char run[EVENTS_LENGTH + LENGTH(TRACE_PREFIX)];
};

static bool has_short_name(struct slice name, struct slice *uuid)
{
    struct rmp_id id;

    if (name.len != EVENTS_LENGTH || memcmp(name.data, RUNS_PREFIX, LENGTH(RUNS_PREFIX)) != 0 ||
        memcmp(name.data + name.len - LENGTH(EVENTS_SUFFIX), EVENTS_SUFFIX,
               LENGTH(EVENTS_SUFFIX)) != 0)
        return false;
    *uuid = slice_of(name.data + LENGTH(RUNS_PREFIX), RMP_UUID_LEN);
    return rmp_uuid_read(*uuid, &id);
}

static struct slice name_in_table(struct topic_name *to, struct slice name)
{
    char *at = to->run;
    struct slice uuid;

    if (!has_short_name(name, &uuid))
        return name;
    memcpy(at, RUNS_PREFIX TRACE_PREFIX, LENGTH(RUNS_PREFIX TRACE_PREFIX));
    at += LENGTH(RUNS_PREFIX TRACE_PREFIX);
    memcpy(at, uuid.data, uuid.len + LENGTH(EVENTS_SUFFIX));
    return slice_of(to->run, sizeof to->run);
}

static bool has_name(const void *item, const void *key)
{
    const struct rmp_topic *topic = item;
    const struct slice *name = key;

    return slice_equal(slice_of(topic->name, topic->name_len), *name);
}

struct rmp_topic *rmp_topics_find(const struct rmp_topics *topics, struct slice given)
{
    struct topic_name other UNINITIALIZED;
    struct slice name = name_in_table(&other, given);

    return hash_table_find(&topics->table, siphash(&topics->key, name.data, name.len), has_name,
                           &name);
}

static void report_opened(const struct rmp_topics *topics, struct rmp_topic *topic)
{
    if (topics->observer != NULL)
        topics->observer->opened(topics->observer, slice_of(topic->name, topic->name_len),
                                 &topic->mark);
}

struct rmp_topic *rmp_topics_add(struct rmp_topics *topics, struct slice given)
{
    struct topic_name other UNINITIALIZED;
    struct slice name = name_in_table(&other, given);
    struct rmp_topic *topic = calloc(1, sizeof *topic + name.len);

    ASSERT(rmp_topic_is_valid(name));
    if (topic == NULL)
        return NULL;
    list_init(&topic->subscriptions);
    list_init(&topic->known);
    topic->hash = siphash(&topics->key, name.data, name.len);
    topic->name_len = name.len;
    memcpy(topic->name, name.data, name.len);
    if (hash_table_insert(&topics->table, topic->hash, topic) != STDIO_BUS_OK) {
        free(topic);
        return NULL;
    }
    report_opened(topics, topic);
    return topic;
}

void rmp_topics_report(const struct rmp_topics *topics, const struct rmp_peer *publisher,
                       const struct rmp_publication *given)
{
    struct topic_name other UNINITIALIZED;
    struct rmp_publication publication = *given;

    publication.topic = name_in_table(&other, given->topic);
    topics->observer->accepted(topics->observer, publisher, &publication);
}

void rmp_topics_observe(struct rmp_topics *topics, struct rmp_observer *observer)
{
    for (size_t i = 0; i < topics->table.capacity; i++) {
        struct rmp_topic *topic = topics->table.slots[i].item;

        if (topic != NULL && topics->observer != NULL)
            topics->observer->closed(topics->observer, &topic->mark);
    }
    topics->observer = observer;
    for (size_t i = 0; i < topics->table.capacity; i++) {
        if (topics->table.slots[i].item != NULL)
            report_opened(topics, topics->table.slots[i].item);
    }
}

static void free_topic(struct rmp_topic *topic)
{
    ASSERT(list_empty(&topic->known));
    free(topic);
}

void rmp_topics_remove(struct rmp_topics *topics, struct rmp_topic *topic)
{
    ASSERT(list_empty(&topic->subscriptions));
    if (topics->observer != NULL)
        topics->observer->closed(topics->observer, &topic->mark);
    hash_table_remove(&topics->table, topic->hash, topic);
    free_topic(topic);
}

void rmp_topics_free(struct rmp_topics *topics)
{
    for (size_t i = 0; i < topics->table.capacity; i++) {
        if (topics->table.slots[i].item != NULL)
            free_topic(topics->table.slots[i].item);
    }
    hash_table_free(&topics->table);
}

#define CAPACITY_MIN 8

/* By multiplication, so that numbers in equal steps do not meet. Publishers do not choose them. */
static size_t home(const struct rmp_missed *missed, uint64_t number)
{
    return (size_t)(number * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (missed->capacity - 1);
}

static void place(struct rmp_missed *missed, uint64_t number)
{
    size_t at = home(missed, number);

    while (missed->slots[at] != 0 && missed->slots[at] != number)
        at = (at + 1) & (missed->capacity - 1);
    missed->count += missed->slots[at] == 0;
    missed->slots[at] = number;
}

/* For the numbers from `oldest` on, and room for at least as many more. */
static size_t grown_capacity(const struct rmp_missed *missed, uint64_t oldest)
{
    size_t capacity = CAPACITY_MIN, kept = 0;

    for (size_t i = 0; i < missed->capacity; i++)
        kept += missed->slots[i] != 0 && missed->slots[i] >= oldest;
    while (capacity < (kept + 1) * 4)
        capacity *= 2;
    return capacity;
}

static bool is_full(const struct rmp_missed *missed)
{
    return (missed->count + 1) * 2 > missed->capacity;
}

size_t rmp_missed_growth(const struct rmp_missed *missed, uint64_t oldest)
{
    size_t capacity = is_full(missed) ? grown_capacity(missed, oldest) : missed->capacity;

    return capacity > missed->capacity ? (capacity - missed->capacity) * sizeof *missed->slots : 0;
}

static int rebuild(struct rmp_missed *missed, uint64_t oldest)
{
    struct rmp_missed fresh = {.capacity = grown_capacity(missed, oldest)};

    fresh.slots = calloc(fresh.capacity, sizeof *fresh.slots);
    if (fresh.slots == NULL)
        return STDIO_BUS_ERR;
    for (size_t i = 0; i < missed->capacity; i++) {
        if (missed->slots[i] != 0 && missed->slots[i] >= oldest)
            place(&fresh, missed->slots[i]);
    }
    free(missed->slots);
    *missed = fresh;
    return STDIO_BUS_OK;
}

int rmp_missed_add(struct rmp_missed *missed, uint64_t number, uint64_t oldest)
{
    if (is_full(missed) && rebuild(missed, oldest) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    place(missed, number);
    return STDIO_BUS_OK;
}

bool rmp_missed_take(struct rmp_missed *missed, uint64_t number)
{
    size_t mask = missed->capacity - 1;
    size_t hole, at;

    if (missed->count == 0)
        return false;
    for (hole = home(missed, number); missed->slots[hole] != number; hole = (hole + 1) & mask) {
        if (missed->slots[hole] == 0)
            return false;
    }
    for (at = (hole + 1) & mask; missed->slots[at] != 0; at = (at + 1) & mask) {
        if (((at - home(missed, missed->slots[at])) & mask) >= ((at - hole) & mask)) {
            missed->slots[hole] = missed->slots[at];
            hole = at;
        }
    }
    missed->slots[hole] = 0;
    if (--missed->count == 0)
        rmp_missed_free(missed);
    return true;
}

void rmp_missed_free(struct rmp_missed *missed)
{
    free(missed->slots);
    *missed = (struct rmp_missed){.slots = NULL};
}

/* Without padding: its bytes are hashed. */
struct key {
    uint64_t peer, dialect, name;
};

static struct key key_of(const struct rmp_peer *peer, struct rmp_sub_name name,
                         const struct rmp_topic *topic)
{
    return (struct key){
        .peer = (uintptr_t)peer,
        .dialect = name.dialect,
        .name = name.dialect == RMP_DIALECT_FRAMES ? (uintptr_t)topic : name.sub_id,
    };
}

static struct key key_of_subscription(const struct rmp_subscription *subscription)
{
    return key_of(subscription->peer, subscription->name, subscription->topic);
}

static uint64_t subscription_hash(const struct rmp_subscriptions *subscriptions,
                                  const struct key *key)
{
    return siphash(&subscriptions->key, key, sizeof *key);
}

static bool has_subscription_key(const void *item, const void *wanted)
{
    struct key key = key_of_subscription(item);
    const struct key *other = wanted;

    return key.peer == other->peer && key.dialect == other->dialect && key.name == other->name;
}

struct rmp_subscription *rmp_subscriptions_find(const struct rmp_subscriptions *subscriptions,
                                                const struct rmp_peer *peer,
                                                struct rmp_sub_name name,
                                                const struct rmp_topic *topic)
{
    struct key key = key_of(peer, name, topic);

    return hash_table_find(&subscriptions->table, subscription_hash(subscriptions, &key),
                           has_subscription_key, &key);
}

/* --- their memory --- */

static size_t subscription_bytes(const struct rmp_subscription *subscription)
{
    return RMP_SUBSCRIPTION_BYTES(subscription->topic->name_len) +
           rmp_missed_bytes(&subscription->missed);
}

static void account(const struct rmp_subscriptions *subscriptions,
                    const struct rmp_subscription *subscription, size_t before, size_t after)
{
    subscription->peer->held += after - before;
    rmp_memory_count(subscriptions->memory, RMP_SUBSCRIPTIONS, subscription->user, before, after);
}

enum rmp_room rmp_subscriptions_room(const struct rmp_subscriptions *subscriptions,
                                     const struct rmp_peer *peer, size_t topic_len,
                                     const struct rmp_subscription *old)
{
    struct rmp_memory *memory = subscriptions->memory;
    struct rmp_user *user = rmp_memory_user(memory, peer->user);
    size_t before = old != NULL ? subscription_bytes(old) : 0,
           after = RMP_SUBSCRIPTION_BYTES(topic_len);
    bool may;

    if (user == NULL)
        return RMP_NO_MEMORY;
    may = after <= before ||
          rmp_memory_may_take(memory, RMP_SUBSCRIPTIONS, after - before, user, peer);
    rmp_memory_settle(memory, user);
    return may ? RMP_ROOM : RMP_NO_SHARE;
}

int rmp_subscriptions_add_missed(struct rmp_subscriptions *subscriptions,
                                 struct rmp_subscription *subscription, uint64_t number,
                                 uint64_t oldest)
{
    size_t before = subscription_bytes(subscription);
    int result = rmp_missed_add(&subscription->missed, number, oldest);

    account(subscriptions, subscription, before, subscription_bytes(subscription));
    return result;
}

static void forget_missed(struct rmp_subscriptions *subscriptions,
                          struct rmp_subscription *subscription)
{
    size_t before = subscription_bytes(subscription);

    rmp_missed_free(&subscription->missed);
    account(subscriptions, subscription, before, subscription_bytes(subscription));
}

void rmp_subscriptions_miss(struct rmp_subscriptions *subscriptions,
                            struct rmp_subscription *subscription, uint64_t number, uint64_t oldest,
                            uint64_t next)
{
    size_t growth = rmp_missed_growth(&subscription->missed, oldest);
    bool may_grow = growth == 0 ||
                    rmp_memory_may_take(subscriptions->memory, RMP_SUBSCRIPTIONS, growth,
                                        subscription->user, subscription->peer);

    if (may_grow &&
        rmp_subscriptions_add_missed(subscriptions, subscription, number, oldest) == STDIO_BUS_OK)
        return;
    forget_missed(subscriptions, subscription);
    subscription->since = next;
}

bool rmp_subscriptions_got(struct rmp_subscriptions *subscriptions,
                           struct rmp_subscription *subscription, uint64_t number)
{
    size_t before = subscription_bytes(subscription);
    bool got = number >= subscription->since && !rmp_missed_take(&subscription->missed, number);

    account(subscriptions, subscription, before, subscription_bytes(subscription));
    return got;
}

/* --- the table --- */

struct rmp_subscription *rmp_subscriptions_add(struct rmp_subscriptions *subscriptions,
                                               struct rmp_peer *peer, struct rmp_sub_name name,
                                               struct rmp_topic *topic, uint64_t since)
{
    struct rmp_user *user = rmp_memory_user(subscriptions->memory, peer->user);
    struct rmp_subscription *subscription;
    struct key key = key_of(peer, name, topic);

    if (user == NULL)
        return NULL;
    subscription = calloc(1, sizeof *subscription);
    if (subscription == NULL ||
        hash_table_insert(&subscriptions->table, subscription_hash(subscriptions, &key),
                          subscription) != STDIO_BUS_OK) {
        free(subscription);
        rmp_memory_settle(subscriptions->memory, user);
        return NULL;
    }
    subscription->user = user;
    subscription->topic = topic;
    subscription->peer = peer;
    subscription->name = name;
    subscription->since = since;
    list_append(&topic->subscriptions, &subscription->in_topic);
    list_append(&peer->subscriptions, &subscription->in_peer);
    peer->subscription_count++;
    account(subscriptions, subscription, 0, subscription_bytes(subscription));
    return subscription;
}

static void free_subscription(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription)
{
    account(subscriptions, subscription, subscription_bytes(subscription), 0);
    rmp_memory_settle(subscriptions->memory, subscription->user);
    rmp_missed_free(&subscription->missed);
    free(subscription);
}

void rmp_subscriptions_remove(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription)
{
    struct key key = key_of_subscription(subscription);

    ASSERT(subscription->queued == 0);
    hash_table_remove(&subscriptions->table, subscription_hash(subscriptions, &key), subscription);
    list_remove(&subscription->in_topic);
    list_remove(&subscription->in_peer);
    subscription->peer->subscription_count--;
    free_subscription(subscriptions, subscription);
}

void rmp_subscriptions_forget_missed(struct rmp_subscriptions *subscriptions,
                                     struct rmp_topic *topic)
{
    struct list_node *node, *following;

    list_each(&topic->subscriptions, node, following)
        forget_missed(subscriptions, list_entry(node, struct rmp_subscription, in_topic));
}

void rmp_subscriptions_free(struct rmp_subscriptions *subscriptions)
{
    for (size_t i = 0; i < subscriptions->table.capacity; i++) {
        if (subscriptions->table.slots[i].item != NULL)
            free_subscription(subscriptions, subscriptions->table.slots[i].item);
    }
    hash_table_free(&subscriptions->table);
}
