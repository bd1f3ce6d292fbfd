/* The tables of the router in an archive: first all peers, which their owners carry one by one,
 * then what the peers have with each other. Peers are named by their numbers, which they keep.
 *
 * What a peer was held for is not in the archive: a held peer is released, and offers its message
 * again, so that it is decided again. Its claim to a worker is kept. */
#ifndef STDIO_BUS_ROUTER_ROUTER_ARCHIVE_H
#define STDIO_BUS_ROUTER_ROUTER_ARCHIVE_H

#include "base/archive.h"
#include "router/router.h"

struct router_archive {
    struct archive *archive;
    struct router *router;
    struct peer **peers; /* in their order */
    size_t count, capacity;
    struct hash_table by_number;

    /* The worker and the table whose items are carried. */
    struct peer *worker;
    struct pending *pending;
};

void router_archive_begin(struct router_archive *state, struct archive *archive,
                          struct router *router);
void router_archive_end(struct router_archive *state);

/* A peer that the router knows; its origin and whether it is admitted are its owner's to carry. */
void router_archive_peer(struct router_archive *state, struct peer *peer);

/* The counters and groups; then the tables, after all peers. */
void router_archive_groups(struct router_archive *state);
void router_archive_tables(struct router_archive *state);

/* A pool of the router, or NULL. A loaded one is one that the router knows. */
void router_archive_group(struct router_archive *state, struct group **group);

/* An id, which is not ID_NONE. A loaded one lives as long as the archive's bytes. */
void router_archive_id(struct archive *archive, struct message_id *id);

#endif
