/* The descriptors of a worker's process, and how its lines of the log begin. */
#ifndef STDIO_BUS_PROCESS_WORKER_STREAMS_H
#define STDIO_BUS_PROCESS_WORKER_STREAMS_H

#include "process/worker_state.h"

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
