/* A worker: one process after the other in the same slot, and its states (spec 3.3, 5, 7.1,
 * Appendix B). A table of state and event says what happens; the event loop only turns
 * descriptors, signals and deadlines into events. */
#ifndef STDIO_BUS_PROCESS_WORKER_H
#define STDIO_BUS_PROCESS_WORKER_H

#include "process/worker_state.h"

/* Prepares a zeroed worker whose number, pool, program, options and bus are set: STOPPED.
 * STDIO_BUS_ERR if out of memory. */
int worker_init(struct worker *worker, struct transport *transport, const struct worker_host *host);

/* Kills what is left and frees everything. */
static inline void worker_destroy(struct worker *worker)
{
    child_destroy(&worker->child);
    stdio_bus_event_loop_stop_timer(worker->transport->loop, &worker->deadline);
    connection_close(&worker->stream.connection);
    stderr_reader_destroy(worker->errors);
    restart_free(&worker->restart);
}

/* Starts a process, the first one or the next. STDIO_BUS_ERR with errno set when the system refuses
 * it or its pipes. */
int worker_start(struct worker *worker);

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

/* Saves a worker, or loads it into one that was not started, with the handler of its stream. What
 * the router knows of it, its peer, is left out. */
void worker_archive(struct archive *archive, struct worker *worker,
                    const struct stream_handler *handler);

/* --- worker streams --- */

/* The descriptors of a worker's process, and how its lines of the log begin. */

static inline struct log *worker_log(const struct worker *worker)
{
    return worker->transport->log;
}

static inline const char *worker_context(const struct worker *worker)
{
    return worker->stream.endpoint.context;
}

/* The context names the process that there is now. */
void worker_set_context(struct worker *worker);

/* Before a start: what reads its stderr, if the daemon does. STDIO_BUS_ERR with errno set. */
int worker_prepare_errors(struct worker *worker);

/* Connects the descriptors of a process. STDIO_BUS_ERR with errno set, and then they are closed. */
int worker_open_streams(struct worker *worker, const struct process *process);

/* Closes them after the end of the process; what it has written to stderr is logged. */
void worker_close_streams(struct worker *worker);

/* For a grandchild that holds the output of a process that has exited, and for the rest of its
 * process group to follow it. */
#define GRACE_MS 2000

/* The same for what was dialled and is stopped: a daemon that still has an answer to give keeps the
 * connection open, for a client that has left. */
#define DIALLED_GRACE_MS 500

/* Whether it was dialled, and is the only daemon that serves this process. */
static inline bool worker_is_front(const struct worker *worker)
{
    return worker->program.dialer != NULL && worker->program.dialer->reason == NULL;
}

static inline int64_t grace_ms(const struct worker *worker)
{
    return worker->program.dialer != NULL ? DIALLED_GRACE_MS : GRACE_MS;
}

static inline void worker_start_deadline(struct worker *worker, int64_t delay_ms)
{
    stdio_bus_event_loop_start_timer(worker->transport->loop, &worker->deadline, delay_ms);
}

static inline void worker_stop_deadline(struct worker *worker)
{
    stdio_bus_event_loop_stop_timer(worker->transport->loop, &worker->deadline);
}

/* The restart policy bounds these lines, but not where processes come and go with clients. */
#define log_process(worker, level, ...)                                                            \
    ((worker)->stream.endpoint.peer.pool->mode.clients == CLIENTS_EXCLUSIVE                        \
         ? log_repeated(worker_log(worker), (level), worker_context(worker), LOG_NO_SOURCE,        \
                        __VA_ARGS__)                                                               \
         : log_write(worker_log(worker), (level), worker_context(worker), __VA_ARGS__))

#endif
