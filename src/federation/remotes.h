/* Pools of other nodes, and the workers whose links lead there. */
#ifndef STDIO_BUS_FEDERATION_REMOTES_H
#define STDIO_BUS_FEDERATION_REMOTES_H

#include "base/archive.h"
#include "config/pool_config.h"
#include "federation/link.h"
#include "process/pool.h"

/* The pool of this id of other nodes, or of this one alone unless that is ""; created if need be;
 * for as long as the hub lives. NULL if out of memory. */
struct nats_remote *remotes_get(struct nats_hub *hub, struct slice id, const char *node);

/* What a remote pool is dialled by, for as long as the hub lives. NULL if out of memory. */
const struct dialer *remotes_dialer(struct nats_hub *hub, const struct pool_config *config);

/* A worker of the pool whose link leads to this node, started if need be. NULL: out of memory. */
struct peer *remotes_passage(struct nats_hub *hub, const struct group *group, const char *node);

/* So many clients wait for a worker of the pool: as many links are asked for, in all at most as
 * many as the pool has instances. */
void remotes_overflow(struct nats_hub *hub, struct pool *pool, size_t count);

/* Whether clients of such a pool wait; other nodes are asked again then. */
bool remotes_are_lacked(struct nats_hub *hub);

/* A node has accepted the link of the worker link->overflow, which serves the next client now. */
void remotes_overflow_accepted(const struct nats_link *link);

/* The nodes to which passages lead; after the workers. */
void remotes_archive_passages(struct archive *archive, struct nats_hub *hub);

void remotes_free(struct nats_remote *remote);

#endif
