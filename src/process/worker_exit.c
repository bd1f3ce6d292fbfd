#include "build_config.h"

#include "process/worker.h"

#include <signal.h>

#include "process/process.h"
#include "process/worker_internal.h"

/* What is left of the process group of a process that has exited long ago. */
void worker_kill_orphans(void *user_data)
{
    struct worker *worker = user_data;

    if (worker->orphans > 0)
        process_signal_group(worker->orphans, SIGKILL);
    worker->orphans = 0;
}

static void tell_exit(struct worker *worker, int status)
{
    char text[80];

    process_status_text(text, sizeof text, status);
    if (worker->stopping || worker->retiring)
        log_info(log_of(worker), context(worker), "%s", text);
    else
        log_warn(log_of(worker), context(worker), "%s", text);
}

void worker_check_exit(struct worker *worker)
{
    pid_t pid = worker->pid;
    int status;

    if (pid == 0 || !process_reap(pid, &status))
        return;
    /* The child's word comes before its end, also when the signal came first. */
    worker_check_exec(worker);
    tell_exit(worker, status);
    worker->pid = 0;
    worker_kill_orphans(worker); /* those of the process before it have had their time */
    /* Its children must not outlive it. While one does, the group's number cannot be used again. */
    if (process_signal_group(pid, SIGTERM)) {
        worker->orphans = pid;
        start_timer(worker, &worker->orphans_deadline, GRACE_MS);
    }
    worker_handle(worker, WORKER_EXITED);
}

void worker_kill(struct worker *worker)
{
    if (worker->pid > 0) {
        worker->killed = true;
        process_signal_group(worker->pid, SIGKILL);
    }
    worker_kill_orphans(worker);
}

void worker_end_input(struct worker *worker)
{
    if (worker->retiring && worker->endpoint.connection.output.bytes == 0)
        connection_close_output(&worker->endpoint.connection);
}
