/* Where sessions of pools are that several nodes serve: each node answers for its own, and asks the
 * others before a session begins. */
#ifndef STDIO_BUS_FEDERATION_PLACES_H
#define STDIO_BUS_FEDERATION_PLACES_H

#include "federation/hub.h"
#include "nats/link_stream.h"

/* Before the broker starts. */
void places_create(struct nats_hub *hub);

/* The pools of the configuration ask and answer from now on, and no others. */
void places_renew(struct nats_hub *hub);

/* No pool does. Idempotent. */
void places_end(struct nats_hub *hub);

/* A second has passed. Returns whether another one is to be counted. */
bool places_tick(struct nats_hub *hub);

/* The answer to a question of this number, if there is one; NULL: no node has the session. */
void places_answered(struct nats_hub *hub, uint64_t number, const struct link_message *message);

/* Another node has the session that it names: this one gives it up. */
void places_yield(struct nats_hub *hub, const struct link_message *message);

#endif
