/* What is known of a run of fuzz_pool_modes: its actors, the requests in flight as their answerers
 * see them, and the sessions. */
#ifndef STDIO_BUS_FUZZ_POOL_RUN_H
#define STDIO_BUS_FUZZ_POOL_RUN_H

#include "common.h"
#include "router/router.h"

#define CLIENTS 5
#define WORKERS 4
#define POOLS 2
#define ASKED_MAX 400
#define SESSIONS_MAX 6
#define TEXT_MAX 256

struct actor {
    struct peer *peer; /* NULL: a client that is not connected */
    bool is_worker, pending, starved;
    bool retiring;     /* its client has left: another process follows */
    bool left;         /* a client of this process has left */
    bool waits_for_id; /* where two wait for each other, only a time limit ends it */
    unsigned pool;
    char text[TEXT_MAX]; /* its last message, held or not */
    struct actor *bound[POOLS];
};

/* A request of either direction, delivered and not answered. */
struct asked {
    struct actor *asker, *answerer; /* asker NULL: abandoned */
    bool token_counts;              /* the daemon reads it in this pool */
    bool names_session;             /* its answer may */
    char id[40], seen_id[40], token[40], seen_token[40], work[40], seen_work[40], loads[40];
};

struct known_session {
    const struct actor *worker, *owner;
    char id[40];
};

struct run {
    struct tape tape;
    struct limits limits;
    struct router router;
    struct pool_mode mode[POOLS];
    struct group pools[POOLS];
    struct actor clients[CLIENTS], workers[WORKERS];
    struct asked asked[ASKED_MAX];
    unsigned asked_count;
    struct known_session sessions[2 * SESSIONS_MAX + CLIENTS];
    unsigned session_count;
    bool forgetful; /* more were abandoned than the daemon remembers */
    struct list starved;
    unsigned serial;
    bool traces, well;
};

#define ID "\"id\":"
#define META "\"_meta\":{\"progressToken\":"
#define WORK "\"workDoneToken\":"
#define SESSION "\"params\":{\"sessionId\":"
#define NAMED "\"result\":{\"sessionId\":"
#define PROGRESS "\"params\":{\"progressToken\":"
#define CANCEL "\"requestId\":"

/* The mode of the pool to which the worker of the two belongs. */
const struct pool_mode *pool_run_mode_of(const struct run *run, const struct actor *from,
                                         const struct actor *to);

/* True for two spellings of one id or token. */
bool pool_run_same_id(const char *a, const char *b);

/* The request with this id, as its answerer sees it, or NULL. */
struct asked *pool_run_find_asked(struct run *run, const struct actor *answerer, const char *id);
void pool_run_forget(struct run *run, struct asked *asked);

/* The asker does not wait any more. */
void pool_run_abandon(struct run *run, struct asked *asked);

/* Copies the value after `key` in the text, up to one of the characters that end it. */
void pool_run_value_of(char to[40], const char *text, const char *key);

/* The text with the value of `key` replaced. */
void pool_run_with_value(char to[TEXT_MAX], const char *text, const char *key, const char *value);

/* True if the texts differ in the values of these keys and of WORK alone. */
bool pool_run_same_but(const char *a, const char *b, const char *key, const char *other);

/* An answer of a worker is delivered, or its asker gets an error: checks whether the session that
 * it names begins or moves. */
void pool_run_answer_session(struct run *run, const struct actor *worker, bool failed);
void pool_run_end_sessions(struct run *run, const struct actor *of);

/* What the worker says reaches the client that it is for. */
void pool_run_check_addressee(struct run *run, const struct actor *worker, const struct actor *to);

#endif
