/* A chaos run: a daemon, random clients, random workers, and a checker of all messages at both ends
 * of the daemon. */
#ifndef TESTS_CHAOS_CHAOS_H
#define TESTS_CHAOS_CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chaos_client.h"
#include "config/pool_mode.h"
#include "dice.h"
#include "fleet.h"
#include "hostile.h"
#include "journal.h"
#include "ledger.h"
#include "siege.h"
#include "subject.h"
#include "upgrades.h"
#include "verdict.h"

/* The limits of the configuration, small enough to be met. */
#define LIMIT_INPUT (1 << 20)
#define LIMIT_QUEUE (192 << 10)
#define LIMIT_CONNECTIONS 30
#define LIMIT_SESSIONS 56
#define LIMIT_SESSIONS_BOUND 160     /* sessions of each worker */
#define LIMIT_SESSIONS_LEARNED 10000 /* never met: beyond it no error is sent */
#define LIMIT_PENDING 400
#define LIMIT_DRAIN_SEC 2
#define LIMIT_BACKPRESSURE_SEC 2

/* Of exclusive pools. */
#define LIMIT_SPARE 2
#define LIMIT_BUSY_SEC 1

#define MESSAGE_MAX (900 << 10)

enum phase {
    PHASE_START,  /* before the first message */
    PHASE_CALM,   /* clients and workers behave; no message may be lost */
    PHASE_QUIET,  /* no messages; resources are back at the baseline */
    PHASE_STORM,  /* clients and workers misbehave */
    PHASE_SIEGE,  /* as calm, but for hostile clients */
    PHASE_SETTLE, /* no more harm; all open requests end */
    PHASE_END     /* the daemon got SIGTERM */
};

struct options {
    unsigned seconds;
    unsigned long long seed;
    const char *daemon;
    char worker[4096];
    bool tcp;
    bool lazy;                        /* processes sleep */
    char keys[160];                   /* further keys of each pool, as in the configuration */
    struct pool_mode mode;            /* their meaning */
    enum wire_framing worker_framing; /* wire_framing is that of the clients */
    unsigned pools, workers;          /* workers of each pool */
    unsigned reload;  /* milliseconds between two reloads at most; 0: there are none */
    unsigned upgrade; /* the same, upgrades in place */
    unsigned hostile; /* kinds; bit k: kind k; none: no siege */
};

/* The character of a storm. */
struct mood {
    unsigned loose;               /* per thousand clients: read too little */
    unsigned small_ids;           /* per thousand requests: use ids that all clients use */
    uint32_t pause_ms;            /* at most, between two messages of a client */
    uint32_t torment_ms, harm_ms; /* at most, between two stops or kills, two harmful orders */
};

struct stats {
    unsigned long long sent, received, sent_bytes, received_bytes;
    unsigned long long got, said; /* messages to and from workers */
    unsigned long long requests, answered, refused, cut_off;
    unsigned long long questions, clients, turned_away, rejected, stalled, sleeps;
    unsigned long long processes, kills, stops, harms, rounds;
    unsigned long long reloads;
};

struct chaos {
    struct options options;
    struct dice dice;
    struct stats stats;
    struct verdict verdict;
    struct subject subject;
    struct upgrades upgrades;
    struct ledger ledger;
    struct fleet fleet;
    struct board *board;
    int journal;
    enum phase phase;
    struct mood mood;
    struct horde horde;
    struct patience patience;
    bool origins; /* hostile clients have other addresses, or are other users, than honest ones */
    int64_t now_ms;
    struct client *clients; /* CLIENTS_MAX of them */
    unsigned long long last_serial, last_conn;
    int64_t next_harm_ms, next_huge_ms, next_torment_ms, next_look_ms, next_reload_ms;
    unsigned calm_number;
    long baseline_fds, baseline_rss;
    size_t baseline_size; /* of the fleet */
};

#define each_client(client, chaos)                                                                 \
    for (struct client *client = (chaos)->clients; client < (chaos)->clients + CLIENTS_MAX;        \
         client++)

#define BACKPRESSURE_MS (LIMIT_BACKPRESSURE_SEC * 1000)

/* Clients and workers behave; no message may be lost. */
static inline bool chaos_calm(const struct chaos *chaos)
{
    return chaos->phase == PHASE_CALM || chaos->phase == PHASE_SIEGE;
}

/* Each client is bound to one worker of each pool. */
static inline bool chaos_binds(const struct chaos *chaos)
{
    return chaos->options.mode.clients != CLIENTS_SHARED;
}

static inline unsigned chaos_max_sessions(const struct chaos *chaos)
{
    if (chaos->options.hostile != 0)
        return chaos->origins ? SIEGE_TABLE_ORIGINS : SIEGE_TABLE;
    if (chaos->options.mode.session_in_params)
        return LIMIT_SESSIONS_LEARNED;
    return chaos_binds(chaos) ? LIMIT_SESSIONS_BOUND : LIMIT_SESSIONS;
}

/* Progress goes to the client that made the token. */
static inline bool chaos_knows_tokens(const struct chaos *chaos)
{
    return chaos_binds(chaos) || chaos->options.mode.rewrite_ids;
}

/* The end of a process ends its client, and so the client's processes in other pools. */
static inline bool chaos_ends_clients(const struct chaos *chaos)
{
    return chaos->options.mode.on_exit == EXIT_CLOSES;
}

static inline bool chaos_sticky(const struct chaos *chaos)
{
    return chaos->options.mode.clients == CLIENTS_STICKY;
}

static inline bool chaos_exclusive(const struct chaos *chaos)
{
    return chaos->options.mode.clients == CLIENTS_EXCLUSIVE;
}

#endif
