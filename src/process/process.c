#include "build_config.h"

#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_PRCTL
#include <sys/prctl.h>
#endif
#ifdef HAVE_CLOSE_RANGE
#include <sys/syscall.h>
#endif

#include "base/error.h"
#include "event/signals.h"

extern char **environ;

#define EXIT_EXEC_FAILED 127 /* as the shell has it */
#define DESCRIPTORS_MAX 65536
#define PIPE_BYTES 131072
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U /* not every libc has a name for it */
#endif

struct pipe_ends {
    int read_end, write_end; /* -1: closed */
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipe(struct pipe_ends *ends)
{
    close_end(&ends->read_end);
    close_end(&ends->write_end);
}

/* A descriptor below 3 would be overwritten when the child gets its 0 and 1. */
static int lift(int *fd)
{
    int lifted;

    if (*fd > STDERR_FILENO)
        return STDIO_BUS_OK;
    lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (lifted < 0)
        return STDIO_BUS_ERR;
    close(*fd);
    *fd = lifted;
    return STDIO_BUS_OK;
}

static int open_pipe(struct pipe_ends *ends)
{
    int fds[2];
#ifdef HAVE_PIPE2
    int status = pipe2(fds, O_CLOEXEC);
#else
    int status = pipe(fds);
#endif

    if (status < 0)
        return STDIO_BUS_ERR;
#ifndef HAVE_PIPE2
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
#endif
    ends->read_end = fds[0];
    ends->write_end = fds[1];
    if (lift(&ends->read_end) != STDIO_BUS_OK || lift(&ends->write_end) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    return STDIO_BUS_OK;
}

/* Whatever our own parent left open without close-on-exec must not reach the worker. */
static void close_others_on_exec(void)
{
    long max;
    int fd;

#ifdef HAVE_CLOSE_RANGE
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
#endif
    max = sysconf(_SC_OPEN_MAX);
    if (max < 0 || max > DESCRIPTORS_MAX)
        max = DESCRIPTORS_MAX;
    for (fd = STDERR_FILENO + 1; fd < (int)max; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void die_with_parent(pid_t parent)
{
#ifdef HAVE_PRCTL
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(EXIT_EXEC_FAILED); /* it died before we asked */
}

struct child_setup {
    const struct program *program;
    pid_t parent;
    struct pipe_ends in, out, exec;
};

static void run_child(const struct child_setup *setup)
{
    const struct program *program = setup->program;
    int error;

    if (setpgid(0, 0) < 0)
        goto fail; /* signals to the group would not reach it */
    die_with_parent(setup->parent);
    if (dup2(setup->in.read_end, STDIN_FILENO) < 0 || dup2(setup->out.write_end, STDOUT_FILENO) < 0)
        goto fail;
    close_others_on_exec();
    if (program->nofile != NULL)
        setrlimit(RLIMIT_NOFILE, program->nofile);
    if (signals_reset_in_child() != STDIO_BUS_OK)
        goto fail; /* it could not be asked to end */
    if (program->cwd != NULL && chdir(program->cwd) < 0)
        goto fail;
    if (program->envp != NULL)
        environ = (char **)(void *)program->envp; /* execvp takes PATH from there */
    execvp(program->argv[0], program->argv);
fail:
    error = errno;
    if (write(setup->exec.write_end, &error, sizeof error) != (ssize_t)sizeof error)
        _exit(EXIT_EXEC_FAILED - 1);
    _exit(EXIT_EXEC_FAILED);
}

/* 64 KiB, as pipes are on Linux, are full with one long message: the next has to wait until the
 * worker comes to read. What the system does not grant is done without. */
static void widen(int fd)
{
#ifdef F_SETPIPE_SZ
    (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
#else
    (void)fd;
#endif
}

static pid_t fork_child(const struct child_setup *setup)
{
    sigset_t saved;
    pid_t pid;
    int error;

    /* Between fork and exec the child has our handlers: a signal caught there would be written to
     * our own self-pipe, and be lost to the child. */
    if (signals_block_all(&saved) != STDIO_BUS_OK)
        return -1;
    pid = fork();
    if (pid == 0)
        run_child(setup);
    error = errno;
    signals_restore(&saved);
    errno = error;
    return pid;
}

int process_spawn(struct process *process, const struct program *program)
{
    struct child_setup setup = {program, getpid(), {-1, -1}, {-1, -1}, {-1, -1}};
    int error;

    if (open_pipe(&setup.in) != STDIO_BUS_OK || open_pipe(&setup.out) != STDIO_BUS_OK ||
        open_pipe(&setup.exec) != STDIO_BUS_OK)
        goto fail;
    if (fcntl(setup.exec.read_end, F_SETFL, O_NONBLOCK) < 0)
        goto fail;
    process->pid = fork_child(&setup);
    if (process->pid < 0)
        goto fail;
    setpgid(process->pid, process->pid); /* whoever comes first, child or we */
    close_end(&setup.in.read_end);
    close_end(&setup.out.write_end);
    close_end(&setup.exec.write_end);
    widen(setup.in.write_end);
    widen(setup.out.read_end);
    process->fd_to = setup.in.write_end;
    process->fd_from = setup.out.read_end;
    process->fd_exec = setup.exec.read_end;
    return STDIO_BUS_OK;

fail:
    error = errno;
    close_pipe(&setup.in);
    close_pipe(&setup.out);
    close_pipe(&setup.exec);
    errno = error;
    return STDIO_BUS_ERR;
}

int process_exec_result(int fd_exec, int *error)
{
    ssize_t got = read(fd_exec, error, sizeof *error);

    if (got == 0)
        return STDIO_BUS_OK;
    if (got == (ssize_t)sizeof *error)
        return STDIO_BUS_ERR;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return STDIO_BUS_EAGAIN;
    *error = got < 0 ? errno : EIO;
    return STDIO_BUS_ERR;
}

bool process_reap(pid_t pid, int *status)
{
    pid_t reaped;

    do
        reaped = waitpid(pid, status, WNOHANG);
    while (reaped < 0 && errno == EINTR);
    if (reaped < 0)
        *status = 0; /* ECHILD: somebody else reaped it; it is gone all the same */
    return reaped != 0;
}

bool process_signal_group(pid_t group, int signo)
{
    return group > 0 && (kill(-group, signo) == 0 || errno == EPERM);
}

void process_destroy(pid_t pid)
{
    process_signal_group(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

const char *process_status_text(char *to, size_t size, int status)
{
    if (WIFSIGNALED(status))
        snprintf(to, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(to, size, "exited with status %d", WEXITSTATUS(status));
    return to;
}
