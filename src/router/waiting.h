/* Held peers, and what releases them. A peer whose message cannot go anywhere yet is on one list:
 *
 *     request->waiters            until the id is free at the request's answerer
 *     peer->waiting               until the queue of that peer drains
 *     group->senders              until some worker of the group takes messages
 *     router->waiting_for_worker  until a certain worker is back
 *     group->waiting              until the client can be bound to a worker of that pool
 *     a list of the owner's       until waiting_release
 *
 * In the first three, peers take turns (turns.h): one of an origin, then one of the next. If any
 * worker of its group would do, a peer that waits for an id is in router->roaming (roaming.h) too.
 *
 * When what a peer waits for changes, its owner offers the same message again. Room in a queue is
 * soon used up: the turns for it are only opened (router->open), and peers leave them one by one
 * until there is no room. In all other cases a peer moves to router->released. */
#ifndef STDIO_BUS_ROUTER_WAITING_H
#define STDIO_BUS_ROUTER_WAITING_H

#include "router/router.h"

/* Holds a peer on a list of the caller's, until waiting_release. For the peers that are released
 * together, turns begin again. */
void waiting_hold(struct list *list, struct peer *peer);
void waiting_release(struct router *router, struct peer *peer);

/* Releases all peers of a list, of turns, or of a lane, which is gone then. */
void waiting_release_all(struct router *router, struct list *list);
void waiting_release_turns(struct router *router, struct turns *turns);
void waiting_release_lane(struct router *router, const struct roaming_lane *lane);

/* Takes the next peer that may offer its message again, or NULL. One that is held again for want of
 * the same room ends these turns. */
struct peer *waiting_next_released(struct router *router);

/* The peer has been held too long: its message will be refused when offered again. */
void waiting_expire(struct router *router, struct peer *peer);

/* The peer is gone: it is on no list any more. */
void waiting_leave(struct router *router, struct peer *peer);

/* Releases those that wait for any worker of a group of this worker, or for a certain one. */
void waiting_release_senders(struct router *router, const struct peer *worker);

/* Releases the clients that wait for a worker of this one's pool: one may have a claim now. */
void waiting_worker_free(struct router *router, const struct peer *worker);

/* The worker takes messages now, will not come back, or is away for a moment. */
void waiting_worker_available(struct router *router, struct peer *worker,
                              enum peer_availability availability);

/* A message waits for this worker: if it is asleep, its owner is to wake it. */
void waiting_call(struct router *router, struct peer *worker);

/* A drained worker gets no other messages than those of its clients, its sessions and the requests
 * in flight at it, nor does the next process in its place; until it is no longer drained. */
void waiting_set_drained(struct router *router, struct peer *worker, bool drained);

/* The peer's output queue is over its limit, or below half of it again (spec 7.3.1). */
void waiting_set_full(struct router *router, struct peer *peer, bool full);

/* The request is no longer in flight: its id goes to the peer that has waited longest for it, if
 * there is one, otherwise the entry is removed. */
void waiting_id_free(struct router *router, struct request *request);

/* The request's answerer is gone: peers that wait for the id may look elsewhere; the entry is
 * removed. */
void waiting_forget_request(struct router *router, struct request *request);

/* The late answer of an abandoned request was dropped: its id is free. */
void waiting_late_answer(struct router *router, struct request *request);

/* What became of a client's request; if it was one to subscribe, where clients share a handshake,
 * the clients that wait for its answer are released. */
void waiting_subscribed(struct router *router, struct request *request,
                        enum subscription_answer answer);

/* The client leaves the worker, or all of them (NULL), and its requests are still in flight:
 * clients that wait for the answers to its subscriptions are released. To be called before its
 * bindings end, with which the subscriptions go. */
void waiting_give_up_subscriptions(struct router *router, struct peer *client,
                                   const struct peer *worker);

/* The answer of an active request is wanted no more. Its id is free after the late answer, or after
 * abandoned_id_sec; if too many requests are abandoned, that of the oldest is free at once. */
void waiting_abandon(struct router *router, struct request *request, enum request_outcome outcome);

#endif
