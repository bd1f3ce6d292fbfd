/* Held peers that wait for an id at one worker, and would take it at any worker of their group.
 * Those of one group and one id are a lane, in order of arrival, so that an id that is free finds
 * its peer however many others wait. */
#ifndef STDIO_BUS_ROUTER_ROAMING_H
#define STDIO_BUS_ROUTER_ROAMING_H

#include "base/hash_table.h"
#include "router/group.h"

struct roaming {
    struct hash_table table; /* struct roaming_lane, by group and id */
    struct list lanes;       /* the same */
    uint64_t last;           /* peer->roam_number */
};

struct roaming_lane {
    struct list_node node;
    const struct group *group;
    uint64_t id_hash; /* stands for the id */
    uint64_t hash;
    struct list peers; /* their roam; never empty for long */
};

static inline void roaming_init(struct roaming *roaming)
{
    list_init(&roaming->lanes);
}

static inline bool roaming_any(const struct roaming *roaming)
{
    return !list_empty(&roaming->lanes);
}

/* The peer, which is about to be held, roams from now on, with its hold_group and hold_hash.
 * STDIO_BUS_ERR if out of memory; then nothing has changed. */
int roaming_add(struct roaming *roaming, struct peer *peer);

/* It does so no more, if it did. */
void roaming_leave(struct roaming *roaming, struct peer *peer);

/* The peer that has waited for longest for this id at any worker of a group that this worker is in:
 * those of its pool, and `all`. NULL: there is none. */
struct peer *roaming_find(const struct roaming *roaming, const struct peer *worker,
                          const struct group *all, uint64_t id_hash);

/* Frees the table. */
void roaming_free(struct roaming *roaming);

#endif
