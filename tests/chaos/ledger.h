/* Every message that is on its way, and who is bound to whom. */
#ifndef TESTS_CHAOS_LEDGER_H
#define TESTS_CHAOS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "wire.h"

/* A message, until nothing more can happen to it. A connection's number is never used again. */
struct entry {
    struct serial serial, ref;
    uint64_t hash, key;
    uint64_t raw_id; /* where ids are rewritten: the hash of its id as it was spelled */
    uint64_t token; /* a request: the hash of its progress token */
    uint64_t seen_id; /* a request: the hash of its id as the worker saw it */
    size_t len;
    char kind;
    bool calm;     /* sent while everything behaved */
    bool got;      /* it has arrived */
    bool unique;   /* a request: nobody else uses its id */
    bool given_up; /* a request: its client has cancelled it */
    bool resolved; /* a request: its client knows how it ended */
    uint64_t conn; /* that sent it, or that must get it; 0: not known */
    uint64_t rival; /* a question in no session: another client that it could be for, as well */
    bool to_all;   /* an event to all of a worker's clients; conn: one of them, or 0: any */
    uint64_t worker; /* that sent it, or that got it; 0: none yet */
    uint64_t answer; /* a request: number of the worker's answer, 0: none yet */
    uint8_t pool;    /* a client's message: 1 + the pool asked for, or one of POOL_... */
    bool refused;    /* a request: the daemon has said that it is not served */
    struct session *session;
    char spelled_id[WIRE_TOKEN_MAX]; /* a request, where ids are rewritten; "": too long */
    int64_t sent_ms;
    struct list_node in_flight; /* client.in_flight */
    struct list_node at_worker; /* incarnation.open or .questions */
    struct list_node expected;  /* pair.expected */
    struct list_node link;      /* its hash chain */
};

#define POOL_ANY 0
#define POOL_UNKNOWN 255

/* One client's connection and one worker's process. */
struct pair {
    uint64_t worker, conn;
    uint64_t up, down;    /* numbers of the last messages that arrived */
    bool bound;           /* the client belongs, or has belonged, to the worker */
    struct list expected; /* what the worker said and the client has to get, in order */
    struct list_node link;
};

#define SESSION_BEFORE 8

struct session {
    char name[WIRE_NAME_MAX];
    bool loose;       /* a client whom the daemon may close any time has used it */
    uint64_t worker;  /* it is bound to; 0: none seen */
    uint64_t before[SESSION_BEFORE]; /* it was bound to; what they got may come late */
    unsigned moves;
    uint64_t owner;   /* connection; 0: not known */
    unsigned endings; /* clients that used it and began to go */
    unsigned users;   /* clients that use it and are connected */
    struct list_node link;
};

#define LEDGER_CHAINS 8192

struct ledger {
    struct list entries[LEDGER_CHAINS];
    struct list pairs[LEDGER_CHAINS];
    struct list sessions[LEDGER_CHAINS];
    size_t entry_count;
    size_t calm_open; /* entries that are calm */
};

void ledger_init(struct ledger *ledger);
void ledger_free(struct ledger *ledger);

struct entry *ledger_add(struct ledger *ledger, struct serial serial, char kind, bool calm);
struct entry *ledger_find(const struct ledger *ledger, struct serial serial);
void ledger_remove(struct ledger *ledger, struct entry *entry);

/* Of several entries with one serial, as events to all have them, that of this client, or the first
 * one. */
struct entry *ledger_find_for(const struct ledger *ledger, struct serial serial, uint64_t conn);

/* Made when there is none. */
struct pair *ledger_pair(struct ledger *ledger, uint64_t worker, uint64_t conn);
struct session *ledger_session(struct ledger *ledger, const char *name);

/* The same in a list of the caller's. */
struct session *ledger_session_in(struct list *list, const char *name);

/* Says which pairs there is nothing to expect of any more. */
typedef bool ledger_done_fn(void *user_data, const struct pair *pair);

/* A message that a client has to get yet, or NULL. What is expected in pairs that are done is
 * forgotten first. */
const struct entry *ledger_any_expected(struct ledger *ledger, ledger_done_fn *done,
                                        void *user_data);

/* An entry that is calm and still there, or NULL. */
const struct entry *ledger_any_calm(const struct ledger *ledger);

/* Nothing is on its way any more: forgets all messages, the pairs that are done, and the sessions
 * that nobody uses. */
void ledger_purge(struct ledger *ledger, ledger_done_fn *done, void *user_data);

#endif
