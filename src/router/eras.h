/* The two eras of MCP in one pool: clients that begin with initialize, and clients whose requests
 * name a protocol version each (2026-07-28 and later).
 *
 * Such a pool is two groups with the same workers. A worker belongs to the group of the handshake
 * era until a client of the other era is bound to it, and again when its process has ended: a
 * process is of the era of its first client, and never serves the other one. */
#ifndef STDIO_BUS_ROUTER_ERAS_H
#define STDIO_BUS_ROUTER_ERAS_H

#include "router/decision.h"

#define ERAS_NO_DISCOVER "the server does not know server/discover; it begins with initialize"

/* Makes two groups the eras of one pool. */
void eras_join(struct group *handshake, struct group *stateless);

/* A client's message, whose fields are read, goes to the group of its era: decision->pool. */
void eras_choose(struct decision *decision);

/* Refuses the client's message if the server is known not to serve its era. */
bool eras_refuse(struct decision *decision);

/* Whether a worker of the pool may serve a client of the group: it does, or its process has had no
 * client yet. */
bool eras_may_serve(const struct group *group, const struct peer *worker);

/* Whether clients of the group share few processes while clients of the other era have one each. */
static inline bool eras_economize(const struct group *group)
{
    return group->stateless && group->mode.clients == CLIENTS_STICKY &&
           group->other_era->mode.clients == CLIENTS_EXCLUSIVE;
}

/* The worker that a client of such a group gets: the one with the fewest clients, or
 * one more while all of them are busy, on up to half of the pool's workers. NULL: none is there. */
struct peer *eras_least_busy(const struct group *group);

/* An answer to a request that was the first, or a probe: does the server serve this era? */
void eras_answered(struct decision *decision, const struct request *request);

/* A server/discover to a server that may not know it. */
bool eras_is_probe(const struct request *request);

/* A client leaves before its probe was answered, or begins with initialize after one: the server
 * does not know the stateless era, unless an answer still comes. */
void eras_unanswered(struct group *stateless);

/* The worker's process has ended. Returns whether that is no failure: the process was tried with
 * the stateless era, and ended for that. */
bool eras_worker_ended(struct router *router, struct peer *worker);

/* The group whose workers are claimed for clients of this one (router/shares.h). */
static inline struct group *eras_claimed(struct group *group)
{
    return group->stateless ? group->other_era : group;
}

#endif
