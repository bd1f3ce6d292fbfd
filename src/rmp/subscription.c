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

bool rmp_subscriptions_has_room(const struct rmp_subscriptions *subscriptions,
                                const struct rmp_peer *peer, size_t peers)
{
    return subscriptions->table.count < subscriptions->max ||
           peer->subscription_count < subscriptions->max / (2 * peers);
}

struct rmp_subscription *rmp_subscriptions_add(struct rmp_subscriptions *subscriptions,
                                               struct rmp_peer *peer, struct rmp_sub_name name,
                                               struct rmp_topic *topic, uint64_t since)
{
    struct rmp_subscription *subscription = calloc(1, sizeof *subscription);
    struct key key = key_of(peer, name, topic);

    if (subscription == NULL)
        return NULL;
    if (hash_table_insert(&subscriptions->table, hash_of(subscriptions, &key), subscription) !=
        STDIO_BUS_OK) {
        free(subscription);
        return NULL;
    }
    subscription->topic = topic;
    subscription->peer = peer;
    subscription->name = name;
    subscription->since = since;
    list_append(&topic->subscriptions, &subscription->in_topic);
    list_append(&peer->subscriptions, &subscription->in_peer);
    peer->subscription_count++;
    return subscription;
}

static void free_subscription(struct rmp_subscription *subscription)
{
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
    free_subscription(subscription);
}

void rmp_subscriptions_forget_missed(struct rmp_topic *topic)
{
    struct list_node *node, *following;

    list_each(&topic->subscriptions, node, following)
        rmp_missed_free(&list_entry(node, struct rmp_subscription, in_topic)->missed);
}

void rmp_subscriptions_free(struct rmp_subscriptions *subscriptions)
{
    for (size_t i = 0; i < subscriptions->table.capacity; i++) {
        if (subscriptions->table.slots[i].item != NULL)
            free_subscription(subscriptions->table.slots[i].item);
    }
    hash_table_free(&subscriptions->table);
}
