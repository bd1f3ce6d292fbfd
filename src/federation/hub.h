/* What a bus does over NATS: its connection, the pools that it exports, the requests that came for
 * them. */
#ifndef STDIO_BUS_FEDERATION_HUB_H
#define STDIO_BUS_FEDERATION_HUB_H

#include "config/nats_keys.h"
#include "federation/broker.h"
#include "router/placement.h"

#define NATS_SERVICE_NAME_MAX 256
#define NATS_SERVICE_ID_LEN 16

struct setup;
struct discovery;

#define NATS_NODE_ID_LEN 16 /* hexadecimal digits, new with each start */
#define NATS_NODE_NAME_MAX 64
#define NATS_LINK_REASON_MAX 200

/* A pool with a subscription to its subject. */
struct nats_export {
    struct nats_subscription subscription; /* its subject and queue are `subject` */
    struct nats_subscription links;        /* the same for `link_subject`: links are opened */
    struct list_node link;                 /* hub->exports */
    struct nats_hub *hub;
    bool is_current; /* during exports_renew */
    uint64_t requests, refused;
    uint64_t answered, answer_ms; /* requests, and the time until their answers */
    struct discovery *discovery;  /* federation/discovery.h; NULL: out of memory */
    char *id, *subject, *link_subject;
};

#define TALLIES_MAX 64 /* names; all others together have one */

/* federation/tallies.h: what is counted for a name of nodes. */
struct nats_tally {
    char name[NATS_NODE_NAME_MAX + 1];
    uint64_t received, sent; /* bytes of links */
    uint64_t declined, lost; /* links: of that node, here; with it */
    uint64_t round_trip_us;  /* the last one; 0: unknown */
    uint64_t links, unacked; /* when they were measured last */
};

/* Another daemon to which there are links, or an address from which one is to be opened. */
struct nats_node {
    struct list_node link; /* hub->links.nodes */
    char id[NATS_NODE_ID_LEN + 1];
    char name[NATS_NODE_NAME_MAX + 1];
    struct list links;        /* struct nats_link; never empty for long */
    int64_t heard_ms;         /* when it has sent something last */
    bool is_awaited;          /* since a new connection to NATS: heard_ms is later than that */
    struct nats_tally *tally; /* of its name, in hub->tallies */
};

struct nats_link_counters {
    uint64_t opened, declined, broken; /* by this daemon; by others; in the midst, of both */
};

/* federation/links.h */
struct nats_links {
    struct list all;             /* struct nats_link */
    struct hash_table by_number; /* the same */
    size_t count;
    struct list nodes;   /* struct nats_node */
    struct list remotes; /* struct nats_remote: the pools of other nodes */
    uint64_t last_number;
    struct timer tick; /* started while a link is opened, or there is a node */
    struct nats_subscription inbox;
    struct broker_watcher watcher;
    int64_t lost_ms; /* when the connection to NATS ended; 0: it has not */
    char id[NATS_NODE_ID_LEN + 1];
    char *inbox_subject;
    struct nats_link_counters counters;
};

struct nats_place_counters {
    uint64_t asked, yielded;
};

/* federation/places.h */
struct nats_places {
    struct placement placement; /* of the pools that other nodes serve, or are served by, */
    struct placement leaving;   /* and of remote pools in which a session id is that of a process */
    struct list asked, here; /* struct held_session (places.c); the latter are of sessions here */
    struct hash_table by_session, by_number; /* the same */
    size_t here_count;
    struct timer spread; /* started while a subscription spreads in a cluster */
    struct broker_watcher watcher;
    struct nats_place_counters counters;
};

#define PRESENCE_SUBJECT_MAX 128

/* federation/presence.h */
struct nats_presence {
    struct nats_subscription asked, answered; /* PREFIX.nodes; PREFIX.nodes.ID.* */
    struct broker_watcher watcher;
    struct list nodes; /* struct seen_node */
    size_t count;
    char subject[PRESENCE_SUBJECT_MAX], answers[PRESENCE_SUBJECT_MAX];
};

struct nats_metrics {
    uint64_t connected, connections, requests, in_flight, lost;
    uint64_t links, nodes;
    struct nats_link_counters counters;
    const struct nats_tally *tallies;
    size_t tally_count;
    struct nats_place_counters places;
    uint64_t claims;
};

struct nats_hub {
    struct stdio_bus *bus;
    struct nats_config config; /* of the start; its texts are those of a configuration, held by: */
    struct setup *setup;
    struct broker broker;
    struct list exports;
    struct list calls; /* struct nats_call */
    size_t call_count, held_bytes;
    uint64_t requests, last_number;
    struct nats_presence presence;
    struct nats_links links;
    struct nats_places places;
    struct nats_tally tallies[TALLIES_MAX + 1]; /* the last one is that of the other names */
    size_t tally_count;
    struct nats_metrics metrics; /* as they were measured last */
};

#endif
