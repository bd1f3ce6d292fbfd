/* A started process: the result of its exec, signals, its exit, and the rest of its process group,
 * which must not outlive it for long. */
#ifndef STDIO_BUS_PROCESS_CHILD_H
#define STDIO_BUS_PROCESS_CHILD_H

#include "event/event_loop.h"
#include "process/process.h"

enum child_signalled { CHILD_NOT_SIGNALLED, CHILD_TERMINATED, CHILD_KILLED };

struct child {
    struct stdio_bus_event_loop *loop;
    pid_t pid; /* 0: none, or reaped */
    enum child_signalled signalled;
    int status;  /* of the last process that was reaped, as from waitpid */
    int fd_exec; /* -1: the result of exec is known */
    int fd_exit; /* child_watch: readable once the process has exited; -1: none */
    timer_fn *exited;
    void *watcher;
    struct timer exit_check; /* started where there is no fd_exit */
    pid_t orphans; /* the process group of a process that was reaped; 0: no member is left */
    struct timer orphans_deadline;
};

/* Prepares a zeroed child: no process. */
void child_init(struct child *child, struct stdio_bus_event_loop *loop);

/* Starts the program. `exec_readable` is called once child_exec_result has something to say.
 * fd_from, fd_to and fd_err of *process belong to the caller then. STDIO_BUS_ERR with errno set,
 * and then nothing is left. */
int child_start(struct child *child, const struct program *program,
                stdio_bus_event_fn *exec_readable, void *user_data, struct process *process);

/* Until the process is reaped, calls `exited` when it may have exited: for a program that does not
 * catch SIGCHLD. */
void child_watch(struct child *child, timer_fn *exited, void *user_data);

/* As process_exec_result; STDIO_BUS_EAGAIN also after the result was given once. */
int child_exec_result(struct child *child, int *error);

/* Signals the process group: SIGTERM, SIGKILL. */
void child_terminate(struct child *child);
void child_kill(struct child *child);

/* Reaps the process if it has exited; *status as from waitpid. The rest of its group gets SIGTERM,
 * and SIGKILL after grace_ms. False: it runs, or there is none. */
bool child_reap(struct child *child, int *status, int64_t grace_ms);

/* Kills the rest of the group of a process that was reaped. */
void child_kill_orphans(struct child *child);

/* Kills what is left, and waits for it unless it was killed already: then it hangs in the
 * kernel. */
void child_destroy(struct child *child);

#endif
