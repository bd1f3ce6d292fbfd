#include "build_config.h"

#include "router/roaming.h"

#include <stdlib.h>

#include "base/error.h"

/* The id's part is keyed; groups are no choice of a client's. */
static uint64_t hash_of_lane(const struct group *group, uint64_t id_hash)
{
    return id_hash ^ (uint64_t)(uintptr_t)group * UINT64_C(0x9E3779B97F4A7C15);
}

struct lane_key {
    const struct group *group;
    uint64_t id_hash;
};

static bool is_lane(const void *item, const void *wanted)
{
    const struct roaming_lane *lane = item;
    const struct lane_key *key = wanted;

    return lane->group == key->group && lane->id_hash == key->id_hash;
}

static struct roaming_lane *find_lane(const struct roaming *roaming, const struct group *group,
                                      uint64_t id_hash)
{
    const struct lane_key key = {group, id_hash};

    return hash_table_find(&roaming->table, hash_of_lane(group, id_hash), is_lane, &key);
}

/* NULL if out of memory. */
static struct roaming_lane *add_lane(struct roaming *roaming, const struct group *group,
                                     uint64_t id_hash)
{
    struct roaming_lane *lane = calloc(1, sizeof *lane);

    if (lane == NULL)
        return NULL;
    lane->group = group;
    lane->id_hash = id_hash;
    lane->hash = hash_of_lane(group, id_hash);
    list_init(&lane->peers);
    if (hash_table_insert(&roaming->table, lane->hash, lane) != STDIO_BUS_OK) {
        free(lane);
        return NULL;
    }
    list_append(&roaming->lanes, &lane->node);
    return lane;
}

int roaming_add(struct roaming *roaming, struct peer *peer)
{
    struct roaming_lane *lane = find_lane(roaming, peer->hold_group, peer->hold_hash);

    if (lane == NULL)
        lane = add_lane(roaming, peer->hold_group, peer->hold_hash);
    if (lane == NULL)
        return STDIO_BUS_ERR;
    peer->roam_lane = lane;
    peer->roam_number = ++roaming->last;
    list_append(&lane->peers, &peer->roam);
    return STDIO_BUS_OK;
}

void roaming_leave(struct roaming *roaming, struct peer *peer)
{
    struct roaming_lane *lane = peer->roam_lane;

    if (lane == NULL)
        return;
    peer->roam_lane = NULL;
    list_remove(&peer->roam);
    if (!list_empty(&lane->peers))
        return;
    hash_table_remove(&roaming->table, lane->hash, lane);
    list_remove(&lane->node);
    free(lane);
}

/* The one of both that has waited for longer: `found`, which may be NULL, or the first of the
 * group's lane. `group` may be NULL. */
static struct peer *earlier(const struct roaming *roaming, const struct group *group,
                            const struct peer *worker, uint64_t id_hash, struct peer *found)
{
    const struct roaming_lane *lane = group != NULL ? find_lane(roaming, group, id_hash) : NULL;
    struct peer *first;

    if (lane == NULL || !group_has(group, worker))
        return found;
    first = list_entry(lane->peers.head.next, struct peer, roam);
    return found == NULL || first->roam_number < found->roam_number ? first : found;
}

struct peer *roaming_find(const struct roaming *roaming, const struct peer *worker,
                          const struct group *all, uint64_t id_hash)
{
    struct peer *found = earlier(roaming, all, worker, id_hash, NULL);

    found = earlier(roaming, worker->pool, worker, id_hash, found);
    return earlier(roaming, worker->pool->other_era, worker, id_hash, found);
}

void roaming_free(struct roaming *roaming)
{
    struct list_node *node;

    while ((node = list_take_first(&roaming->lanes)) != NULL)
        free(list_entry(node, struct roaming_lane, node));
    hash_table_free(&roaming->table);
}
