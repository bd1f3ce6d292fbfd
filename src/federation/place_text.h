/* What nodes say of sessions: its subject, and the text of a message. */
#ifndef STDIO_BUS_FEDERATION_PLACE_TEXT_H
#define STDIO_BUS_FEDERATION_PLACE_TEXT_H

#include "base/limits.h"
#include "federation/nodes.h"

#define PLACE_TEXT_MAX (NODES_ADDRESS_MAX + 256 + STDIO_BUS_MAX_SESSION_ID_LEN)

/* The same at all nodes. */
uint64_t place_hash(struct slice id);

/* The subject of a session of this hash, the caller's. NULL if out of memory. */
char *place_subject(const struct nats_hub *hub, struct slice pool, uint64_t hash);

/* "ID NUMBER NAME", and the session after a line feed. */
struct slice place_text_write(char to[PLACE_TEXT_MAX], const struct nats_hub *hub, struct slice id);

/* False: it is no such text. The id borrows from it. */
bool place_text_read(struct node_address *address, struct slice *id, struct slice text);

#endif
