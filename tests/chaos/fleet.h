/* The workers' processes, as far as they have been heard of, and what is done to them. */
#ifndef TESTS_CHAOS_FLEET_H
#define TESTS_CHAOS_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "journal.h"

struct chaos;

struct incarnation {
    uint64_t origin;
    pid_t pid;
    uint8_t pool;
    char doomed;     /* why it may end, a letter; 0: it has no reason to */
    bool unclean;    /* what it said may be lost */
    bool left;       /* it told us that it exits */
    bool termed;     /* we sent it SIGTERM */
    bool gone;       /* the process was seen to be gone */
    int64_t stopped_until_ms; /* 0: it is not stopped */
    int64_t suspect_until_ms; /* until then the daemon may find that it does not read */
    uint64_t client;          /* connection: of an exclusive pool; the only one it may ever serve,
                               * 0: not known yet */
    uint64_t slot;            /* the same for processes that are started in each other's place, as
                               * far as their clients show it */
    struct list sessions;     /* of a sticky pool: those that it has heard of */
    struct list open;         /* requests that it got and has not answered */
    struct list questions;    /* that it asked and nobody has answered */
    struct list_node link;
};

#define FLEET_NEWBORNS 16

struct fleet {
    struct list incarnations;
    uint64_t dooms, stalls;
    pid_t newborns_killed[FLEET_NEWBORNS]; /* the last ones; what they said may be yet to come */
    size_t newborns_killed_count;
    int64_t last_doom_ms;
};

void fleet_init(struct fleet *fleet);
void fleet_free(struct fleet *fleet);

struct incarnation *fleet_find(const struct fleet *fleet, uint64_t origin);
bool fleet_has_pid(const struct fleet *fleet, pid_t pid);
struct incarnation *fleet_add(struct chaos *chaos, const struct record *hello);

/* It has done, or was done, something that may end it. */
void fleet_doom(struct chaos *chaos, struct incarnation *incarnation, char reason, bool unclean);

/* A client that was bound to `before` is bound to `after` now: it must be what was started in its
 * place. */
void fleet_replaced(struct chaos *chaos, struct incarnation *before, struct incarnation *after);

/* For this time it does not read. */
void fleet_stall(struct chaos *chaos, struct incarnation *incarnation, int64_t ms);

/* True when the client that an exclusive pool's worker served, or would have served, may have
 * gone. */
bool fleet_client_left(const struct chaos *chaos, const struct incarnation *incarnation);

/* True when the daemon may have, or may soon have, given it up. */
bool fleet_may_be_gone(const struct chaos *chaos, const struct incarnation *incarnation);

/* True when what it said need not arrive: it is unknown, or it ended and not in order. */
bool fleet_words_lost(const struct chaos *chaos, uint64_t origin);

/* Stops, continues, terminates and kills workers now and then. */
void fleet_torment(struct chaos *chaos);

/* Continues whoever is stopped. */
void fleet_continue_all(struct chaos *chaos);

/* Compares with the daemon's children: marks those that are gone, and checks that they had a
 * reason. Returns true when exactly the workers that should be there are, known to us, with nothing
 * open. */
bool fleet_complete(struct chaos *chaos, bool nothing_open);

/* How many processes the daemon has. */
size_t fleet_size(const struct chaos *chaos);

/* Notes the state of each worker as an event. */
void fleet_note_all(struct chaos *chaos);

/* Forgets those that are gone. */
void fleet_purge(struct chaos *chaos);

#endif
