/* The state of a worker (process/worker.h), and what its host is told. */
#ifndef STDIO_BUS_PROCESS_WORKER_STATE_H
#define STDIO_BUS_PROCESS_WORKER_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "endpoint/stream.h"
#include "event/event_loop.h"
#include "process/child.h"
#include "process/restart.h"
#include "process/stderr_reader.h"

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

/* What a reload of the configuration has left to do with a worker (reload/renewals.h). */
enum worker_renewal {
    RENEWAL_NONE,
    RENEWAL_IN_PLACE, /* its process is of an older configuration, and ends when it is free */
    RENEWAL_LEAVES    /* the same, and the worker with it */
};

/* What a user has asked for (supervisor/halt.h). */
enum worker_halt {
    HALT_NONE,
    HALT_RESTART, /* the next process is started when this one has ended */
    HALT_REST,    /* none is started before a message needs it */
    HALT_END      /* the bus ends */
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
    /* A process that has sent nothing is finished: how long its restart is delayed at least, in
     * milliseconds, or -1: it waits for a client. */
    int64_t (*early_delay)(struct worker *worker);
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
    bool executed;  /* exec has succeeded at least once */
    int exec_error; /* why the last one has not; 0: it has, or is not known */
    bool output_ended;
    bool awaits_exit;             /* its stdout has ended, and its exit status may say why */
    bool answered;                /* the last process that is finished has sent a message */
    unsigned failures_before;     /* failure.total of the pool at its start */
    struct stderr_reader *errors; /* NULL: its stderr is the daemon's */
    bool hurried;                 /* after WORKER_HURRY, until the next start */
    enum worker_after_end after_end;
    struct restart_policy restart;
    struct timer deadline;
    struct timer replay, probe; /* its owner's (supervisor/replay.h, supervisor/probe.h) */
    bool probe_sent;            /* the same */
    struct timer idle;          /* its owner's (supervisor/sleep.h): at the next look at it */
    uint64_t idle_frames;       /* messages that had passed at the last look, */
    int64_t idle_since_ms;      /* since when none has passed, */
    uint64_t sleeps;            /* and how often it fell asleep */
    enum worker_halt halt;      /* its owner's (supervisor/halt.h), while its process is to end: */
    struct timer halting;       /* the next look at it, */
    int64_t halt_until_ms;      /* and until when requests in flight are waited for */
    bool refused;               /* its owner's (supervisor/first_answer.h): by the daemon dialled */
    /* Its owner's (supervisor/workers.h): processes that ran, ended unasked, what they carried */
    uint64_t starts, restarts;
    struct traffic carried;
    bool restart_asked;
    enum worker_renewal renewal; /* its owner's, with the next (reload/renewals.h) */
    struct list_node renewing;   /* of the reload service */
    unsigned generation;         /* of the reload that added it; 0: of the start */
    struct peer_origin *blamed;  /* its owner's (supervisor/crashes.h): a reference, or NULL */
};

#endif
