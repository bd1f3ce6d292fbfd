/* Links: each is a way of clients to a pool of another node. At the asking node it is behind a
 * dialled worker, at the serving one it is behind a client; in between are numbered pieces
 * (nats/link_stream.h). */
#ifndef STDIO_BUS_FEDERATION_LINKS_H
#define STDIO_BUS_FEDERATION_LINKS_H

#include "federation/hub.h"

/* Before the broker starts. STDIO_BUS_ERR if out of memory. */
int nats_links_create(struct nats_hub *hub);

/* At the end of a round: without a connection, no link can end in order when the daemon does. */
void nats_links_act(struct nats_hub *hub);

/* Subscribes the inbox. */
void nats_links_start(struct nats_hub *hub);

/* Ends all links; the other nodes are told. */
void nats_links_end(struct nats_hub *hub, const char *reason);

/* Frees the rest, after nats_links_end. */
void nats_links_destroy(struct nats_hub *hub);

/* message of struct nats_subscription, in the `links` of a struct nats_export: another node opens a
 * link. */
void nats_link_asked(struct nats_subscription *subscription, const struct nats_frame *frame);

/* Writes the subject of the inbox, after the id of this node has changed. */
void nats_links_name(struct nats_hub *hub);

#endif
