/* The two eras of MCP in one pool: clients that begin with initialize, and clients whose requests
 * name a protocol version each (2026-07-28 and later).
 *
 * Such a pool is two groups with the same workers. A worker belongs to the group of the handshake
 * era until a client of the other era is bound to it, and again when its process has ended: a
 * process is of the era of its first client, and never serves the other one. */
#ifndef STDIO_BUS_ROUTER_ERAS_H
#define STDIO_BUS_ROUTER_ERAS_H

#include "router/decision.h"

/* Makes two groups the eras of one pool. */
void eras_join(struct group *handshake, struct group *stateless);

/* A client's message, whose fields are read, goes to the group of its era: decision->pool. */
void eras_choose(struct decision *decision);

/* Refuses the client's message if the server is known not to serve its era, or if it is a probe
 * that names no version. */
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

/* --- what the server serves --- */

/* A worker gets its first client, or one more: it is of the client's group now. While it is not
 * known whether the server serves the stateless era, a stateless worker is `probed` before it takes
 * messages: the daemon sends a server/discover of its own (supervisor/probe.h), and its clients
 * wait. That alone decides, so that no client can make others believe anything of the server. */
void eras_join_worker(struct group *group, struct peer *worker);

/* The answer has come. Returns whether the worker takes messages now. If not, the clients of the
 * stateless era are refused. */
bool eras_probe_answered(struct router *router, struct peer *worker, const struct message *answer);

/* No answer has come in time: the server does not serve the stateless era, unless the answer still
 * comes. */
void eras_probe_expired(struct router *router, struct peer *worker);

/* Whether the process of another era ends soon: its server does not serve that one. */
static inline bool eras_ends(const struct peer *worker)
{
    return worker->pool->support != ERA_SERVED;
}

/* The server may be another one than that which has refused the stateless era: the next client of
 * that era has it asked again. The group is the handshake era's, or that of a pool of one era. */
void eras_forget(struct group *group);

/* The server has refused it to a daemon before (router/remembered.h). The group is the same. */
void eras_recall(struct group *group);

/* The worker's process has ended. Returns whether that is no failure: the process was tried with
 * the stateless era, and ended for that. */
bool eras_worker_ended(struct router *router, struct peer *worker);

/* The group whose workers are claimed for clients of this one (router/shares.h). */
static inline struct group *eras_claimed(struct group *group)
{
    return group->stateless ? group->other_era : group;
}

#endif
