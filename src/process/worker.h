/* A worker: one process after the other in the same slot, and its states (spec 3.3, 5, 7.1,
 * Appendix B). A table of state and event says what happens; the event loop only turns
 * descriptors, signals and deadlines into events. */
#ifndef STDIO_BUS_PROCESS_WORKER_H
#define STDIO_BUS_PROCESS_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "event/event_loop.h"
#include "process/process.h"
#include "process/restart.h"
#include "transport/endpoint.h"

enum worker_state {
    WORKER_STARTING, /* forked; exec has not been heard of yet */
    WORKER_RUNNING,  /* takes messages */
    WORKER_STOPPING, /* told to go, or gone and not read to the end yet */
    WORKER_STOPPED,  /* finished: reaped, and its output read to the end */
    WORKER_FAILED    /* finished, and not to be restarted any more */
};

enum worker_event {
    WORKER_EXECUTED,      /* exec has succeeded */
    WORKER_EXEC_FAILED,
    WORKER_EXITED,        /* it was reaped */
    WORKER_OUTPUT_ENDED,  /* its stdout was read to the end */
    WORKER_INPUT_BROKEN,  /* its stdin is closed or broken */
    WORKER_MISBEHAVED,    /* what it sends is malformed, or it does not read (spec 5.3, 7.3.1) */
    WORKER_DEADLINE,      /* the state's time is up */
    WORKER_STOP,          /* we are shutting down */
    WORKER_RETIRE         /* no client needs it alone any more: not restarted by itself */
};

struct worker;

/* What a worker tells its host. None of them may free it. */
struct worker_host {
    const struct connection_handler *connection; /* for the messages it sends */
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
    struct endpoint endpoint;
    void *bus;
    const struct worker_host *host;
    struct transport *transport;
    unsigned number; /* the Worker ID (spec 3.3.6), from 1 on */
    const char *pool;
    struct program program;
    const struct framing *framing; /* NULL: NDJSON */
    bool skips_bad_output; /* "on_bad_output": "skip" */
    enum worker_state state;
    pid_t pid; /* 0: none, or reaped */
    int fd_exec;
    bool executed; /* exec has succeeded at least once */
    bool output_ended;
    bool killed;   /* SIGKILL was sent */
    bool stopping; /* for good */
    bool retiring;   /* it has been told by the end of its input, so this is no crash */
    bool terminated; /* SIGTERM was sent */
    struct restart_policy restart;
    struct timer deadline;
    pid_t orphans; /* the process group of a process that was reaped; 0: none is left */
    struct timer orphans_deadline;
};

/* Prepares a zeroed worker whose number, pool, program, framing, skips_bad_output and bus are
 * set: STOPPED. STDIO_BUS_ERR when memory is out. */
int worker_init(struct worker *worker, struct transport *transport,
                const struct worker_host *host);

/* Kills what is left and frees everything. */
void worker_destroy(struct worker *worker);

/* Starts the process for the first time. STDIO_BUS_ERR with errno set when it cannot be forked. */
int worker_start(struct worker *worker);

/* Reaps the process if it has exited. To be called on SIGCHLD. */
void worker_check_exit(struct worker *worker);

/* Something has happened. */
void worker_handle(struct worker *worker, enum worker_event event);

/* A worker that was told to retire has been sent everything: closes its input. */
void worker_end_input(struct worker *worker);

/* Ends the wait for a worker that was told to stop. */
void worker_kill(struct worker *worker);

static inline bool worker_finished(const struct worker *worker)
{
    return worker->state == WORKER_STOPPED || worker->state == WORKER_FAILED;
}

static inline struct worker *worker_of(struct connection *connection)
{
    return list_entry(endpoint_of_connection(connection), struct worker, endpoint);
}

#endif
