/* The history of runs (RMP 10): the last events of each run that the daemon has published. Bounded
 * by the events and bytes of a run, by the runs, by the bytes of all, and by time: a run is
 * forgotten a while after its last event. Where it is full, what goes belongs to the user who holds
 * most. It does no I/O and reads no clock; the files of runs are written by its user. */
#ifndef STDIO_BUS_RMP_HISTORY_H
#define STDIO_BUS_RMP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/hash_table.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/siphash.h"
#include "rmp/frame.h"

/* The users who hold entries of something bounded, and how much each of them holds: runs of a
 * history (rmp/history.h), requests that are remembered (rmp/control.h). */

struct rmp_owner {
    uint32_t user;       /* rmp/peer.h */
    struct list entries; /* those that can be forgotten, the oldest first */
    size_t count;        /* of all its entries */
    size_t bytes;
    struct heap_node by_bytes, by_count;
};

struct rmp_owners {
    struct hash_table table; /* struct rmp_owner, by user */
    struct siphash_key key;
    struct heap_node *most_bytes, *most_entries;
};

void rmp_owners_init(struct rmp_owners *owners, const struct siphash_key *key);

/* Frees what the table takes. No owner may be left. */
void rmp_owners_free(struct rmp_owners *owners);

/* The owner, created without an entry if need be; it lives until rmp_owners_count leaves it
 * without one. NULL if out of memory. */
struct rmp_owner *rmp_owners_get(struct rmp_owners *owners, uint32_t user);

/* The owner holds these entries and bytes more, or less (a number that wraps). Frees an owner that
 * has no entry then. */
void rmp_owners_count(struct rmp_owners *owners, struct rmp_owner *owner, size_t entries,
                      size_t bytes);

/* The owner with the most bytes, or entries. There is one. */
struct rmp_owner *rmp_owners_most_bytes(const struct rmp_owners *owners);
struct rmp_owner *rmp_owners_most_entries(const struct rmp_owners *owners);

struct rmp_history_limits {
    size_t events;    /* of one run; 0: nothing is kept */
    size_t run_bytes; /* of one run */
    size_t runs;
    size_t bytes; /* of all runs; at least run_bytes */
    uint64_t ms;  /* after its last event a run is forgotten */
};

struct rmp_kept_event {
    struct list_node link; /* run->events */
    uint64_t msg_id, at_ms;
    size_t len;
    char payload[]; /* MsgPack */
};

/* The last four fields are for the files: the history only lowers `unsaved` where it forgets an
 * event. */
struct rmp_run {
    struct list_node in_age;   /* history->by_age */
    struct list_node in_owner; /* owner->entries */
    struct rmp_owner *owner;   /* the user who has submitted it */
    struct rmp_id id;
    struct list events; /* struct rmp_kept_event, oldest first */
    size_t count;
    size_t bytes;     /* of the run and its events */
    uint64_t last_ms; /* of the calendar: its last event, or its acceptance */

    struct list_node in_unsaved;
    size_t unsaved;    /* the last ones of its events, which its file does not have */
    size_t file_count; /* events in its file */
    uint64_t file_len; /* 0: the file is to be written as a whole */
};

struct rmp_history {
    struct rmp_history_limits limits;
    struct hash_table runs; /* struct rmp_run, by id */
    struct siphash_key key;
    struct list by_age; /* the run whose last event is the oldest first */
    struct rmp_owners owners;
    size_t bytes, events;
    size_t *account; /* counts the bytes too */
    /* Called before a run is forgotten for want of room or of time. Must not call the history. */
    void (*forgets)(void *user_data, struct rmp_run *run);
    void *user_data;
};

/* `account` counts the bytes of the history, too. */
void rmp_history_init(struct rmp_history *history, const struct siphash_key *key,
                      const struct rmp_history_limits *limits, size_t *account);

/* Forgets all runs, without a call. */
void rmp_history_free(struct rmp_history *history);

/* The run, or NULL. */
struct rmp_run *rmp_history_find(const struct rmp_history *history, struct rmp_id id);

/* The run, which is added for this user at this time of the calendar if it is not there. While
 * there are too many runs, the oldest one of the user who has most is forgotten. NULL: nothing is
 * kept, or out of memory. */
struct rmp_run *rmp_history_open(struct rmp_history *history, struct rmp_id id, uint32_t user,
                                 uint64_t at_ms);

/* Adds an event to the end of a run; the payload is copied. What is over the limits is forgotten:
 * the oldest events of the run; and while all runs take too much, the oldest other run of the user
 * who holds most bytes, or the oldest events of this run, if its user holds most and has no other.
 * NULL: the event alone is over run_bytes, or out of memory; then nothing has changed. */
struct rmp_kept_event *rmp_history_add(struct rmp_history *history, struct rmp_run *run,
                                       uint64_t msg_id, uint64_t at_ms, struct slice payload);

/* Forgets the runs whose time is over. */
void rmp_history_expire(struct rmp_history *history, uint64_t epoch_ms);

/* When the next run is forgotten, in ms of the calendar; UINT64_MAX: there is none. */
uint64_t rmp_history_due(const struct rmp_history *history);

/* Saves the history, or loads it into an empty one. What is over its limits is forgotten with the
 * next event or run, not at once. */
void rmp_history_archive(struct archive *archive, struct rmp_history *history);

#endif
