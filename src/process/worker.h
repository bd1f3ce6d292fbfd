/* A worker: one process after the other in the same slot, and its states (spec 3.3, 5, 7.1,
 * Appendix B). A table of state and event says what happens; the event loop only turns
 * descriptors, signals and deadlines into events. */
#ifndef STDIO_BUS_PROCESS_WORKER_H
#define STDIO_BUS_PROCESS_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "endpoint/stream.h"
#include "event/event_loop.h"
#include "process/child.h"
#include "process/restart.h"

enum worker_state {
    WORKER_STARTING, /* forked; the result of exec is not known yet */
    WORKER_RUNNING,  /* takes messages */
    WORKER_STOPPING, /* told to exit, or exited and its output not at EOF */
    WORKER_STOPPED,  /* finished: reaped, and stdout at EOF */
    WORKER_FAILED    /* finished, and not to be restarted any more */
};

enum worker_event {
    WORKER_EXECUTED, /* exec has succeeded */
    WORKER_EXEC_FAILED,
    WORKER_EXITED,       /* it was reaped */
    WORKER_OUTPUT_ENDED, /* its stdout was read to the end */
    WORKER_INPUT_BROKEN, /* its stdin is closed or broken */
    WORKER_MISBEHAVED,   /* what it sends is malformed, or it does not read (spec 5.3, 7.3.1) */
    WORKER_DEADLINE,     /* the state's time is up; STOPPED: start again */
    WORKER_STOP,         /* the bus is shutting down */
    WORKER_RETIRE,       /* no client needs it any more: not restarted before one does */
    WORKER_HURRY,        /* a client waits for its place: a retired process ends soon */
};

/* What follows the end of its process. */
enum worker_after_end {
    WORKER_RESTARTS,
    WORKER_WAITS_FOR_CLIENT, /* the exit was wanted; a client may need the worker again */
    WORKER_STAYS_STOPPED
};

/* What a reload of the configuration has left to do with a worker (bus/renewal.h). */
enum worker_renewal {
    RENEWAL_NONE,
    RENEWAL_IN_PLACE, /* its process is of an older configuration, and ends when it is free */
    RENEWAL_LEAVES    /* likewise, and the worker with it */
};

struct worker;

/* Reports of a worker to its host, which must not free it. */
struct worker_host {
    const struct stream_handler *stream; /* for the messages it sends */
    void (*available)(struct worker *worker, enum peer_availability availability);
    /* No answer will come any more from the process there was. */
    void (*gone)(struct worker *worker);
    /* STOPPED or FAILED was reached. */
    void (*finished)(struct worker *worker);
    /* How the very first exec went; if it failed, the configuration names a command that cannot be
     * run. */
    void (*first_exec)(struct worker *worker, bool succeeded);
};

struct worker {
    struct stream stream;
    struct list_node link; /* in its pool */
    const struct worker_host *host;
    struct transport *transport;
    unsigned number; /* the Worker ID (spec 3.3.6), from 1 on */
    const char *pool_id;
    struct program program;
    struct stream_options options; /* but for the handler and the descriptors */
    enum worker_state state;
    struct child child;
    bool executed; /* exec has succeeded at least once */
    bool output_ended;
    bool hurried; /* after WORKER_HURRY, until the next start */
    enum worker_after_end after_end;
    struct restart_policy restart;
    struct timer deadline;
    struct timer replay, probe; /* its owner's (bus/replay.h, bus/probe.h) */
    bool probe_sent;            /* likewise */
    bool refused;               /* its owner's (bus/first_answer.h): by the daemon it has dialled */
    /* Likewise (bus/control.h): processes that ran, that ended unasked, what they have carried: */
    uint64_t starts, restarts;
    struct traffic carried;
    bool restart_asked;
    enum worker_renewal renewal; /* its owner's, with the next (bus/renewal.h) */
    struct list_node renewing;   /* bus->renewals */
    unsigned generation;         /* of the reload that added it; 0: of the start */
    struct peer_origin *blamed;  /* its owner's (bus/crashes.h): a reference, or NULL */
};

/* Prepares a zeroed worker whose number, pool, program, options and bus are set: STOPPED.
 * STDIO_BUS_ERR when memory is out. */
int worker_init(struct worker *worker, struct transport *transport, const struct worker_host *host);

/* Kills what is left and frees everything. */
static inline void worker_destroy(struct worker *worker)
{
    child_destroy(&worker->child);
    stdio_bus_event_loop_stop_timer(worker->transport->loop, &worker->deadline);
    connection_close(&worker->stream.connection);
    restart_free(&worker->restart);
}

/* Starts a process, the first one or the next. STDIO_BUS_ERR with errno set when the system refuses
 * it or its pipes. */
int worker_start(struct worker *worker);

/* Event callback of the descriptor that has the result of exec. */
void worker_exec_readable(void *user_data, unsigned events);

/* Reaps the process if it has exited. To be called on SIGCHLD. */
void worker_check_exit(struct worker *worker);

/* Something has happened. */
void worker_handle(struct worker *worker, enum worker_event event);

/* A worker that has failed may be started again: WORKER_DEADLINE starts it. */
static inline void worker_revive(struct worker *worker)
{
    restart_forget(&worker->restart);
    worker->state = WORKER_STOPPED;
}

static inline void worker_stop(struct worker *worker)
{
    worker_handle(worker, WORKER_STOP);
}

/* Ends the wait for a worker that was told to stop. */
static inline void worker_kill(struct worker *worker)
{
    if (worker->child.pid > 0)
        child_kill(&worker->child);
    child_kill_orphans(&worker->child);
}

/* No longer waits for the output of a worker that was told to stop. */
static inline void worker_abandon(struct worker *worker)
{
    worker_handle(worker, WORKER_MISBEHAVED);
}

static inline bool worker_finished(const struct worker *worker)
{
    return worker->state == WORKER_STOPPED || worker->state == WORKER_FAILED;
}

static inline bool worker_failed(const struct worker *worker)
{
    return worker->state == WORKER_FAILED;
}

#endif
