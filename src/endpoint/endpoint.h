/* An endpoint: a peer of the router, and the operations that carry a decision out on it. Streams
 * are one kind (endpoint/stream.h). */
#ifndef STDIO_BUS_ENDPOINT_ENDPOINT_H
#define STDIO_BUS_ENDPOINT_ENDPOINT_H

#include "base/slice.h"
#include "event/timers.h"
#include "router/peer.h"

struct decision;
struct endpoint;
struct message;

struct delivery {
    struct endpoint *from; /* NULL: a line of the daemon's own */
    struct slice bytes;
    const struct splice_edit *edits; /* parts of the bytes to be replaced */
    unsigned edit_count;
    bool keep; /* the message goes to others too: it is copied, never moved */
    /* For endpoints that have several ways for what they are sent (bus/deliver.h): */
    const struct decision *decision;   /* that the message is forwarded by; NULL: none */
    const struct message_id *answered; /* without one: the receiver's request that the line
                                        * answers; NULL: none */
};

struct endpoint_ops {
    /* Takes the message. Without `keep` its bytes are dead after STDIO_BUS_OK. STDIO_BUS_ERR if out
     * of memory, and then nothing was taken. */
    int (*deliver)(struct endpoint *to, const struct delivery *delivery);
    /* The current message is not taken, nor any other: it is offered again after resume. */
    void (*pause)(struct endpoint *endpoint);
    void (*resume)(struct endpoint *endpoint);
    /* Orderly end: nothing more is taken from the endpoint; what it was sent still reaches it. */
    void (*close)(struct endpoint *endpoint);
    /* It is paused, perhaps for long, and its message is for no process if it leaves meanwhile:
     * its end is noticed at once. */
    void (*watch_hangup)(struct endpoint *endpoint);
    /* Its current message is longer than the pool takes. */
    void (*too_long)(struct endpoint *endpoint, const struct message *message);
};

struct client_limits;

struct endpoint {
    const struct endpoint_ops *ops;
    struct peer peer;
    void *bus;                    /* the struct stdio_bus that it belongs to */
    struct timer hold_timer;      /* started while it is held with a limit of time */
    struct client_limits *limits; /* bus/client_limits.h; NULL: none */
    struct endpoint *carrier; /* the stream whose current frame its message is, where the endpoint
                               * is no stream itself; NULL: none */
    bool owes_answers;        /* it is owed an answer to each request, by its own protocol (HTTP) */
    int64_t since_ms;         /* its connection, or the process of a worker that runs */
    int64_t held_since_ms;    /* 0: it is not held */
    bool is_worker;
    bool blocks_itself; /* held until its own queue drains: that has too many error replies */
    char context[80];   /* for the log: "client=3", "worker=2 pid=71 pool=tools" */
};

static inline struct endpoint *endpoint_of_peer(struct peer *peer)
{
    return list_entry(peer, struct endpoint, peer);
}

#endif
