/* Child processes: spawning, signalling and reaping (spec 3.3, 7.1.1). */
#ifndef STDIO_BUS_PROCESS_PROCESS_H
#define STDIO_BUS_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    int fd_to;   /* write end of its stdin */
    int fd_from; /* read end of its stdout */
    int fd_exec; /* ends without a byte when the program runs, or yields the errno of exec */
};

struct program {
    char *const *argv;
    char *const *envp;           /* NULL: our environment */
    const char *cwd;             /* NULL: our working directory */
    const struct rlimit *nofile; /* the descriptor limit; NULL: ours */
};

/* Starts a program in a process group of its own, with pipes at 0 and 1, our own 2, nothing else
 * inherited, default signal dispositions and an empty mask; on Linux it dies with us. A
 * command without a slash is looked up in the PATH that the program gets, a relative one in its
 * working directory. The descriptors are the caller's, close-on-exec. STDIO_BUS_ERR with errno set,
 * and then nothing is left. */
int process_spawn(struct process *process, const struct program *program);

/* What exec said: STDIO_BUS_OK, it runs; STDIO_BUS_ERR, it could not, or the working directory is
 * not to be had, *error is errno's value;
 * STDIO_BUS_EAGAIN, not known yet. fd_exec is non-blocking. */
int process_exec_result(int fd_exec, int *error);

/* Reaps the child if it has exited; *status as from waitpid. False: it still runs. */
bool process_reap(pid_t pid, int *status);

/* Signals a whole process group. False: it has no member (left). */
bool process_signal_group(pid_t group, int signo);

/* Kills a child with its group, and waits until it is gone, which it cannot refuse. */
void process_destroy(pid_t pid);

/* "exited with status 3", "was killed by signal 9 (Killed)". Returns `to`. */
const char *process_status_text(char *to, size_t size, int status);

#endif
