/* The RMP topic bus (rmp/broker.h) within the bus: what its clients and its bridge share. */
#ifndef STDIO_BUS_TOPICS_HUB_H
#define STDIO_BUS_TOPICS_HUB_H

#include "bus/visitor.h"
#include "rmp/broker.h"
#include "rmp/frame.h"
#include "topics/bridge.h"
#include "topics/runs.h"

struct rmp_hub_metrics {
    uint64_t clients, drops[3];
    struct rmp_counters counters;
    struct rmp_gauges now;
    uint64_t runs, events, bytes, failures; /* of the history */
};

struct rmp_hub {
    struct stdio_bus *bus;
    struct rmp_broker *broker;
    struct rmp_rules rules;
    struct rmp_bridge *bridge; /* to the pools */
    struct rmp_runs *runs;     /* of the bridge: their events are kept */
    struct visitors clients;   /* struct rmp_client */
    struct list ready;  /* clients that are read from again, once `due` or `retry` is called */
    struct timer due;   /* at the broker's deadline: */
    uint64_t due_ms;    /* RMP_NO_DEADLINE: it is not started */
    struct timer retry; /* started while a client waits for memory */
    struct rmp_time time;
    uint64_t last_msg_id; /* of the frames that the daemon itself sends */
    struct buffer *text;  /* the publication of that number in the JSON dialect (rmp/reply.h), */
    uint64_t text_number; /* which many subscribers may get; 0: none */
    uint64_t lost;        /* of the broker's counter no_memory: in the log */
    struct rmp_hub_metrics metrics; /* as they were measured last */
};

/* NULL if out of memory. `due` is called at the broker's deadlines, with the hub. `clients`: their
 * kind. */
struct rmp_hub *rmp_hub_create(struct stdio_bus *bus, timer_fn *due,
                               const struct visitor_kind *clients);

/* Nothing of it is left in the pools and in the event loop. No client may be left. */
void rmp_hub_detach(struct rmp_hub *hub);

void rmp_hub_destroy(struct rmp_hub *hub);

/* The time of this round. */
struct rmp_time rmp_hub_time(struct rmp_hub *hub);

/* The limits of the configuration have changed. */
void rmp_hub_bound(struct rmp_hub *hub, const struct limits *limits);

/* At the end of a round: the broker may have another deadline, or have lost messages. */
void rmp_hub_plan(struct rmp_hub *hub);

#endif
