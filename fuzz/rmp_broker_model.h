/* A plain model of the RMP broker: each subscription has its own memory of duplicates, each peer
 * its own queue, and everything is searched for in arrays. */
#ifndef STDIO_BUS_FUZZ_RMP_BROKER_MODEL_H
#define STDIO_BUS_FUZZ_RMP_BROKER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rmp/peer.h"

#define MODEL_PEERS 4
#define MODEL_TOPICS 3
#define MODEL_SUB_IDS 2
#define MODEL_SLOTS (MODEL_SUB_IDS + MODEL_TOPICS) /* subscriptions by number, and by topic */
#define MODEL_KEYS 6
#define MODEL_QUEUE_MAX 3
#define MODEL_QUEUE_BYTES 2000
#define MODEL_MAX_TTL_MS 1000
#define MODEL_HORIZON_MS 30000
#define MODEL_WAIT_MS 50
#define MODEL_ENTRIES 256 /* in one queue */
#define MODEL_WAITS 512
#define MODEL_EVENTS 4096

enum model_what { MODEL_DELIVERED, MODEL_ENDED };

/* What a peer sees. */
struct model_event {
    enum model_what what;
    unsigned peer, slot; /* slot: of a delivery */
    unsigned key;        /* the msg_id, or the token */
    enum rmp_outcome outcome;
};

struct model_subscription {
    bool there;
    unsigned topic;
    uint64_t created;
    bool known[MODEL_KEYS];
    uint64_t seen_ms[MODEL_KEYS];
};

struct model_entry {
    unsigned slot, key;
    size_t bytes;
    uint64_t expires_at_ms;
    int wait; /* -1: it has its place */
};

struct model_peer {
    struct model_subscription subscriptions[MODEL_SLOTS];
    struct model_entry queue[MODEL_ENTRIES];
    size_t count;
    size_t room; /* messages that it takes before it is busy */
    bool refuses, busy, stalled;
};

struct model_wait {
    int publisher; /* -1: it has left */
    unsigned token, open;
    uint64_t deadline_ms;
    enum rmp_outcome outcome;
    bool waits; /* it has not ended */
};

struct model_message {
    unsigned topic, key;
    size_t bytes;
    uint64_t expires_at_ms;
};

struct model {
    struct model_peer peers[MODEL_PEERS];
    struct model_wait waits[MODEL_WAITS];
    int wait_count;
    int ended[MODEL_WAITS]; /* waits to be reported, in order */
    size_t ended_count;
    struct model_event events[MODEL_EVENTS];
    size_t event_count;
    uint64_t created;
    uint64_t now_ms, epoch_ms;
    uint64_t sent, drops_ttl, drops_duplicate, drops_backpressure;
};

void model_subscribe(struct model *model, unsigned peer, unsigned slot, unsigned topic);
void model_unsubscribe(struct model *model, unsigned peer, unsigned slot);
void model_leave(struct model *model, unsigned peer);

/* Of a message that is not refused. Returns whether it has ended, with *outcome. */
bool model_publish(struct model *model, unsigned publisher, const struct model_message *message,
                   enum rmp_outcome *outcome);

/* An older message for one subscription, which is there. */
void model_replay(struct model *model, unsigned peer, unsigned slot,
                  const struct model_message *message);

void model_resume(struct model *model, unsigned peer);
void model_run(struct model *model);

/* Whether there is no room for more steps. */
bool model_is_full(const struct model *model);

#endif
