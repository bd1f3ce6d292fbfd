/* Peers that take turns: first their origins, then the peers of each. So a peer waits for at most
 * one turn of every other origin, however many peers that has.
 *
 * The peers of one origin are a lane. It lives in the peer that leads it, the first that came; so
 * nothing is allocated. A peer without an origin is a lane of its own. */
#ifndef STDIO_BUS_ROUTER_TURNS_H
#define STDIO_BUS_ROUTER_TURNS_H

#include "router/peer.h"

void turns_init(struct turns *turns, enum turns_kind kind);

static inline bool turns_empty(const struct turns *turns)
{
    return list_empty(&turns->lanes);
}

/* The peer waits after those of its origin. It costs a walk over the turns
 * that its origin waits for, or over the origins that wait here: over the shorter list. */
void turns_add(struct turns *turns, struct peer *peer);

/* Takes a held peer out of the turns, or of the list, that it is in. */
void turns_leave(struct peer *peer);

/* Takes the peer that is next; then it is the turn of the next origin. NULL: there is none. */
struct peer *turns_take(struct turns *turns);

/* Whether another peer than this one waits. */
bool turns_have_other(const struct turns *turns, const struct peer *peer);

#endif
