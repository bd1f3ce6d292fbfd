/* MCP, where clients share a handshake: what clients get while no process of theirs runs. A client
 * that shakes hands is bound to a worker that is asleep, whose next process gets the handshake that
 * is made here; lists come from what is remembered (router/remembered.h). */
#ifndef STDIO_BUS_ROUTER_FROM_MEMORY_H
#define STDIO_BUS_ROUTER_FROM_MEMORY_H

#include "router/decision.h"
#include "router/remembered.h"

/* The worker that the client of an initialize is to be bound to, since its answer is remembered and
 * no process of the pool runs or starts. NULL: there is none. */
struct peer *from_memory_worker(struct decision *decision, const struct group *pool);

/* Whether no process runs, and the next one gets the handshake of the worker's clients and what
 * they have set. */
bool from_memory_serves(const struct peer *worker);

/* Decides about initialize, notifications/initialized and notifications/roots/list_changed for a
 * worker that is asleep. False: the message needs a process. */
bool from_memory_initialize(struct decision *decision, struct peer *worker);
bool from_memory_keep(struct decision *decision, struct peer *worker);

/* The same about any other message: a list, or a ping. */
bool from_memory_takes(struct decision *decision, const struct peer *worker);

/* --- a process that runs --- */

/* It has got the handshake, also of clients that it has not seen: its lists are asked for. */
void from_memory_compare(struct handshake *handshake);

/* The lists of which clients are told if they differ: bits, by enum handshake_list. */
unsigned from_memory_compared(const struct handshake *handshake);

/* Its first answer to the initialize of a version. */
void from_memory_learn(const struct handshake *handshake, const struct version *version,
                       const struct message *answer);

/* Its answer to the initialize that was kept. True: it is another one than that remembered. */
bool from_memory_renew(struct handshake *handshake, const struct message *answer);

/* The answer to the daemon's own request of this number for a page; NULL: it was lost. */
void from_memory_list_answered(struct handshake *handshake, uint32_t number,
                               const struct message *answer);

/* Whether each process of the pool has got its handshake, and no list is being asked for: what is
 * remembered is what the server says. */
bool from_memory_is_settled(const struct group *pool);

/* A question of the server, or a notification to all of its clients. The lists that it says have
 * changed are asked for; nothing of a server that asks for roots is remembered. */
void from_memory_note(struct decision *decision);

#endif
