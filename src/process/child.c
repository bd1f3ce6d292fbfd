#include "build_config.h"

#include "process/child.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"

/* How often an exit is looked for, where no descriptor shows it. */
#define EXIT_CHECK_MS 100

static void orphans_expired(void *user_data)
{
    child_kill_orphans(user_data);
}

/* --- exits without SIGCHLD --- */

static void exit_readable(void *user_data, unsigned events)
{
    struct child *child = user_data;

    (void)events;
    child->exited(child->watcher);
}

static void check_exit(void *user_data)
{
    struct child *child = user_data;

    stdio_bus_event_loop_start_timer(child->loop, &child->exit_check, EXIT_CHECK_MS);
    child->exited(child->watcher);
}

void child_watch(struct child *child, timer_fn *exited, void *user_data)
{
    child->exited = exited;
    child->watcher = user_data;
    child->fd_exit = process_watch(child->pid);
    if (child->fd_exit >= 0 &&
        stdio_bus_event_loop_add(child->loop, child->fd_exit, STDIO_BUS_EVENT_READ, exit_readable,
                                 child) == STDIO_BUS_OK)
        return;
    if (child->fd_exit >= 0)
        close(child->fd_exit);
    child->fd_exit = -1;
    stdio_bus_event_loop_start_timer(child->loop, &child->exit_check, EXIT_CHECK_MS);
}

static void end_watch(struct child *child)
{
    stdio_bus_event_loop_stop_timer(child->loop, &child->exit_check);
    if (child->fd_exit < 0)
        return;
    stdio_bus_event_loop_remove(child->loop, child->fd_exit);
    close(child->fd_exit);
    child->fd_exit = -1;
}

/* --- from its start to its end --- */

void child_init(struct child *child, struct stdio_bus_event_loop *loop)
{
    child->loop = loop;
    child->fd_exec = child->fd_exit = -1;
    timer_init(&child->exit_check, check_exit, child);
    timer_init(&child->orphans_deadline, orphans_expired, child);
}

int child_start(struct child *child, const struct program *program,
                stdio_bus_event_fn *exec_readable, void *user_data, struct process *process)
{
    int error;

    if (process_spawn(process, program) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (stdio_bus_event_loop_add(child->loop, process->fd_exec, STDIO_BUS_EVENT_READ, exec_readable,
                                 user_data) == STDIO_BUS_OK) {
        child->pid = process->pid;
        child->signalled = CHILD_NOT_SIGNALLED;
        child->fd_exec = process->fd_exec;
        return STDIO_BUS_OK;
    }
    error = errno;
    if (process->pid > 0)
        process_destroy(process->pid);
    close(process->fd_exec);
    close(process->fd_from);
    close(process->fd_to);
    if (process->fd_err >= 0)
        close(process->fd_err);
    errno = error;
    return STDIO_BUS_ERR;
}

static void close_exec(struct child *child)
{
    if (child->fd_exec < 0)
        return;
    stdio_bus_event_loop_remove(child->loop, child->fd_exec);
    close(child->fd_exec);
    child->fd_exec = -1;
}

int child_exec_result(struct child *child, int *error)
{
    int result = STDIO_BUS_EAGAIN;

    if (child->fd_exec >= 0)
        result = process_exec_result(child->fd_exec, error);
    if (result != STDIO_BUS_EAGAIN)
        close_exec(child);
    return result;
}

void child_terminate(struct child *child)
{
    child->signalled = CHILD_TERMINATED;
    process_signal_group(child->pid, SIGTERM);
}

void child_kill(struct child *child)
{
    child->signalled = CHILD_KILLED;
    process_signal_group(child->pid, SIGKILL);
}

bool child_reap(struct child *child, int *status, int64_t grace_ms)
{
    pid_t pid = child->pid;

    if (pid == 0 || !process_reap(pid, status))
        return false;
    end_watch(child);
    child->status = *status;
    child->pid = 0;
    child_kill_orphans(child); /* those of the process before it have had their time */
    /* While the group has a member, its number cannot be used again. */
    if (process_signal_group(pid, SIGTERM)) {
        child->orphans = pid;
        stdio_bus_event_loop_start_timer(child->loop, &child->orphans_deadline, grace_ms);
    }
    return true;
}

void child_kill_orphans(struct child *child)
{
    if (child->orphans > 0)
        process_signal_group(child->orphans, SIGKILL);
    child->orphans = 0;
    stdio_bus_event_loop_stop_timer(child->loop, &child->orphans_deadline);
}

void child_destroy(struct child *child)
{
    if (child->pid > 0 && child->signalled != CHILD_KILLED)
        process_destroy(child->pid);
    child->pid = 0;
    end_watch(child);
    child_kill_orphans(child);
    close_exec(child);
}
