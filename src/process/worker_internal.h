/* What worker.c and worker_exit.c share. Of no use to anybody else. */
#ifndef STDIO_BUS_PROCESS_WORKER_INTERNAL_H
#define STDIO_BUS_PROCESS_WORKER_INTERNAL_H

#include "process/worker.h"

/* How long a grandchild may hold the output of a process that has exited, and how long the rest of
 * its process group may take to follow it. */
#define GRACE_MS 2000

static inline struct log *log_of(const struct worker *worker)
{
    return worker->transport->log;
}

static inline const char *context(const struct worker *worker)
{
    return worker->endpoint.connection.context;
}

static inline void start_timer(struct worker *worker, struct timer *timer, int64_t delay_ms)
{
    struct stdio_bus_event_loop *loop = worker->transport->loop;

    timers_start(stdio_bus_event_loop_timers(loop), timer,
                 stdio_bus_event_loop_now_ms(loop) + delay_ms);
}

/* Looks whether the child has been executed, or why not. */
void worker_check_exec(struct worker *worker);

/* Kills what is left of the process group of a process that has exited long ago; timer_fn. */
void worker_kill_orphans(void *user_data);

#endif
