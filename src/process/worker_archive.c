#include "build_config.h"

#include "process/worker_archive.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "event/timer_archive.h"
#include "transport/connection_archive.h"

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
    if (!archive->saves && child->fd_exec >= 0 &&
        stdio_bus_event_loop_add(child->loop, child->fd_exec, STDIO_BUS_EVENT_READ,
                                 worker_exec_readable, worker) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

/* The policy is that of the configuration, which is the same. */
static void archive_restart(struct archive *archive, struct restart_policy *restart)
{
    unsigned max = restart->max;

    ARCHIVE_INTEGER(archive, max);
    archive_expect(archive, max == restart->max, "max_restarts is another one");
    for (unsigned i = 0; i < restart->max && archive_ok(archive); i++)
        ARCHIVE_INTEGER(archive, restart->times[i]);
    ARCHIVE_INTEGER(archive, restart->next);
    ARCHIVE_INTEGER(archive, restart->count);
    archive_expect(archive, restart->count <= max && (max == 0 || restart->next < max),
                   "the restarts of a worker are out of range");
    ARCHIVE_INTEGER(archive, restart->streak);
    ARCHIVE_INTEGER(archive, restart->last_start_ms);
}

/* A worker that has not been started yet has none, and a reload may have changed the key since. */
static void archive_errors(struct archive *archive, struct worker *worker)
{
    bool has_errors = worker->errors != NULL;

    archive_flag(archive, &has_errors);
    if (has_errors && worker->errors == NULL)
        worker->errors = stderr_reader_create(worker->transport->loop, worker->transport->log,
                                              worker->stream.endpoint.context);
    if (has_errors && worker->errors == NULL)
        archive_fail(archive, "out of memory");
    if (has_errors && archive_ok(archive))
        stderr_reader_archive(archive, worker->errors);
}

void worker_archive(struct archive *archive, struct worker *worker,
                    const struct stream_handler *handler)
{
    struct stream_options options = worker->options;

    options.handler = handler;
    archive_mark(archive, "worker");
    ARCHIVE_INTEGER(archive, worker->number);
    ARCHIVE_ENUM(archive, worker->state, WORKER_FAILED);
    archive_flag(archive, &worker->executed);
    archive_flag(archive, &worker->output_ended);
    archive_flag(archive, &worker->awaits_exit);
    archive_flag(archive, &worker->answered);
    ARCHIVE_INTEGER(archive, worker->failures_before);
    archive_errors(archive, worker);
    archive_flag(archive, &worker->hurried);
    ARCHIVE_ENUM(archive, worker->after_end, WORKER_STAYS_STOPPED);
    archive_child(archive, worker);
    archive_restart(archive, &worker->restart);
    timer_archive(archive, worker->transport->loop, &worker->deadline);
    timer_archive(archive, worker->transport->loop, &worker->replay);
    timer_archive(archive, worker->transport->loop, &worker->probe);
    archive_flag(archive, &worker->probe_sent);
    archive_flag(archive, &worker->refused);
    ARCHIVE_INTEGER(archive, worker->starts);
    ARCHIVE_INTEGER(archive, worker->restarts);
    traffic_archive(archive, &worker->carried);
    archive_flag(archive, &worker->restart_asked);
    stream_archive(archive, &worker->stream, worker->transport, &options);
}
