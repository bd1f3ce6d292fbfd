/* MCP: what a server keeps for its one client, where it has several (router/one_handshake.h): the
 * level of log messages, and the resources that clients subscribe to. The server hears of the most
 * talkative level, and of the first and the last subscriber of a URI. */
#ifndef STDIO_BUS_ROUTER_SHARED_SETTINGS_H
#define STDIO_BUS_ROUTER_SHARED_SETTINGS_H

#include "router/affinity.h"
#include "router/decision.h"

/* --- a client's message to its worker; false: it goes the way of any other message --- */

bool shared_settings_set_level(struct decision *decision, struct peer *worker);
bool shared_settings_watch(struct decision *decision, struct peer *worker);
bool shared_settings_unwatch(struct decision *decision, struct peer *worker);

/* --- a worker's message --- */

/* The answer to a client's request of the kind EXTRAS_SETS_LEVEL; the client may be gone. */
void shared_settings_level_answered(const struct decision *decision, const struct request *request);

/* Reads a notification that some clients get; then, whether the client of a binding is one. */
void shared_settings_read_notice(struct decision *decision);
bool shared_settings_wants(const struct decision *decision, const struct binding *binding);

/* The most talkative level of the worker's clients; `binding`, unless NULL, has this one instead of
 * its own. RANK_NONE: no client has set one. */
enum log_rank shared_settings_level(const struct peer *worker, const struct binding *binding,
                                    enum log_rank rank);

#endif
