#include "build_config.h"

#include "process/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/archive.h"
#include "base/error.h"
#include "router/eras.h"

/* For the exit of a process whose stdout has ended before it has sent anything: a client is told
 * the status. */
#define EXIT_MS 1000

/* Before SIGTERM and again before SIGKILL, if hurried: programs may end with their input. */
#define HURRY_MS 1000

static void deadline(void *user_data)
{
    worker_handle(user_data, WORKER_DEADLINE);
}

int worker_init(struct worker *worker, struct transport *transport, const struct worker_host *host)
{
    worker->transport = transport;
    worker->host = host;
    worker->state = WORKER_STOPPED;
    timer_init(&worker->deadline, deadline, worker);
    child_init(&worker->child, transport->loop);
    stream_init(&worker->stream);
    worker_set_context(worker);
    return restart_init(&worker->restart, transport->limits->max_restarts,
                        transport->limits->restart_window_sec);
}

/* --- starting --- */

static const char *program_name(const struct worker *worker)
{
    return worker->program.name != NULL ? worker->program.name : worker->program.argv[0];
}

/* Looks whether the child has been executed, or why not. */
static void check_exec(struct worker *worker)
{
    const char *cwd = worker->program.cwd;
    int error = 0;
    int result = child_exec_result(&worker->child, &error);

    if (result == STDIO_BUS_EAGAIN)
        return;
    if (result == STDIO_BUS_OK) {
        worker_handle(worker, WORKER_EXECUTED);
        return;
    }
    log_error(worker_log(worker), worker_context(worker), "cannot execute %s%s%s: %s",
              program_name(worker), cwd != NULL ? " in " : "", cwd != NULL ? cwd : "",
              strerror(error));
    worker->exec_error = error;
    worker_handle(worker, WORKER_EXEC_FAILED);
    if (!worker->executed)
        worker->host->first_exec(worker, false);
}

static void exec_readable(void *user_data, unsigned events)
{
    (void)events;
    check_exec(user_data);
}

static void may_have_exited(void *user_data)
{
    worker_check_exit(user_data);
}

int worker_start(struct worker *worker)
{
    struct process process;
    int error;

    if (worker_prepare_errors(worker) != STDIO_BUS_OK ||
        child_start(&worker->child, &worker->program, exec_readable, worker, &process) !=
            STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    worker->output_ended = worker->awaits_exit = worker->answered = false;
    worker->exec_error = 0;
    worker->failures_before = eras_claimed(worker->stream.endpoint.peer.pool)->failure.total;
    worker->after_end = WORKER_RESTARTS;
    worker->hurried = false;
    worker_set_context(worker);
    if (worker_open_streams(worker, &process) == STDIO_BUS_OK) {
        worker->state = WORKER_STARTING;
        if (worker->program.of_guest && worker->child.pid > 0)
            child_watch(&worker->child, may_have_exited, worker);
        log_process(worker, LOG_LEVEL_INFO, "started %s for pool %s", program_name(worker),
                    worker->pool_id);
        return STDIO_BUS_OK;
    }
    error = errno;
    child_destroy(&worker->child);
    errno = error;
    return STDIO_BUS_ERR;
}

/* --- finishing --- */

static void fail_worker(struct worker *worker)
{
    worker->state = WORKER_FAILED;
    if (worker->restart.max == 0)
        log_error(worker_log(worker), worker_context(worker), "failed: max_restarts is 0");
    else
        log_error(worker_log(worker), worker_context(worker),
                  "failed: restarted %u times within %lld seconds, giving up", worker->restart.max,
                  (long long)(worker->restart.window_ms / 1000));
    worker->host->available(worker, PEER_FAILED);
}

/* STOPPED, and restarted after a delay if that is wanted. */
static void plan_restart(struct worker *worker)
{
    int64_t delay, early;

    worker->state = WORKER_STOPPED;
    if (worker->after_end != WORKER_RESTARTS)
        return;
    early = worker->answered ? 0 : worker->host->early_delay(worker);
    delay = restart_after_exit(&worker->restart,
                               stdio_bus_event_loop_now_ms(worker->transport->loop));
    if (delay < 0) {
        fail_worker(worker);
        return;
    }
    if (early < 0) { /* the next start has its delay all the same (pool_supply) */
        worker->after_end = WORKER_WAITS_FOR_CLIENT;
        return;
    }
    delay = delay < early ? early : delay;
    log_process(worker, LOG_LEVEL_INFO, "restarting in %lld ms", (long long)delay);
    worker_start_deadline(worker, delay);
}

/* Finished: reaped, and stdout at EOF. */
static void finish_if_over(struct worker *worker)
{
    if (worker->child.pid > 0 || !worker->output_ended)
        return;
    worker_stop_deadline(worker);
    worker_close_streams(worker);
    plan_restart(worker);
    worker->host->finished(worker);
}

/* No answer comes any more. */
static void end_output(struct worker *worker)
{
    if (worker->output_ended)
        return;
    worker->output_ended = true;
    worker->awaits_exit = false;
    worker->answered = worker->stream.connection.frames_in > 0;
    if (worker->errors != NULL)
        stderr_reader_drain(worker->errors);
    worker->host->gone(worker);
}

/* SIGTERM, and the end of stdin once the queue is written: some programs end at that alone. */
static void terminate(struct worker *worker)
{
    int64_t drain_ms = (int64_t)worker->transport->limits->drain_timeout_sec * 1000;

    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_ABSENT);
    child_terminate(&worker->child);
    connection_end_output(&worker->stream.connection);
    worker_start_deadline(worker, worker->hurried && drain_ms > HURRY_MS ? HURRY_MS : drain_ms);
}

void worker_check_exit(struct worker *worker)
{
    char text[80];
    int status;

    if (!child_reap(&worker->child, &status, GRACE_MS))
        return;
    check_exec(worker); /* its result comes before the exit, also if SIGCHLD was first */
    log_process(worker, worker->after_end == WORKER_RESTARTS ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
                "%s", process_status_text(text, sizeof text, status));
    worker_handle(worker, WORKER_EXITED);
}

/* --- the table's actions, named after state and event --- */

static void starting_executed(struct worker *worker)
{
    bool is_first = !worker->executed;

    worker->state = WORKER_RUNNING;
    worker->executed = true;
    log_debug(worker_log(worker), worker_context(worker), "running");
    worker->host->available(worker, PEER_READY);
    if (is_first)
        worker->host->first_exec(worker, true);
}

/* The child is about to exit by itself. */
static void starting_exec_failed(struct worker *worker)
{
    worker->state = WORKER_STOPPING;
    worker_start_deadline(worker, GRACE_MS);
}

/* The process was reaped, and the rest of its group got SIGTERM. GRACE_MS are enough as long as the
 * rest of the output can be read. */
static void await_output_end(struct worker *worker)
{
    worker->stream.resumed = false;
    connection_end_output(&worker->stream.connection);
    worker_start_deadline(worker, grace_ms(worker));
}

static void running_exited(struct worker *worker)
{
    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_ABSENT);
    if (worker->awaits_exit)
        end_output(worker);
    else
        await_output_end(worker);
    finish_if_over(worker);
}

/* Its exit has not come, or need not be awaited. */
static void end_without_exit(struct worker *worker)
{
    end_output(worker);
    worker_check_exit(worker); /* mostly its end, and SIGCHLD is on its way */
    if (worker->child.pid == 0)
        return;
    log_process(worker, LOG_LEVEL_INFO, "its stdout has ended");
    terminate(worker);
}

static bool has_sent_nothing(const struct worker *worker)
{
    return worker->stream.connection.frames_in == 0 && worker->program.dialer == NULL;
}

/* A process that ends before it has sent anything should say why: its exit comes first, which
 * mostly is there, or on its way. */
static void running_output_ended(struct worker *worker)
{
    if (!has_sent_nothing(worker)) {
        end_without_exit(worker);
        return;
    }
    worker->awaits_exit = true;
    check_exec(worker); /* a worker that stops is not asked for it any more */
    worker_check_exit(worker);
    if (worker->output_ended)
        return;
    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_ABSENT);
    worker_start_deadline(worker, EXIT_MS);
}

static void running_misbehaved(struct worker *worker)
{
    terminate(worker); /* before its pipes are closed: the signal comes first */
    connection_close(&worker->stream.connection);
    end_output(worker);
}

static void running_input_broken(struct worker *worker)
{
    connection_close_output(&worker->stream.connection);
    terminate(worker);
}

static void running_stop(struct worker *worker)
{
    worker->after_end = WORKER_STAYS_STOPPED;
    terminate(worker);
}

/* Its client has left, or none came: its input is closed once its queue is written. */
static void running_retire(struct worker *worker)
{
    log_debug(worker_log(worker), worker_context(worker), "no client needs it: ending it");
    worker->after_end = WORKER_WAITS_FOR_CLIENT;
    restart_pardon(&worker->restart);
    worker->state = WORKER_STOPPING;
    worker->host->available(worker, PEER_ABSENT);
    connection_end_output(&worker->stream.connection);
    worker_start_deadline(worker, grace_ms(worker));
}

/* Expected exit (LSP exit): not counted as a crash. */
static void stopping_retire(struct worker *worker)
{
    if (worker->after_end == WORKER_RESTARTS)
        worker->after_end = WORKER_WAITS_FOR_CLIENT;
    restart_pardon(&worker->restart);
}

/* SIGTERM and SIGKILL come sooner. */
static void stopping_hurry(struct worker *worker)
{
    if (worker->child.pid == 0 || worker->after_end != WORKER_WAITS_FOR_CLIENT || worker->hurried)
        return;
    worker->hurried = true;
    if (timer_deadline_ms(&worker->deadline) >
        stdio_bus_event_loop_now_ms(worker->transport->loop) + HURRY_MS)
        worker_start_deadline(worker, HURRY_MS);
}

static void stopped_retire(struct worker *worker)
{
    worker_stop_deadline(worker);
    restart_pardon(&worker->restart);
}

static void stopping_exited(struct worker *worker)
{
    if (worker->awaits_exit)
        end_output(worker);
    else if (!worker->output_ended)
        await_output_end(worker);
    finish_if_over(worker);
}

/* It is terminated, mostly since its stdin was closed before its stdout. */
static void stopping_output_ended(struct worker *worker)
{
    if (worker->after_end == WORKER_RESTARTS && worker->child.pid > 0 && has_sent_nothing(worker)) {
        worker->awaits_exit = true;
        worker_check_exit(worker);
        if (!worker->output_ended)
            worker_start_deadline(worker, EXIT_MS);
        return;
    }
    end_output(worker);
    finish_if_over(worker);
}

static void stopping_misbehaved(struct worker *worker)
{
    connection_close(&worker->stream.connection);
    end_output(worker);
    finish_if_over(worker);
}

static void stopping_input_broken(struct worker *worker)
{
    connection_close_output(&worker->stream.connection);
}

/* The process has not exited in time. */
static void kill_overdue(struct worker *worker)
{
    worker_check_exit(worker); /* its SIGCHLD may have been lost */
    if (worker->child.pid == 0)
        return;
    if (worker->child.signalled == CHILD_NOT_SIGNALLED &&
        worker->after_end == WORKER_WAITS_FOR_CLIENT) {
        terminate(worker);
        return;
    }
    if (worker->child.signalled != CHILD_KILLED)
        log_warn(worker_log(worker), worker_context(worker), "did not exit in time; killing it");
    child_kill(&worker->child);
    worker_start_deadline(worker, GRACE_MS);
}

static void stopping_deadline(struct worker *worker)
{
    struct connection *connection = &worker->stream.connection;

    if (worker->awaits_exit) {
        worker_check_exit(worker); /* the daemon may be late, with SIGCHLD unread */
        if (worker->awaits_exit)
            end_without_exit(worker);
    } else if (worker->child.pid > 0) {
        kill_overdue(worker);
    } else if (connection->input_state == INPUT_PAUSED || worker->stream.resumed) {
        /* Its last messages wait for a client, or did until now; that has a time limit of its
         * own. */
        await_output_end(worker);
    } else {
        if (worker->program.dialer != NULL)
            log_debug(worker_log(worker), worker_context(worker), "not waiting for its end");
        else
            log_warn(worker_log(worker), worker_context(worker),
                     "exited, but another process holds its stdout; not waiting for it");
        child_kill_orphans(&worker->child);
        connection_close(connection);
        end_output(worker);
        finish_if_over(worker);
    }
}

static void stopping_stop(struct worker *worker)
{
    bool waits = worker->after_end == WORKER_WAITS_FOR_CLIENT || worker->awaits_exit;

    worker->after_end = WORKER_STAYS_STOPPED;
    if (waits && worker->child.signalled == CHILD_NOT_SIGNALLED && worker->child.pid > 0)
        terminate(worker);
}

static void stopped_deadline(struct worker *worker)
{
    worker->after_end = WORKER_RESTARTS; /* a failing start is tried again, after a delay */
    worker->stream.endpoint.peer.rest = PEER_AWAKE;
    if (worker_start(worker) == STDIO_BUS_OK)
        return;
    log_error(worker_log(worker), worker_context(worker), "cannot start %s: %s",
              program_name(worker), strerror(errno));
    plan_restart(worker);
    worker->host->finished(worker);
}

static void stopped_stop(struct worker *worker)
{
    worker->after_end = WORKER_STAYS_STOPPED;
    worker_stop_deadline(worker);
}

typedef void worker_action(struct worker *worker);

/* An event without an action does not concern that state. */
/* clang-format off */
static worker_action *const actions[WORKER_FAILED + 1][WORKER_HURRY + 1] = {
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
        [WORKER_HURRY] = stopping_hurry,
    },
    [WORKER_STOPPED] = {
        [WORKER_DEADLINE] = stopped_deadline,
        [WORKER_STOP] = stopped_stop,
        [WORKER_RETIRE] = stopped_retire,
    },
};
/* clang-format on */

void worker_handle(struct worker *worker, enum worker_event event)
{
    worker_action *action = actions[worker->state][event];

    if (action != NULL)
        action(worker);
}

/* --- worker streams --- */

void worker_set_context(struct worker *worker)
{
    char *to = worker->stream.endpoint.context, pid[32] = "";
    size_t size = sizeof worker->stream.endpoint.context, len;

    if (worker->child.pid > 0)
        snprintf(pid, sizeof pid, " pid=%ld", (long)worker->child.pid);
    len = (size_t)snprintf(to, size, "worker=%u%s pool=", worker->number, pid);
    log_quote(to + len, size - len, worker->pool_id);
}

int worker_prepare_errors(struct worker *worker)
{
    if (!worker->program.pipes_stderr || worker->errors != NULL)
        return STDIO_BUS_OK;
    worker->errors = stderr_reader_create(worker->transport->loop, worker_log(worker),
                                          worker_context(worker));
    return worker->errors != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int worker_open_streams(struct worker *worker, const struct process *process)
{
    struct stream_options options = worker->options;
    int error;

    options.handler = worker->host->stream;
    options.fd_in = process->fd_from;
    options.fd_out = process->fd_to;
    if (process->fd_err >= 0 &&
        stderr_reader_begin(worker->errors, process->fd_err) != STDIO_BUS_OK) {
        error = errno;
        close(process->fd_err);
        goto fail;
    }
    if (stream_open(&worker->stream, worker->transport, &options) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    error = errno;
    if (worker->errors != NULL)
        stderr_reader_end(worker->errors);
fail:
    close(process->fd_from);
    close(process->fd_to);
    errno = error;
    return STDIO_BUS_ERR;
}

void worker_close_streams(struct worker *worker)
{
    connection_close(&worker->stream.connection);
    if (worker->errors != NULL) {
        stderr_reader_drain(worker->errors);
        stderr_reader_end(worker->errors);
    }
    worker_set_context(worker);
}

/* --- the archive --- */

#define PID_LAST INT32_MAX

/* The result of exec may still be awaited. */
static void archive_child(struct archive *archive, struct worker *worker)
{
    struct child *child = &worker->child;

    child->pid = (pid_t)archive_number(archive, (uint64_t)child->pid, PID_LAST);
    ARCHIVE_ENUM(archive, child->signalled, CHILD_KILLED);
    ARCHIVE_INTEGER(archive, child->status);
    child->orphans = (pid_t)archive_number(archive, (uint64_t)child->orphans, PID_LAST);
    timer_archive(archive, child->loop, &child->orphans_deadline);
    archive_fd(archive, &child->fd_exec);
    if (archive_loads(archive) && child->fd_exec >= 0 &&
        stdio_bus_event_loop_add(child->loop, child->fd_exec, STDIO_BUS_EVENT_READ, exec_readable,
                                 worker) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

/* The policy is that of the configuration, which is the same. */
static void archive_restart(struct archive *archive, struct restart_policy *restart)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct restart_policy, next, count, streak, last_start_ms),
    };
    unsigned max = restart->max;

    ARCHIVE_INTEGER(archive, max);
    archive_expect(archive, max == restart->max, "max_restarts is another one");
    archive_bytes(archive, restart->times, restart->max * sizeof *restart->times);
    ARCHIVE_FIELDS(archive, restart, fields);
    archive_expect(archive, restart->count <= max && (max == 0 || restart->next < max),
                   "the restarts of a worker are out of range");
}

/* A worker that has not been started yet has none, and a reload may have changed the key since. */
static void archive_errors(struct archive *archive, struct worker *worker)
{
    if (!archive_present(archive, worker->errors != NULL))
        return;
    if (worker->errors == NULL)
        worker->errors = stderr_reader_create(worker->transport->loop, worker->transport->log,
                                              worker->stream.endpoint.context);
    if (archive_made(archive, worker->errors != NULL))
        stderr_reader_archive(archive, worker->errors);
}

void worker_archive(struct archive *archive, struct worker *worker,
                    const struct stream_handler *handler)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct worker, number, failures_before, starts, restarts, carried,
                         idle_frames, idle_since_ms, sleeps, halt_until_ms),
        ARCHIVE_CHOICE(struct worker, state, WORKER_FAILED),
        ARCHIVE_CHOICE(struct worker, after_end, WORKER_STAYS_STOPPED),
        ARCHIVE_CHOICE(struct worker, halt, HALT_END),
        ARCHIVE_FLAGS(struct worker, executed, output_ended, awaits_exit, answered, hurried,
                      probe_sent, refused, restart_asked),
    };
    struct stdio_bus_event_loop *loop = worker->transport->loop;
    struct stream_options options = worker->options;

    options.handler = handler;
    archive_mark(archive, "worker");
    ARCHIVE_FIELDS(archive, worker, fields);
    archive_errors(archive, worker);
    archive_child(archive, worker);
    archive_restart(archive, &worker->restart);
    timer_archive(archive, loop, &worker->deadline);
    timer_archive(archive, loop, &worker->replay);
    timer_archive(archive, loop, &worker->probe);
    timer_archive(archive, loop, &worker->idle);
    timer_archive(archive, loop, &worker->halting);
    stream_archive(archive, &worker->stream, worker->transport, &options);
}
