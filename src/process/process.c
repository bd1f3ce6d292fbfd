#include "build_config.h"

#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(HAVE_PRCTL) || defined(HAVE_NO_NEW_PRIVS)
#include <sys/prctl.h>
#endif
#ifdef HAVE_PIDFD_OPEN
#include <sys/syscall.h>
#endif
#ifdef HAVE_EVFILT_PROC
#include <sys/event.h>
#include <sys/time.h>
#endif

#include "base/descriptor.h"
#include "base/error.h"
#include "base/slice.h"
#include "event/signals.h"

extern char **environ;

#define EXIT_EXEC_FAILED 127 /* as the shell has it */
#define PIPE_BYTES 131072
#define FILE_MAX 4096

enum { READ_END, WRITE_END };
enum { IN, OUT, ERR, EXEC, PIPES };

/* Moves a descriptor below 3, which would be overwritten when the child gets its 0 and 1. */
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

static int open_pipe(int ends[2])
{
    if (descriptor_open_pipe(ends, 0) != STDIO_BUS_OK || lift(&ends[READ_END]) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    return lift(&ends[WRITE_END]);
}

/* What the pool asks for to limit its workers. Failing that, the program is not run. */
static int confine(const struct program *program)
{
    const struct rlimit none = {0, 0};

    if (program->no_core && setrlimit(RLIMIT_CORE, &none) < 0)
        return STDIO_BUS_ERR;
#ifdef HAVE_NO_NEW_PRIVS
    if (program->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return STDIO_BUS_ERR;
#endif
    return STDIO_BUS_OK;
}

static bool is_text(const char *path)
{
    static const char spaces[] = "\t\n\v\f\r";
    char start[256];
    int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, start, sizeof start) : -1;

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < len; i++) {
        if ((unsigned char)start[i] < ' ' && memchr(spaces, start[i], sizeof spaces - 1) == NULL)
            return false;
    }
    return len > 0;
}

/* execvp hands to a shell what the system cannot execute. For a script that does not name its
 * interpreter that is right, but not for a program of another machine: its bytes would be commands.
 * Returns with errno set. */
static void execute_path(const char *path, char *const *argv)
{
    execv(path, argv);
    if (errno != ENOEXEC)
        return;
    if (is_text(path))
        execvp(path, argv); /* with a slash: it looks nowhere else */
    errno = ENOEXEC;
}

/* The next directory of PATH, with the name. False: it is too long. */
static bool write_candidate(char to[FILE_MAX], struct slice directory, const char *name)
{
    size_t len = strlen(name) + 1;

    if (directory.len == 0)
        directory = slice_of_text(".");
    if (directory.len + 1 + len > FILE_MAX)
        return false;
    memcpy(to, directory.data, directory.len);
    to[directory.len] = '/';
    memcpy(to + directory.len + 1, name, len);
    return true;
}

static void execute(const char *name, char *const *argv)
{
    const char *text = getenv("PATH");
    struct slice rest = slice_of_text(text != NULL ? text : ""), directory;
    char candidate[FILE_MAX];
    bool is_denied = false, goes_on = true;

    if (strchr(name, '/') != NULL) {
        execute_path(name, argv);
        return;
    }
    if (text == NULL) { /* the system's own directories */
        execvp(name, argv);
        return;
    }
    while (goes_on) {
        goes_on = slice_cut(&rest, ':', &directory);
        if (!write_candidate(candidate, directory, name))
            continue;
        execute_path(candidate, argv);
        is_denied |= errno == EACCES;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            return;
    }
    errno = is_denied ? EACCES : ENOENT;
}

struct child_setup {
    const struct program *program;
    pid_t parent;
    int pipes[PIPES][2]; /* ends that are not open are -1 */
};

static void run_child(const struct child_setup *setup)
{
    const struct program *program = setup->program;
    int error;

    if (setpgid(0, 0) < 0)
        goto fail; /* signals to the group would not reach the child */
#ifdef HAVE_PRCTL
    if (!program->of_guest) /* it is sent when the thread ends */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != setup->parent)
        _exit(EXIT_EXEC_FAILED); /* the parent died before the request */
    if (dup2(setup->pipes[IN][READ_END], STDIN_FILENO) < 0 ||
        dup2(setup->pipes[OUT][WRITE_END], STDOUT_FILENO) < 0 ||
        (program->pipes_stderr && dup2(setup->pipes[ERR][WRITE_END], STDERR_FILENO) < 0))
        goto fail;
    /* The daemon's parent may have left descriptors open without close-on-exec. */
    descriptor_close_from(STDERR_FILENO + 1, true);
    if (program->nofile != NULL)
        setrlimit(RLIMIT_NOFILE, program->nofile);
    if (confine(program) != STDIO_BUS_OK)
        goto fail;
    if (signals_reset_in_child() != STDIO_BUS_OK)
        goto fail; /* SIGTERM would not reach the child */
    if (program->cwd != NULL && chdir(program->cwd) < 0)
        goto fail;
    if (program->envp != NULL)
        environ = (char **)(void *)program->envp; /* PATH is that of the child */
    execute(program->file != NULL ? program->file : program->argv[0], program->argv);
fail:
    error = errno;
    if (write(setup->pipes[EXEC][WRITE_END], &error, sizeof error) != (ssize_t)sizeof error)
        _exit(EXIT_EXEC_FAILED - 1);
    _exit(EXIT_EXEC_FAILED);
}

/* One long message fills a pipe of 64 KiB, the default of Linux, and the next message waits until
 * the worker reads. A system that refuses leaves the pipe as it is. */
static void widen(int fd)
{
#ifdef F_SETPIPE_SZ
    (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
#else
    (void)fd;
#endif
}

/* The pipe for the result of exec is at its end: the peer runs. */
static int dial(struct process *process, const struct dialer *dialer)
{
    int ends[2] = {-1, -1}, fd = dialer->dial(dialer->user_data);

    if (fd < 0)
        return STDIO_BUS_ERR;
    process->fd_to = dialer->dial_output != NULL ? dialer->dial_output(dialer->user_data)
                                                 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (process->fd_to < 0 || descriptor_open_pipe(ends, O_NONBLOCK) != STDIO_BUS_OK) {
        if (process->fd_to >= 0)
            descriptor_close(process->fd_to);
        descriptor_close(fd);
        return STDIO_BUS_ERR;
    }
    close(ends[WRITE_END]);
    process->pid = 0;
    process->fd_from = fd;
    process->fd_err = -1;
    process->fd_exec = ends[READ_END];
    return STDIO_BUS_OK;
}

static int open_stderr(int ends[2])
{
    if (open_pipe(ends) != STDIO_BUS_OK || fcntl(ends[READ_END], F_SETFL, O_NONBLOCK) < 0)
        return STDIO_BUS_ERR;
    return STDIO_BUS_OK;
}

int process_spawn(struct process *process, const struct program *program)
{
    struct child_setup setup = {
        .program = program, .parent = getpid(), .pipes = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}};
    int(*pipes)[2] = setup.pipes;

    if (program->dialer != NULL)
        return dial(process, program->dialer);
    if (open_pipe(pipes[IN]) != STDIO_BUS_OK || open_pipe(pipes[OUT]) != STDIO_BUS_OK ||
        open_pipe(pipes[EXEC]) != STDIO_BUS_OK ||
        fcntl(pipes[EXEC][READ_END], F_SETFL, O_NONBLOCK) < 0 ||
        (program->pipes_stderr && open_stderr(pipes[ERR]) != STDIO_BUS_OK))
        goto fail;
    process->pid = signals_fork();
    if (process->pid == 0)
        run_child(&setup);
    if (process->pid < 0)
        goto fail;
    setpgid(process->pid, process->pid); /* child and parent both do it; one is first */
    close(pipes[IN][READ_END]);
    close(pipes[OUT][WRITE_END]);
    close(pipes[EXEC][WRITE_END]);
    if (program->pipes_stderr)
        close(pipes[ERR][WRITE_END]);
    process->fd_err = pipes[ERR][READ_END];
    process->fd_to = pipes[IN][WRITE_END];
    process->fd_from = pipes[OUT][READ_END];
    process->fd_exec = pipes[EXEC][READ_END];
    widen(process->fd_to);
    widen(process->fd_from);
    return STDIO_BUS_OK;

fail:
    for (int i = 0; i < PIPES; i++)
        descriptor_close_pipe(pipes[i]);
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

#if defined HAVE_PIDFD_OPEN
int process_watch(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}
#elif defined HAVE_EVFILT_PROC
int process_watch(pid_t pid)
{
    struct kevent exits = {.ident = (uintptr_t)pid, .filter = EVFILT_PROC};
    int fd = kqueue();

    exits.flags = EV_ADD;
    exits.fflags = NOTE_EXIT;
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && kevent(fd, &exits, 1, NULL, 0, NULL) == 0)
        return fd;
    if (fd >= 0)
        descriptor_close(fd);
    return -1;
}
#else
int process_watch(pid_t pid)
{
    (void)pid;
    errno = ENOSYS;
    return -1;
}
#endif

bool process_reap(pid_t pid, int *status)
{
    pid_t reaped;

    do
        reaped = waitpid(pid, status, WNOHANG);
    while (reaped < 0 && errno == EINTR);
    if (reaped < 0)
        *status = 0; /* ECHILD: another part of the program has reaped the child */
    return reaped != 0;
}

pid_t process_exited(void)
{
    siginfo_t child = {.si_pid = 0};

    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) < 0)
        return 0;
    return child.si_pid;
}

bool process_signal_group(pid_t group, int signo)
{
    return group > 0 && (kill(-group, signo) == 0 || errno == EPERM);
}

void process_destroy(pid_t pid)
{
    bool killed = kill(-pid, SIGKILL) == 0 || kill(pid, SIGKILL) == 0;

    while (waitpid(pid, NULL, killed ? 0 : WNOHANG) < 0 && errno == EINTR)
        continue;
}

const char *process_status_text(char *to, size_t size, int status)
{
    char name[SIGNALS_NAME_MAX];

    if (WIFSIGNALED(status))
        snprintf(to, size, "was killed by %s", signals_name(name, sizeof name, WTERMSIG(status)));
    else
        snprintf(to, size, "exited with status %d", WEXITSTATUS(status));
    return to;
}
