/* The mode of a pool: how clients that do not know the bus share its workers. Set by keys that
 * spec 9 does not have (stdio_bus.conf(5), "Sharing"). */
#ifndef STDIO_BUS_CONFIG_POOL_MODE_H
#define STDIO_BUS_CONFIG_POOL_MODE_H

#include <stdbool.h>

enum pool_clients {
    CLIENTS_SHARED,   /* any worker serves any client: the specification */
    CLIENTS_STICKY,   /* a client stays at the worker that got its first message */
    CLIENTS_EXCLUSIVE /* a client stays at a worker that has no other client */
};

/* The protocol between the clients and the workers; decides how a request is cancelled. */
enum pool_protocol { PROTOCOL_UNKNOWN, PROTOCOL_MCP, PROTOCOL_ACP, PROTOCOL_LSP };

/* What follows for the clients of a process that exits: of an exclusive one, or where clients share
 * a handshake. */
enum pool_exit {
    EXIT_REPLACES, /* it gets a new process, and must know what to do */
    EXIT_REPLAYS,  /* MCP: the same, after the handshake was repeated (supervisor/replay.h) */
    EXIT_CLOSES    /* it is closed */
};

struct pool_mode {
    enum pool_clients clients;
    enum pool_protocol protocol;
    enum pool_clients stateless; /* MCP: the same for clients of its stateless era, which have
                                   * processes of their own; CLIENTS_SHARED: they have not */
    enum pool_exit on_exit;
    bool session_in_params;       /* the session id is params.sessionId */
    bool by_name;                 /* only messages that name the pool go there */
    bool rewrite_ids;             /* the daemon gives each request an id of its own */
    bool frugal;                  /* sticky: one process for all clients of an era, started when
                                   * the first of them comes */
    bool is_front;                /* exclusive: the process is a daemon, whose next one is to know
                                   * all that the client has set (share/front.h) */
    bool lazy;                    /* MCP: no process before a message needs one */
    bool remembers;               /* sticky, MCP: clients get what the server has answered before
                                   * (router/remembered.h) */
    unsigned idle_stop_sec;       /* MCP: a process that is not called for so long sleeps
                                   * (supervisor/sleep.h); 0: none does */
    unsigned spare;               /* exclusive: workers kept started and idle */
    unsigned busy_timeout_sec;    /* exclusive: a client waits this long for a worker */
    unsigned request_timeout_sec; /* 0: none */
};

#define POOL_MODE_INSTANCES 16 /* of an exclusive pool without "instances" */
#define POOL_MODE_SPARE_MAX 1024
#define POOL_MODE_TIMEOUT_MAX 86400 /* seconds */

/* The values that the keys may have; each list ends with NULL. */
extern const char *const pool_mode_clients_words[];
extern const char *const pool_mode_session_words[];
extern const char *const pool_mode_ids_words[];
extern const char *const pool_mode_protocol_words[];
extern const char *const pool_mode_exit_words[]; /* from EXIT_REPLAYS on */

/* NULL: the pool has none. */
const char *pool_mode_protocol_name(enum pool_protocol protocol);

/* True if clients share processes that each get one handshake (router/one_handshake.h). The
 * requests of the daemon itself need ids that no client can have. */
static inline bool pool_mode_shares_handshake(const struct pool_mode *mode)
{
    return mode->protocol == PROTOCOL_MCP && mode->rewrite_ids &&
           (mode->clients == CLIENTS_STICKY || mode->is_front);
}

/* The mode of the processes that serve the stateless era of a pool with this mode. */
struct pool_mode pool_mode_of_stateless(const struct pool_mode *mode);

/* True if the pool works as in the specification. */
bool pool_mode_is_plain(const struct pool_mode *mode);

/* True if the pool needs the progress tokens of its requests. */
static inline bool pool_mode_reads_tokens(const struct pool_mode *mode)
{
    return mode->clients != CLIENTS_EXCLUSIVE || mode->rewrite_ids || mode->request_timeout_sec > 0;
}

/* True if the pool needs the tasks of its clients. */
static inline bool pool_mode_reads_tasks(const struct pool_mode *mode)
{
    return mode->protocol == PROTOCOL_MCP &&
           (mode->clients != CLIENTS_EXCLUSIVE || mode->rewrite_ids || mode->idle_stop_sec > 0);
}

/* True if it has no process for a time without clients. */
static inline bool pool_mode_rests(const struct pool_mode *mode)
{
    return mode->lazy || mode->idle_stop_sec > 0;
}

#endif
