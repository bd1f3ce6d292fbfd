/* The nodes that are seen over NATS. Each answers a request on PREFIX.nodes; nothing is sent unless
 * a list, or metrics, are asked for. */
#ifndef STDIO_BUS_FEDERATION_PRESENCE_H
#define STDIO_BUS_FEDERATION_PRESENCE_H

#include "federation/hub.h"

/* Answers from now on. Out of memory: then it does not, and that is in the log. */
void presence_start(struct nats_hub *hub);

/* Ends that, and forgets the nodes. Idempotent; the struct may be zeroed. */
void presence_end(struct nats_hub *hub);

/* Asks all nodes. */
void presence_ask(struct nats_hub *hub);

/* Writes an object with the list of the nodes that have answered of late, this one not included, at
 * most `limit`, and asks them all again: their answers are in the next list. */
void presence_list(struct nats_hub *hub, struct json_text *to, size_t limit);

#endif
