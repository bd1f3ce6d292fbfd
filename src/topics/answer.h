/* What the bridge publishes on the topic bus. */
#ifndef STDIO_BUS_TOPICS_ANSWER_H
#define STDIO_BUS_TOPICS_ANSWER_H

#include "bus/state.h"
#include "rmp/broker.h"
#include "rmp/control.h"
#include "rmp/frame.h"
#include "topics/runs.h"

struct rmp_bridge {
    struct stdio_bus *bus;
    struct rmp_broker *broker;
    const struct rmp_rules *rules;
    struct rmp_control control; /* requests on rlp/ctrl that were seen */
    struct rmp_runs *runs;      /* whose events are kept */
    struct list ports;          /* struct rmp_port */
    uint64_t last_msg_id;
    uint64_t last_call; /* its number */
};

/* One publication of a peer of the bridge's. */
struct rmp_notice {
    struct rmp_peer *publisher;
    enum rmp_schema_id schema;
    struct slice topic;
    struct rmp_id trace_id;
    struct slice payload; /* MsgPack */
    const char *ended;    /* RunAccepted of a run that has ended: how; else NULL */
};

/* The two clocks, now. */
struct rmp_time rmp_answer_time(const struct rmp_bridge *bridge);

/* Whether a payload fits into a body. */
bool rmp_answer_fits(const struct rmp_bridge *bridge, size_t payload_len);

/* Publishes it. Only the log hears that it failed. */
void rmp_answer_publish(struct rmp_bridge *bridge, const struct rmp_notice *notice);

/* An event of a run, whose payload is `payload`. */
void rmp_answer_event(struct rmp_bridge *bridge, struct rmp_peer *publisher, struct rmp_id run,
                      struct slice payload);

/* RunRejected, on rlp/ctrl; the reason is a text. */
void rmp_answer_rejected(struct rmp_bridge *bridge, struct rmp_peer *publisher,
                         struct rmp_id request_id, struct slice reason);

#endif
