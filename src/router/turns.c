#include "build_config.h"

#include "router/turns.h"

void turns_init(struct turns *turns, enum turns_kind kind)
{
    *turns = (struct turns){.kind = kind};
    list_init(&turns->lanes);
}

static struct lane *lane_in_turns(const struct list_node *node)
{
    return list_entry(node, struct lane, in_turns);
}

static struct peer *leader_of(const struct lane *lane)
{
    return list_entry(lane, struct peer, lane);
}

static struct lane *find_lane(const struct turns *turns, const struct peer_origin *origin)
{
    const struct list_node *of_origin = origin->lanes.head.next;
    const struct list_node *of_turns = turns->lanes.head.next;

    while (of_origin != &origin->lanes.head && of_turns != &turns->lanes.head) {
        struct lane *waited_for = list_entry(of_origin, struct lane, in_origin);
        struct lane *waiting = lane_in_turns(of_turns);

        if (leader_of(waited_for)->turns == turns)
            return waited_for;
        if (leader_of(waiting)->origin == origin)
            return waiting;
        of_origin = of_origin->next;
        of_turns = of_turns->next;
    }
    return NULL;
}

void turns_add(struct turns *turns, struct peer *peer)
{
    struct lane *lane = peer->origin != NULL ? find_lane(turns, peer->origin) : NULL;

    ASSERT(!peer_held(peer) && peer->turns == NULL);
    peer->turns = turns;
    if (lane == NULL) {
        lane = &peer->lane;
        list_init(&lane->peers);
        list_append(&turns->lanes, &lane->in_turns);
        if (peer->origin != NULL)
            list_append(&peer->origin->lanes, &lane->in_origin);
    }
    list_append(&lane->peers, &peer->hold);
}

/* The leader has left its lane: another peer leads it, at the same place. */
static void hand_over(struct lane *from)
{
    struct lane *to = &list_entry(from->peers.head.next, struct peer, hold)->lane;

    list_init(&to->peers);
    list_move_all(&to->peers, &from->peers);
    list_replace(&from->in_turns, &to->in_turns);
    if (list_linked(&from->in_origin))
        list_replace(&from->in_origin, &to->in_origin);
}

void turns_leave(struct peer *peer)
{
    struct lane *lane = &peer->lane;

    list_remove(&peer->hold);
    if (list_linked(&lane->in_turns) && !list_empty(&lane->peers)) {
        hand_over(lane);
    } else {
        list_remove(&lane->in_turns);
        list_remove(&lane->in_origin);
    }
    peer->turns = NULL;
}

struct peer *turns_take(struct turns *turns)
{
    struct list_node *node = list_take_first(&turns->lanes);
    struct peer *peer;

    if (node == NULL)
        return NULL;
    list_append(&turns->lanes, node);
    peer = leader_of(lane_in_turns(node));
    turns_leave(peer);
    return peer;
}

bool turns_have_other(const struct turns *turns, const struct peer *peer)
{
    const struct list_node *first = turns->lanes.head.next;
    const struct lane *lane = lane_in_turns(first);

    return !turns_empty(turns) && (leader_of(lane) != peer || first->next != &turns->lanes.head ||
                                   peer->hold.next != &lane->peers.head);
}
