/* Calls: requests of the topic bus that workers are asked, and their answers. */
#ifndef STDIO_BUS_TOPICS_CALLS_H
#define STDIO_BUS_TOPICS_CALLS_H

#include "endpoint/endpoint.h"
#include "process/pool.h"
#include "rmp/bridge.h"
#include "topics/answer.h"
#include "json/text.h"

enum rmp_call_kind {
    RMP_CALL_EXECUTE, /* of an agent */
    RMP_CALL_SUBMIT,
    RMP_CALL_CANCEL,
    RMP_CALL_REFUSAL /* the reply to a request of a worker */
};

/* What a pool has with the topic bus: an endpoint of the router, and a peer of the broker. */
struct rmp_port {
    struct endpoint endpoint;
    struct rmp_peer peer;
    struct rmp_bridge *bridge;
    struct list_node link;   /* bridge->ports */
    struct pool *pool;       /* NULL: rlp/ctrl has no runner */
    struct list frames;      /* struct rmp_asking, not looked at yet */
    struct list lines;       /* calls whose lines were not taken by the router yet */
    struct hash_table calls; /* by their numbers */
    size_t waiting;          /* frames and lines */
    bool paused;             /* the router holds the first line */
    struct timer work;       /* started while there is something to do */
};

/* A frame that the broker has delivered. */
struct rmp_asking {
    struct list_node link; /* port->frames */
    bool is_control;
    uint32_t user; /* of the publisher */
    struct rmp_header header;
    size_t body_len;
    char body[];
};

struct rmp_call {
    struct list_node link; /* port->lines, until its line was taken */
    struct rmp_port *port;
    enum rmp_call_kind kind;
    uint64_t number;
    struct rmp_id trace_id; /* of the frame */
    struct rmp_id run_id;
    struct timer deadline;
    struct json_text line;
    struct slice reply_topic; /* EXECUTE; within this struct */
    char text[];
};

/* Copies a frame of the broker to the end of port->frames. STDIO_BUS_ERR if out of memory. */
int rmp_port_keep(struct rmp_port *port, const struct rmp_header *header, uint32_t user,
                  struct slice body, bool is_control);

/* A call without a line, known to its port, and at the end of port->lines. The deadline's function
 * is the caller's to set. NULL if out of memory. */
struct rmp_call *rmp_call_create(struct rmp_port *port, enum rmp_call_kind kind,
                                 struct slice reply_topic);

/* The same for a call that has its number, which no other one has. */
struct rmp_call *rmp_call_numbered(struct rmp_port *port, enum rmp_call_kind kind, uint64_t number,
                                   struct slice reply_topic);

/* The call of that number, or NULL. */
struct rmp_call *rmp_call_find(const struct rmp_port *port, uint64_t number);

/* Publishes the answer of the worker, and ends the call. */
void rmp_call_answered(struct rmp_call *call, const struct bridge_message *message);

/* Publishes that the call has failed, and ends it. A rejected request is not remembered. */
void rmp_call_failed(struct rmp_call *call, bool retryable, struct slice reason);

/* Starts port->work. */
void rmp_port_wake(struct rmp_port *port);

/* Frees it without a word. */
void rmp_call_end(struct rmp_call *call);

#endif
