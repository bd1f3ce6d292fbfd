/* A chaos run: a daemon, random clients, random workers, and a checker that sees every message at
 * both ends. */
#ifndef TESTS_CHAOS_CHAOS_H
#define TESTS_CHAOS_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chaos_client.h"
#include "config/sharing.h"
#include "dice.h"
#include "fleet.h"
#include "journal.h"
#include "ledger.h"
#include "subject.h"
#include "verdict.h"

/* The configuration's limits, small enough for all of them to be met. */
#define LIMIT_INPUT (1 << 20)
#define LIMIT_QUEUE (192 << 10)
#define LIMIT_CONNECTIONS 30
#define LIMIT_SESSIONS 56
#define LIMIT_SESSIONS_BOUND 160   /* where each worker has its own */
#define LIMIT_SESSIONS_LEARNED 10000 /* nobody is told when there is no room for one */
#define LIMIT_PENDING 400
#define LIMIT_DRAIN_SEC 2
#define LIMIT_BACKPRESSURE_SEC 2

/* Of exclusive pools. */
#define LIMIT_SPARE 2
#define LIMIT_BUSY_SEC 1

#define MESSAGE_MAX (900 << 10)
#define CLIENTS_MAX 36

enum phase {
    PHASE_START,  /* nothing has happened */
    PHASE_CALM,   /* everything behaves; nothing may be lost */
    PHASE_QUIET,  /* nothing happens; all is as it was at the start */
    PHASE_STORM,  /* everything happens */
    PHASE_SETTLE, /* nobody does harm any more; all that is open comes to its end */
    PHASE_END     /* the daemon was told to stop */
};

struct options {
    unsigned seconds;
    uint64_t seed;
    const char *daemon;
    char worker[4096];
    bool tcp;
    char keys[160]; /* of each pool beside the usual ones, as in the configuration */
    struct sharing sharing; /* what they mean */
    enum wire_framing worker_framing; /* that of the clients is wire_framing */
    unsigned pools, workers; /* workers of each pool */
};

/* What a storm is mostly about. */
struct mood {
    unsigned loose;     /* per thousand clients: do not read as they should */
    unsigned small_ids; /* per thousand: use the ids that everybody uses */
    uint32_t pause_ms;  /* between a client's messages, at most */
    uint32_t torment_ms, harm_ms; /* between two stops or kills, two harmful orders, at most */
};

struct stats {
    uint64_t sent, received, sent_bytes, received_bytes;
    uint64_t got, said; /* messages at the workers' end */
    uint64_t requests, answered, refused, cut_off;
    uint64_t questions, clients, turned_away, rejected, stalled;
    uint64_t processes, kills, stops, harms, rounds;
};

struct chaos {
    struct options options;
    struct dice dice;
    struct stats stats;
    struct verdict verdict;
    struct subject subject;
    struct ledger ledger;
    struct fleet fleet;
    struct board *board;
    int journal;
    enum phase phase;
    struct mood mood;
    int64_t now_ms;
    struct client clients[CLIENTS_MAX];
    uint64_t last_serial, last_conn;
    int64_t next_harm_ms, next_huge_ms, next_torment_ms, next_look_ms;
    unsigned calm_number;
    long baseline_fds, baseline_rss;
    size_t baseline_size; /* of the fleet */
};

#define BACKPRESSURE_MS (LIMIT_BACKPRESSURE_SEC * 1000)

/* A client has one worker of each pool, and stays with it. */
static inline bool chaos_binds(const struct chaos *chaos)
{
    return chaos->options.sharing.clients != CLIENTS_SHARED;
}

static inline unsigned chaos_max_sessions(const struct chaos *chaos)
{
    if (chaos->options.sharing.session_in_params)
        return LIMIT_SESSIONS_LEARNED;
    return chaos_binds(chaos) ? LIMIT_SESSIONS_BOUND : LIMIT_SESSIONS;
}

/* What is said of a progress token goes to the client that has used it. */
static inline bool chaos_knows_tokens(const struct chaos *chaos)
{
    return chaos_binds(chaos) || chaos->options.sharing.rewrite_ids;
}

static inline bool chaos_sticky(const struct chaos *chaos)
{
    return chaos->options.sharing.clients == CLIENTS_STICKY;
}

static inline bool chaos_exclusive(const struct chaos *chaos)
{
    return chaos->options.sharing.clients == CLIENTS_EXCLUSIVE;
}

const char *phase_name(enum phase phase);

/* One round of everything: waits at most `timeout_ms` for something to happen. */
void chaos_step(struct chaos *chaos, int timeout_ms);

#endif
