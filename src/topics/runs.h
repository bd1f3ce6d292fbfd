/* The runs of the topic bus whose events are kept (RMP 10): in memory (rmp/history.h), and where
 * rmp.history names a directory, in files (topics/run_files.h). The events are those that the
 * daemon publishes; what clients publish on the topic of a run is not kept. */
#ifndef STDIO_BUS_TOPICS_RUNS_H
#define STDIO_BUS_TOPICS_RUNS_H

#include "bus/state.h"
#include "rmp/broker.h"
#include "rmp/control.h"
#include "rmp/history.h"
#include "topics/run_files.h"

struct rmp_runs {
    struct stdio_bus *bus;
    struct rmp_control *control; /* which runs were accepted, and how they have ended */
    struct rmp_history history;
    struct run_files files;
    struct list unsaved; /* struct rmp_run: the files lack something of them */
    struct timer expiry; /* a run is forgotten */
    struct list failed;  /* the same; their files are not written before `retry` */
    struct timer retry;
    uint64_t failures; /* of writes */
};

/* With the keys rmp.history_... of the configuration. `control` is used from then on, and lives as
 * long. NULL if out of memory. */
struct rmp_runs *rmp_runs_create(struct stdio_bus *bus, struct rmp_control *control);

/* Nothing is written any more. NULL is allowed. */
void rmp_runs_destroy(struct rmp_runs *runs);

/* A run was accepted. */
void rmp_runs_accepted(struct rmp_runs *runs, struct rmp_id run);

/* An event of a run is published, with this msg_id and this created_at_ms. */
void rmp_runs_event(struct rmp_runs *runs, struct rmp_id run, uint64_t msg_id, uint64_t at_ms,
                    struct slice payload);

/* A new subscription that is to get the events that are kept. */
struct rmp_replay {
    struct rmp_broker *broker;
    struct rmp_peer *peer;
    struct rmp_sub_name name;
    struct slice topic;
    struct rmp_time time;
};

/* Delivers the events that are kept, if the topic is that of a run. */
void rmp_runs_replay(struct rmp_runs *runs, const struct rmp_replay *to);

/* At the end of a round: writes what the files lack, before any subscriber gets it. */
void rmp_runs_save(struct rmp_runs *runs);

/* At the start of a daemon: reads the files. A run that was accepted and has no end has failed with
 * the daemon before: it gets an event that says so, whose msg_id is `last_msg_id` plus one, and so
 * on. A directory or a file that cannot be read is skipped, after a WARN. */
void rmp_runs_load(struct rmp_runs *runs, uint64_t *last_msg_id);

/* Saves what is kept, or loads it into runs that have nothing. */
void rmp_runs_archive(struct archive *archive, struct rmp_runs *runs);

#endif
