#include "build_config.h"

#include "process/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "process/process.h"
#include "process/worker_internal.h"

static void set_context(struct worker *worker)
{
    char *to = worker->endpoint.connection.context;
    size_t size = sizeof worker->endpoint.connection.context;

    if (worker->pid > 0)
        snprintf(to, size, "worker=%u pid=%ld", worker->number, (long)worker->pid);
    else
        snprintf(to, size, "worker=%u", worker->number);
}

static void stop_timer(struct worker *worker, struct timer *timer)
{
    timers_stop(stdio_bus_event_loop_timers(worker->transport->loop), timer);
}

static void deadline(void *user_data)
{
    worker_handle(user_data, WORKER_DEADLINE);
}

int worker_init(struct worker *worker, struct transport *transport,
                const struct worker_host *host)
{
    worker->transport = transport;
    worker->host = host;
    worker->state = WORKER_STOPPED;
    worker->fd_exec = -1;
    timer_init(&worker->deadline, deadline, worker);
    timer_init(&worker->orphans_deadline, worker_kill_orphans, worker);
    set_context(worker);
    return restart_init(&worker->restart, transport->limits->max_restarts,
                        transport->limits->restart_window_sec);
}

static void close_exec(struct worker *worker)
{
    if (worker->fd_exec < 0)
        return;
    stdio_bus_event_loop_remove(worker->transport->loop, worker->fd_exec);
    close(worker->fd_exec);
    worker->fd_exec = -1;
}

void worker_destroy(struct worker *worker)
{
    if (worker->pid > 0 && !worker->killed) /* else stuck in the kernel: not waiting for that */
        process_destroy(worker->pid);
    worker->pid = 0;
    worker_kill_orphans(worker);
    stop_timer(worker, &worker->deadline);
    stop_timer(worker, &worker->orphans_deadline);
    close_exec(worker);
    connection_close(&worker->endpoint.connection);
    restart_free(&worker->restart);
}

/* --- starting --- */

void worker_check_exec(struct worker *worker)
{
    const char *cwd = worker->program.cwd;
    int error = 0;
    int result;

    if (worker->fd_exec < 0)
        return;
    result = process_exec_result(worker->fd_exec, &error);
    if (result == STDIO_BUS_EAGAIN)
        return;
    close_exec(worker);
    if (result == STDIO_BUS_OK) {
        worker_handle(worker, WORKER_EXECUTED);
        return;
    }
    log_error(log_of(worker), context(worker), "cannot execute %s%s%s: %s", worker->program.argv[0],
              cwd != NULL ? " in " : "", cwd != NULL ? cwd : "", strerror(error));
    worker_handle(worker, WORKER_EXEC_FAILED);
    if (!worker->executed)
        worker->host->first_exec(worker, false);
}

static void exec_readable(void *user_data, unsigned events)
{
    (void)events;
    worker_check_exec(user_data);
}

/* Puts the fresh process under the event loop's eyes. */
static int adopt(struct worker *worker, const struct process *process)
{
    struct connection *connection = &worker->endpoint.connection;

    *connection = (struct connection){.framing = worker->framing,
                                      .skips_bad_lines = worker->skips_bad_output};
    worker->pid = process->pid;
    set_context(worker);
    if (stdio_bus_event_loop_add(worker->transport->loop, process->fd_exec, STDIO_BUS_EVENT_READ,
                                 exec_readable, worker) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    worker->fd_exec = process->fd_exec;
    return connection_open(connection, worker->transport, worker->host->connection,
                           process->fd_from, process->fd_to, false);
}

int worker_start(struct worker *worker)
{
    struct process process;
    int error;

    if (process_spawn(&process, &worker->program) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    worker->output_ended = worker->killed = worker->retiring = worker->terminated = false;
    if (adopt(worker, &process) == STDIO_BUS_OK) {
        worker->state = WORKER_STARTING;
        log_info(log_of(worker), context(worker), "started %s for pool %s", worker->program.argv[0],
                 worker->pool);
        return STDIO_BUS_OK;
    }
    error = errno;
    process_destroy(process.pid);
    worker->pid = 0;
    if (worker->fd_exec < 0)
        close(process.fd_exec);
    close_exec(worker);
    close(process.fd_from);
    close(process.fd_to);
    errno = error;
    return STDIO_BUS_ERR;
}

/* --- finishing --- */

static void fail(struct worker *worker)
{
    worker->state = WORKER_FAILED;
    if (worker->restart.max == 0)
        log_error(log_of(worker), context(worker), "failed: max_restarts is 0");
    else
        log_error(log_of(worker), context(worker),
                  "failed: restarted %u times within %lld seconds, giving up",
                  worker->restart.max, (long long)(worker->restart.window_ms / 1000));
    worker->host->available(worker, PEER_FAILED);
}

/* STOPPED, with a restart to come or not. */
static void plan_restart(struct worker *worker)
{
    int64_t delay;

    worker->state = WORKER_STOPPED;
    if (worker->stopping || worker->retiring)
        return;
    delay = restart_after_exit(&worker->restart,
                               stdio_bus_event_loop_now_ms(worker->transport->loop));
    if (delay < 0) {
        fail(worker);
        return;
    }
    log_info(log_of(worker), context(worker), "restarting in %lld ms", (long long)delay);
    start_timer(worker, &worker->deadline, delay);
}

/* Finished is who was reaped and read to the end. */
static void finish_if_over(struct worker *worker)
{
    if (worker->pid > 0 || !worker->output_ended)
        return;
    stop_timer(worker, &worker->deadline);
    close_exec(worker);
    connection_close(&worker->endpoint.connection);
    set_context(worker);
    plan_restart(worker);
    worker->host->finished(worker);
}

/* No answer comes any more: whoever waits for one is told now. */
static void end_output(struct worker *worker)
{
    if (worker->output_ended)
        return;
    worker->output_ended = true;
    worker->host->gone(worker);
}

static void terminate(struct worker *worker)
{
    worker->state = WORKER_STOPPING;
    worker->terminated = true;
    worker->host->available(worker, PEER_AWAY);
    process_signal_group(worker->pid, SIGTERM);
    start_timer(worker, &worker->deadline,
                (int64_t)worker->transport->limits->drain_timeout_sec * 1000);
}

/* --- the table's actions, named after state and event --- */

static void starting_executed(struct worker *worker)
{
    bool is_first = !worker->executed;

    worker->state = WORKER_RUNNING;
    worker->executed = true;
    log_debug(log_of(worker), context(worker), "running");
    worker->host->available(worker, PEER_HERE);
    if (is_first)
        worker->host->first_exec(worker, true);
}

/* The child is about to exit by itself. */
static void starting_exec_failed(struct worker *worker)
{
    worker->state = WORKER_STOPPING;
    start_timer(worker, &worker->deadline, GRACE_MS);
}

/* Also of what it has left unread: as long as that can be read, GRACE_MS are enough. */
static void await_output_end(struct worker *worker)
{
    worker->endpoint.connection.resumed = false;
    start_timer(worker, &worker->deadline, GRACE_MS);
}

static void running_exited(struct worker *worker)
{
    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_AWAY);
    await_output_end(worker);
    finish_if_over(worker);
}

static void running_output_ended(struct worker *worker)
{
    end_output(worker);
    worker_check_exit(worker); /* mostly its end, and SIGCHLD is on its way */
    if (worker->pid == 0)
        return;
    log_info(log_of(worker), context(worker), "its stdout has ended");
    terminate(worker);
}

static void running_misbehaved(struct worker *worker)
{
    terminate(worker); /* before its pipes are closed, so that the signal is what it sees first */
    connection_close(&worker->endpoint.connection);
    end_output(worker);
}

static void running_input_broken(struct worker *worker)
{
    connection_close_output(&worker->endpoint.connection);
    terminate(worker);
}

static void running_stop(struct worker *worker)
{
    worker->stopping = true;
    terminate(worker);
}

/* Its client has left, or none came: the end of its input tells it, once it has been sent
 * everything. */
static void running_retire(struct worker *worker)
{
    log_debug(log_of(worker), context(worker), "there is no client for it any more: ending it");
    worker->retiring = true;
    restart_forget(&worker->restart);
    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_AWAY);
    worker_end_input(worker);
    start_timer(worker, &worker->deadline, GRACE_MS);
}

/* Its end was its client's (LSP exit), or nobody's concern any more. */
static void stopping_retire(struct worker *worker)
{
    worker->retiring = true;
    restart_forget(&worker->restart);
}

static void stopped_retire(struct worker *worker)
{
    stop_timer(worker, &worker->deadline);
    restart_forget(&worker->restart);
}

static void stopping_exited(struct worker *worker)
{
    if (!worker->output_ended)
        await_output_end(worker);
    finish_if_over(worker);
}

static void stopping_output_ended(struct worker *worker)
{
    end_output(worker);
    finish_if_over(worker);
}

static void stopping_misbehaved(struct worker *worker)
{
    connection_close(&worker->endpoint.connection);
    end_output(worker);
    finish_if_over(worker);
}

static void stopping_input_broken(struct worker *worker)
{
    connection_close_output(&worker->endpoint.connection);
}

static void stopping_deadline(struct worker *worker)
{
    struct connection *connection = &worker->endpoint.connection;

    if (worker->pid > 0) {
        worker_check_exit(worker); /* its SIGCHLD may have been lost */
        if (worker->pid == 0)
            return;
        if (worker->retiring && !worker->terminated) {
            terminate(worker);
            return;
        }
        if (!worker->killed)
            log_warn(log_of(worker), context(worker), "did not exit in time; killing it");
        worker->killed = true;
        process_signal_group(worker->pid, SIGKILL);
        start_timer(worker, &worker->deadline, GRACE_MS);
    } else if (connection->held || connection->resumed) {
        /* Its last words wait for a client to read, or did until now; that has a time limit of its
         * own. */
        await_output_end(worker);
    } else {
        log_warn(log_of(worker), context(worker),
                 "exited, but another process holds its stdout; not waiting for it");
        worker_kill_orphans(worker);
        connection_close(connection);
        end_output(worker);
        finish_if_over(worker);
    }
}

static void stopping_stop(struct worker *worker)
{
    worker->stopping = true;
    if (worker->retiring && !worker->terminated && worker->pid > 0)
        terminate(worker);
}

static void stopped_deadline(struct worker *worker)
{
    worker->retiring = false; /* what fails to start now is tried again, after a while */
    if (worker_start(worker) == STDIO_BUS_OK)
        return;
    log_error(log_of(worker), context(worker), "cannot start %s: %s", worker->program.argv[0],
              strerror(errno));
    plan_restart(worker);
    worker->host->finished(worker);
}

static void stopped_stop(struct worker *worker)
{
    worker->stopping = true;
    stop_timer(worker, &worker->deadline);
}

typedef void worker_action(struct worker *worker);

/* What is not here does not concern that state. */
static worker_action *const actions[WORKER_FAILED + 1][WORKER_RETIRE + 1] = {
    [WORKER_STARTING] = {
        [WORKER_EXECUTED] = starting_executed,
        [WORKER_EXEC_FAILED] = starting_exec_failed,
        [WORKER_EXITED] = running_exited,
        [WORKER_OUTPUT_ENDED] = running_output_ended,
        [WORKER_INPUT_BROKEN] = running_input_broken,
        [WORKER_MISBEHAVED] = running_misbehaved,
        [WORKER_STOP] = running_stop,
        [WORKER_RETIRE] = running_retire,
    },
    [WORKER_RUNNING] = {
        [WORKER_EXITED] = running_exited,
        [WORKER_OUTPUT_ENDED] = running_output_ended,
        [WORKER_INPUT_BROKEN] = running_input_broken,
        [WORKER_MISBEHAVED] = running_misbehaved,
        [WORKER_STOP] = running_stop,
        [WORKER_RETIRE] = running_retire,
    },
    [WORKER_STOPPING] = {
        [WORKER_EXITED] = stopping_exited,
        [WORKER_OUTPUT_ENDED] = stopping_output_ended,
        [WORKER_INPUT_BROKEN] = stopping_input_broken,
        [WORKER_MISBEHAVED] = stopping_misbehaved,
        [WORKER_DEADLINE] = stopping_deadline,
        [WORKER_STOP] = stopping_stop,
        [WORKER_RETIRE] = stopping_retire,
    },
    [WORKER_STOPPED] = {
        [WORKER_DEADLINE] = stopped_deadline,
        [WORKER_STOP] = stopped_stop,
        [WORKER_RETIRE] = stopped_retire,
    },
};

void worker_handle(struct worker *worker, enum worker_event event)
{
    worker_action *action = actions[worker->state][event];

    if (action != NULL)
        action(worker);
}
