/* Child processes: spawning, signalling and reaping (spec 3.3, 7.1.1). */
#ifndef STDIO_BUS_PROCESS_PROCESS_H
#define STDIO_BUS_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct process {
    pid_t pid;   /* 0: it was dialled */
    int fd_to;   /* write end of its stdin */
    int fd_from; /* read end of its stdout */
    int fd_err;  /* read end of its stderr, non-blocking; -1: that is the daemon's */
    int fd_exec; /* for process_exec_result: EOF when the program runs, or the errno of exec */
};

/* Where no program is started: the process is the peer of a connection. */
struct dialer {
    int (*dial)(void *user_data);        /* a connected socket, the caller's; -1 with errno set */
    int (*dial_output)(void *user_data); /* the same for what is written to, after `dial`; NULL:
                                          * the socket that was dialled */
    const char *(*reason)(void *user_data); /* why the last peer is gone; NULL: the peer is the only
                                             * one there will be, a daemon */
    void *user_data;
};

struct program {
    char *const *argv;
    const char *file;            /* what is executed; NULL: argv[0] */
    const char *name;            /* for the log; NULL: argv[0] */
    char *const *envp;           /* NULL: the daemon's environment */
    const char *cwd;             /* NULL: the daemon's working directory */
    const struct rlimit *nofile; /* the descriptor limit; NULL: the daemon's */
    bool no_new_privs;           /* no program that it runs gains rights (Linux) */
    bool no_core;                /* it leaves no core file */
    bool pipes_stderr;           /* its stderr is a pipe, not the daemon's stderr */
    bool of_guest;               /* its parent is a program that the bus is a guest of: SIGCHLD is
                                  * not caught, and the thread that starts it may end before it */
    const struct dialer *dialer; /* instead of all this; NULL: none */
};

/* Starts a program in a process group of its own, with pipes at 0, 1 and perhaps 2, no
 * other descriptor, default signal dispositions and an empty mask; on Linux the program dies with
 * the daemon. A command without a slash is looked up in the PATH that the program gets, a relative
 * one in its working directory. The descriptors belong to the caller and are close-on-exec.
 * STDIO_BUS_ERR with errno set; then nothing is left. With a dialer, the descriptors are two of one
 * socket, and the result of exec is a success. */
int process_spawn(struct process *process, const struct program *program);

/* The result of exec. STDIO_BUS_OK: the program runs. STDIO_BUS_ERR: exec or the change to the
 * working directory failed with the errno *error. STDIO_BUS_EAGAIN: not known yet. fd_exec is
 * non-blocking. */
int process_exec_result(int fd_exec, int *error);

/* A descriptor that is readable once the child has exited, the caller's. -1 with errno set: the
 * system has none. */
int process_watch(pid_t pid);

/* Reaps the child if it has exited; *status as from waitpid. False: the child still runs. */
bool process_reap(pid_t pid, int *status);

/* Signals a whole process group. False: the group has no member left. */
bool process_signal_group(pid_t group, int signo);

/* Kills a child and its group with SIGKILL, and reaps the child. A child that cannot be killed
 * (another user's) is not waited for. */
void process_destroy(pid_t pid);

/* A child of this process that has exited and is not reaped yet, whoever started it. 0: there is
 * none. */
pid_t process_exited(void);

/* "exited with status 3", "was killed by SIGKILL". Returns `to`. */
const char *process_status_text(char *to, size_t size, int status);

#endif
