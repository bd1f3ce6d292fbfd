/* Other nodes: those to which there are links. Each second both ends of such a pair say that they
 * live; a node that is silent is gone. */
#ifndef STDIO_BUS_FEDERATION_NODES_H
#define STDIO_BUS_FEDERATION_NODES_H

#include "federation/hub.h"
#include "nats/link_stream.h"

#define NODES_TICK_MS 1000
#define NODES_SILENT_MS 3500 /* three signs of life, and a margin */
#define NODES_AGAIN_MS 12000 /* the same after a new connection: the other one is on its way */
#define NODES_UNCONNECTED_MS 30000 /* links end without a connection to NATS */
#define NODES_SUBJECT_MAX 192
#define NODES_ADDRESS_MAX (NATS_NODE_ID_LEN + 24 + NATS_NODE_NAME_MAX)

/* The address of an end of a link: "ID NUMBER NAME". */
struct node_address {
    char id[NATS_NODE_ID_LEN + 1];
    uint64_t number;
    char name[NATS_NODE_NAME_MAX + 1]; /* "": it is not said */
};

/* False: it is none. */
bool node_address_read(struct node_address *address, struct slice text);

/* Writes that of an end here. */
struct slice node_address_write(char to[NODES_ADDRESS_MAX], const struct nats_hub *hub,
                                uint64_t number);

/* Whose the links of the node at the address are. */
void node_origin(struct origin *origin, const struct node_address *address);

/* The subject of an end of a link. Returns `to`. */
const char *node_subject(char to[NODES_SUBJECT_MAX], const struct nats_hub *hub, const char *id,
                         uint64_t number);

/* Publishes a message; one for which there is no memory is lost. */
void node_send(struct nats_hub *hub, const struct nats_head *head,
               const struct link_message *message);

/* Sends a message without positions to an end of a link; `number` 0: to the node. */
void node_tell(struct nats_hub *hub, const char *id, uint64_t number, enum link_kind kind,
               struct slice text);

/* The node, created if need be. NULL if out of memory. */
struct nats_node *nodes_get(struct nats_hub *hub, const struct node_address *address);

/* The node, or NULL. */
struct nats_node *nodes_find(const struct nats_hub *hub, const char *id);

/* It has sent something. */
void nodes_note_life(const struct nats_hub *hub, struct nats_node *node);

/* There is a new connection to NATS, after `away_ms` without one. */
void nodes_await(const struct nats_hub *hub, struct nats_node *node, int64_t away_ms);

/* From now on links and nodes are looked at each second, while there is one. */
void nodes_start_tick(struct nats_hub *hub);

/* Frees the node if it has no link. */
void nodes_release(struct nats_node *node);

/* The name in the log. */
const char *node_name(const struct nats_node *node);

/* Takes a sign of life, or GONE. Returns the node whose links have ended with it, or NULL. */
struct nats_node *nodes_heard(struct nats_hub *hub, const struct link_message *message);

#endif
