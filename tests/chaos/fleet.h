/* The known processes of workers, and the harm done to them. */
#ifndef TESTS_CHAOS_FLEET_H
#define TESTS_CHAOS_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "journal.h"

struct chaos;
struct client;

struct incarnation {
    unsigned long long origin;
    pid_t pid;
    uint8_t pool;
    uint32_t program;          /* which one it runs; subject.programs: the present one */
    char doomed;               /* letter of the reason for which it may end; 0: none */
    bool unclean;              /* its messages may be lost */
    bool left;                 /* it reported its exit */
    bool renewed;              /* the daemon ended it after a reload, when it was free */
    bool slept;                /* the same, in a lazy pool: it had nothing to do */
    bool termed;               /* it got SIGTERM from this program */
    bool gone;                 /* the process is gone */
    bool greeted, confirmed;   /* MCP: it got initialize, notifications/initialized */
    uint8_t level;             /* and logging/setLevel; 0: it did not */
    bool served;               /* it got other messages */
    int64_t stopped_until_ms;  /* 0: not stopped */
    int64_t suspect_until_ms;  /* until then the daemon may end it, as it does not read */
    unsigned long long client; /* of an exclusive pool: its only connection; 0: unknown */
    unsigned long long slot;   /* equal for a process and its known replacements */
    struct list sessions;      /* of a sticky pool: those seen in its messages */
    struct list open;          /* requests that it received and has not answered */
    struct list questions;     /* its questions without a reply */
    struct list_node link;
};

#define FLEET_NEWBORNS 16

struct fleet {
    struct list incarnations;
    unsigned long long dooms, stalls;
    pid_t newborns_killed[FLEET_NEWBORNS]; /* recent ones; their records may be late */
    size_t newborns_killed_count;
};

void fleet_init(struct fleet *fleet);

struct incarnation *fleet_find(const struct fleet *fleet, unsigned long long origin);
bool fleet_has_pid(const struct fleet *fleet, pid_t pid);
struct incarnation *fleet_add(struct chaos *chaos, const struct record *hello);

/* Records an act, by or on the worker, that may end it. */
void fleet_doom(struct chaos *chaos, struct incarnation *incarnation, char reason, bool unclean);

/* A client of `before` is now bound to `after`, which must be its replacement. */
void fleet_replaced(struct chaos *chaos, struct incarnation *before, struct incarnation *after);

/* The worker does not read for this time. */
void fleet_stall(struct chaos *chaos, struct incarnation *incarnation, int64_t ms);

/* True if the client of an exclusive pool's worker may have gone. */
bool fleet_client_left(const struct chaos *chaos, const struct incarnation *incarnation);

/* True if the end of the process may fail requests and sessions; if it may end, now or soon, which
 * one of an old program does when it is free: nothing fails by that. */
bool fleet_may_fail(const struct chaos *chaos, const struct incarnation *incarnation);
bool fleet_may_be_gone(const struct chaos *chaos, const struct incarnation *incarnation);

/* True if the daemon may close the client, as one of its processes may be gone; if it must, as one
 * of them is. */
bool fleet_may_end_client(const struct chaos *chaos, const struct client *client);
bool fleet_must_end_client(const struct chaos *chaos, const struct client *client);

/* True if its messages need not arrive: it is unknown, or its end was not orderly. */
bool fleet_words_lost(const struct chaos *chaos, unsigned long long origin);

/* Stops, continues, terminates and kills workers now and then. */
void fleet_torment(struct chaos *chaos);

/* Continues all stopped workers. */
void fleet_continue_all(struct chaos *chaos);

/* Kills the workers of all clients. */
void fleet_kill_bound(struct chaos *chaos);

/* Compares the fleet with the daemon's children: marks those that are gone, and checks that they
 * had a reason. Returns true if exactly the wanted workers are there, all known, and without open
 * requests or questions. */
bool fleet_complete(struct chaos *chaos);

/* The number of child processes of the daemon. */
size_t fleet_size(const struct chaos *chaos);

/* Notes the state of each worker as an event. */
void fleet_note_all(struct chaos *chaos);

/* Removes the workers that are gone. */
void fleet_purge(struct chaos *chaos);

#endif
