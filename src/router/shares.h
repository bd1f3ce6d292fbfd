/* Fair shares of what all clients share: nobody who holds little is refused because others hold
 * much. With n clients present, a client that holds less than 1/(2n) of a table gets in even when
 * the table is full; so does a client whose origin (a user or an address) holds less than 1/(2m),
 * with m origins present; n and m count those that were admitted.
 *
 * So a full table grows when clients come one after the other and each takes all it can: to
 *     max * (1 + (1/2 + 1/3 + ... + 1/n) / 2)
 * by clients, and by the same sum over m for origins, at most; each share is rounded up. A table of
 * 1000 holds 1967 entries of 10 such clients of one origin, and 3530 of 200. */
#ifndef STDIO_BUS_ROUTER_SHARES_H
#define STDIO_BUS_ROUTER_SHARES_H

#include "router/router.h"

/* Whether the asker may have one request more in a full table of the router's. */
bool shares_left_of_requests(const struct router *router, const struct pending *pending,
                             const struct peer *asker);

/* Whether the client may own one session more. */
bool shares_left_of_sessions(const struct router *router, const struct peer *owner);

/* Whether the client may own one task more. */
bool shares_left_of_tasks(const struct router *router, const struct peer *owner);

/* Whether the client may have one subscription more, to a URI of this length. */
bool shares_left_of_subscriptions(const struct router *router, const struct peer *client,
                                  size_t uri_len);

/* Whether an origin may have one connection more, of `count` now; NULL: one that has none yet. */
bool shares_left_of_connections(const struct router *router, size_t count,
                                const struct peer_origin *origin);

/* --- processes of exclusive pools, whose number is fixed --- */

/* The share of an origin is 1/(2m) of the workers, and at least one. Against it count the workers
 * that serve clients of the origin, those that served one and still end, and its claims. A link to
 * another machine (is_passage) is no worker here: clients of other origins cannot have it. */

/* The client waits for a worker of the pool. If its origin has less than its share of them, the
 * next one that is free is the client's (a claim), whichever clients have waited longer. */
void shares_claim(const struct router *router, struct group *pool, struct peer *client);

/* Gives a client without a claim the one that an upgrade has saved. The share of its origin is not
 * looked at. */
void shares_add_claim(struct group *pool, struct peer *client);

/* The client does not wait any more. */
void shares_end_claim(struct peer *client);

/* How many clients have a claim to a worker of the pool; how many of them are links, which get no
 * link to a third machine. */
size_t shares_claims(const struct group *pool);
size_t shares_claims_of_links(const struct group *pool);

/* Whether the process of the worker, which still ends, is waited for: by claims, or by a client of
 * the origin of the client that it had. */
bool shares_press(const struct group *pool, const struct peer *worker);

/* The client leaves the worker, whose process is ending. `origin`, the client's, stays valid until
 * shares_ended. */
void shares_ending(struct peer *worker, struct peer_origin *origin);

/* The process has ended. */
void shares_ended(struct peer *worker);

/* Workers of either era that have no client and may get one, if need be after an end. */
size_t shares_coming(const struct group *pool);

/* Whether a worker of the pool serves the client. */
bool shares_has_process(const struct group *pool, const struct peer *client);

/* How many workers serve clients of the origin. */
size_t shares_processes(const struct group *pool, const struct peer_origin *origin);

/* An origin that holds more than its share, and most of all, when more clients have claims than
 * workers are free or will be; `coming` links to other machines will be, too. NULL: none is to give
 * up a worker. */
const struct peer_origin *shares_holding_most(const struct router *router, const struct group *pool,
                                              size_t coming);

#endif
