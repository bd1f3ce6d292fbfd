/* What a bus does over NATS: its connection, the pools that it exports, the requests that came for
 * them. */
#ifndef STDIO_BUS_FEDERATION_HUB_H
#define STDIO_BUS_FEDERATION_HUB_H

#include "config/nats_keys.h"
#include "federation/broker.h"

#define NATS_SERVICE_NAME_MAX 256
#define NATS_SERVICE_ID_LEN 16

struct setup;
struct discovery;

/* A pool with a subscription to its subject. */
struct nats_export {
    struct nats_subscription subscription; /* its subject and queue are `subject` */
    struct list_node link;                 /* hub->exports */
    struct nats_hub *hub;
    bool is_current; /* during exports_renew */
    uint64_t requests, refused;
    uint64_t answered, answer_ms; /* requests, and the time until their answers */
    struct discovery *discovery;  /* federation/discovery.h; NULL: out of memory */
    char *id, *subject;
};

#define PRESENCE_ID_LEN 16 /* hexadecimal digits, new with each start */
#define PRESENCE_SUBJECT_MAX 128

/* federation/presence.h */
struct nats_presence {
    struct nats_subscription asked, answered; /* PREFIX.nodes; PREFIX.nodes.ID.* */
    struct broker_watcher watcher;
    struct list nodes; /* struct seen_node */
    size_t count;
    char id[PRESENCE_ID_LEN + 1], subject[PRESENCE_SUBJECT_MAX], answers[PRESENCE_SUBJECT_MAX];
};

struct nats_metrics {
    uint64_t connected, connections, requests, in_flight, lost;
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
    struct nats_metrics metrics; /* as they were measured last */
};

#endif
