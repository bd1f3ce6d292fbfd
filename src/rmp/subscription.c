#include "build_config.h"

#include "rmp/subscription.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"

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

static uint64_t hash_of(const struct rmp_subscriptions *subscriptions, const struct key *key)
{
    return siphash(&subscriptions->key, key, sizeof *key);
}

static bool has_key(const void *item, const void *wanted)
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

    return hash_table_find(&subscriptions->table, hash_of(subscriptions, &key), has_key, &key);
}

/* --- their memory --- */

static size_t bytes_of(const struct rmp_subscription *subscription)
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
    size_t before = old != NULL ? bytes_of(old) : 0, after = RMP_SUBSCRIPTION_BYTES(topic_len);
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
    size_t before = bytes_of(subscription);
    int result = rmp_missed_add(&subscription->missed, number, oldest);

    account(subscriptions, subscription, before, bytes_of(subscription));
    return result;
}

static void forget_missed(struct rmp_subscriptions *subscriptions,
                          struct rmp_subscription *subscription)
{
    size_t before = bytes_of(subscription);

    rmp_missed_free(&subscription->missed);
    account(subscriptions, subscription, before, bytes_of(subscription));
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
    size_t before = bytes_of(subscription);
    bool got = number >= subscription->since && !rmp_missed_take(&subscription->missed, number);

    account(subscriptions, subscription, before, bytes_of(subscription));
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
        hash_table_insert(&subscriptions->table, hash_of(subscriptions, &key), subscription) !=
            STDIO_BUS_OK) {
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
    account(subscriptions, subscription, 0, bytes_of(subscription));
    return subscription;
}

static void free_subscription(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription)
{
    account(subscriptions, subscription, bytes_of(subscription), 0);
    rmp_memory_settle(subscriptions->memory, subscription->user);
    rmp_missed_free(&subscription->missed);
    free(subscription);
}

void rmp_subscriptions_remove(struct rmp_subscriptions *subscriptions,
                              struct rmp_subscription *subscription)
{
    struct key key = key_of_subscription(subscription);

    ASSERT(subscription->queued == 0);
    hash_table_remove(&subscriptions->table, hash_of(subscriptions, &key), subscription);
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
