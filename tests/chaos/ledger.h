/* All messages in flight, and the sessions. */
#ifndef TESTS_CHAOS_LEDGER_H
#define TESTS_CHAOS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "wire.h"

/* Every entry of a list in turn; the current one may be removed. */
#define each_entry(type, entry, list, member)                                                      \
    for (type *entry = list_entry((list)->head.next, type, member),                                \
              *entry##_next = list_entry(entry->member.next, type, member);                        \
         &entry->member != &(list)->head;                                                          \
         entry = entry##_next, entry##_next = list_entry(entry->member.next, type, member))

/* A message that can still arrive or be answered. Numbers of connections are never reused. */
struct entry {
    struct serial serial, ref;
    uint64_t hash, key;
    uint64_t raw_id;  /* where ids are rewritten: the hash of its id as spelled */
    uint64_t token;   /* a request: the hash of its progress token */
    uint64_t seen_id; /* a request: the hash of the id that the worker received */
    size_t len;
    char kind;
    bool calm;               /* sent in a calm phase */
    bool got;                /* arrived */
    bool unique;             /* a request: its id is never used again */
    bool given_up;           /* a request: cancelled by its client */
    bool resolved;           /* a request: its client got an answer or error; a question: refused */
    unsigned long long conn; /* its sender, or its receiver; 0: unknown */
    unsigned long long rival; /* a question without a session: another possible receiver */
    bool to_all; /* an event to all of a worker's clients; conn: one of them, or 0: any */
    unsigned long long worker; /* its sender, or its receiver; 0: none yet */
    unsigned long long answer; /* a request: number of the worker's answer, 0: none yet */
    uint8_t level;             /* of a client: of log messages, once it was sent (handshake.h) */
    uint8_t pool;              /* of a client: 1 + the pool asked for, or one of POOL_... */
    bool refused;              /* a request: no worker may get it, by an error of the daemon */
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

/* A connection of a client and a process of a worker. */
struct pair {
    unsigned long long worker, conn;
    unsigned long long up, down; /* numbers of the last messages received */
    bool bound;                  /* the client is or was bound to the worker */
    struct list expected;        /* messages of the worker that the client must get, in order */
    struct list_node link;
};

#define SESSION_BEFORE 8

struct session {
    char name[WIRE_NAME_MAX];
    bool loose;                /* used by a client that the daemon may close at any time */
    unsigned long long worker; /* it is bound to; 0: none seen */
    unsigned long long before[SESSION_BEFORE]; /* earlier workers, whose records may be late */
    unsigned moves;
    unsigned long long owner; /* connection; 0: unknown */
    unsigned endings;         /* clients of it that have begun to go */
    unsigned users;           /* connected clients of it */
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

struct entry *ledger_add(struct ledger *ledger, struct serial serial, char kind, bool calm);
struct entry *ledger_find(const struct ledger *ledger, struct serial serial);
void ledger_remove(struct ledger *ledger, struct entry *entry);

/* It need not arrive, though it is of a calm phase. */
void ledger_excuse(struct ledger *ledger, struct entry *entry);

/* The same; of the copies of an event to all, the one for this client, if there is one. */
struct entry *ledger_find_for(const struct ledger *ledger, struct serial serial,
                              unsigned long long conn);

/* Creates the pair or session if there is none. */
struct pair *ledger_pair(struct ledger *ledger, unsigned long long worker, unsigned long long conn);
struct session *ledger_session(struct ledger *ledger, const char *name);

/* The same in a list of the caller. */
struct session *ledger_session_in(struct list *list, const char *name);

/* True for a pair without further messages to expect. */
typedef bool ledger_done_fn(void *user_data, const struct pair *pair);

/* A message that a client still has to get, or NULL. Empties the expectations of done pairs. */
const struct entry *ledger_any_expected(struct ledger *ledger, ledger_done_fn *done,
                                        void *user_data);

/* A calm entry, or NULL. */
const struct entry *ledger_any_calm(const struct ledger *ledger);

/* No message is in flight: removes all messages, the done pairs, and the sessions without users. */
void ledger_purge(struct ledger *ledger, ledger_done_fn *done, void *user_data);

#endif
