#include "build_config.h"

#include "process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "process/child.h"
#include "suite.h"

#define DEADLINE_MS 20000 /* longer than anything that is waited for */
#define FDS_MAX 2000      /* descriptors that are looked at */

static char *self; /* this program, which is also the child: "check_process report" */

static char cat_name[] = "cat"; /* found by PATH */
static char *const cat_argv[] = {cat_name, NULL};
static const struct program cat = {.argv = cat_argv};

/* --- the child's side --- */

static int report(void)
{
    struct stat status;
    struct rlimit nofile;
    sigset_t mask;
    struct sigaction action;

    for (int i = 0; i < FDS_MAX; i++) {
        if (fcntl(i, F_GETFD) >= 0)
            printf("fd=%d\n", i);
    }
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        if (sigismember(&mask, i) == 1)
            printf("blocked=%d\n", i);
        /* A caught signal is back to its default after exec; only an ignored one is not. */
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            printf("ignored=%d\n", i);
    }
    if (getrlimit(RLIMIT_NOFILE, &nofile) == 0)
        printf("nofile=%llu\n", (unsigned long long)nofile.rlim_cur);
    if (fstat(STDERR_FILENO, &status) == 0)
        printf("stderr=%llu:%llu\n", (unsigned long long)status.st_dev,
               (unsigned long long)status.st_ino);
    printf("pid=%ld\ngroup=%ld\nparent=%ld\n", (long)getpid(), (long)getpgrp(), (long)getppid());
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- the parent's side --- */

static void wait_readable(int fd)
{
    struct pollfd wanted = {fd, POLLIN, 0};
    int ready;

    do
        ready = poll(&wanted, 1, DEADLINE_MS);
    while (ready < 0 && errno == EINTR);
    ck_assert_int_eq(ready, 1);
}

static int exec_result(const struct process *process, int *error)
{
    int64_t deadline = clock_now_ms() + DEADLINE_MS;
    int result;

    while ((result = process_exec_result(process->fd_exec, error)) == STDIO_BUS_EAGAIN) {
        ck_assert_int_lt(clock_now_ms(), deadline);
        wait_readable(process->fd_exec);
    }
    return result;
}

static struct process spawn_program(const struct program *program)
{
    struct process process = {0, -1, -1, -1, -1};
    int error = 0;

    ck_assert_int_eq(process_spawn(&process, program), STDIO_BUS_OK);
    ck_assert_int_gt(process.pid, 0);
    ck_assert_int_eq(exec_result(&process, &error), STDIO_BUS_OK);
    return process;
}

static struct process spawn_with(char *const argv[], const struct rlimit *nofile)
{
    return spawn_program(&(struct program){.argv = argv, .nofile = nofile});
}

static struct process spawn_shell(const char *script)
{
    char shell[] = "/bin/sh", flag[] = "-c", copy[256];
    char *argv[] = {shell, flag, copy, NULL};

    snprintf(copy, sizeof copy, "%s", script);
    return spawn_with(argv, NULL);
}

static char read_text[65536];

/* The output of the child until its end. */
static char *read_all(int fd)
{
    size_t len = 0;
    ssize_t got;

    for (;;) {
        wait_readable(fd);
        got = read(fd, read_text + len, sizeof read_text - 1 - len);
        ck_assert_int_ge(got, 0);
        if (got == 0)
            break;
        len += (size_t)got;
        ck_assert_uint_lt(len, sizeof read_text - 1);
    }
    read_text[len] = '\0';
    return read_text;
}

static int wait_status(pid_t pid)
{
    int64_t deadline = clock_now_ms() + DEADLINE_MS;
    int status = -1;

    while (!process_reap(pid, &status)) {
        ck_assert_int_lt(clock_now_ms(), deadline);
        poll(NULL, 0, 1);
    }
    return status;
}

static void expect_death_by(pid_t pid, int signo)
{
    int status = wait_status(pid);

    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signo);
}

static void close_process(struct process *process)
{
    close(process->fd_to);
    close(process->fd_from);
    close(process->fd_exec);
}

static int count_fds(void)
{
    int count = 0, i;

    for (i = 0; i < FDS_MAX; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void expect_line(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void expect_line(const char *text, const char *format, ...)
{
    char line[128];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ck_assert_msg(strstr(text, line) != NULL, "no line %s in:\n%s", line, text);
}

/* Runs this program as a child that reports about itself, in TEST_EMULATOR if that is set. */
static char *reported(const struct rlimit *nofile, struct process *process)
{
    char word[] = "report";
    char *argv[] = {getenv("TEST_EMULATOR"), self, word, NULL};
    char *text;

    *process = spawn_with(argv[0] != NULL ? argv : argv + 1, nofile);
    text = read_all(process->fd_from);
    ck_assert_int_eq(wait_status(process->pid), 0);
    close_process(process);
    return text;
}

/* --- what the child gets --- */

TEST(nothing_is_inherited_but_three_descriptors)
{
    struct process process;
    const char *text, *at;
    int count = 0;

    /* As a careless parent may have left them. */
    ck_assert_int_eq(dup2(STDERR_FILENO, 50), 50);
    ck_assert_int_eq(dup2(STDERR_FILENO, 900), 900);
    text = reported(NULL, &process);
    for (at = text; (at = strstr(at, "fd=")) != NULL; at++)
        count++;
    expect_line(text, "fd=0\n");
    expect_line(text, "fd=1\n");
    expect_line(text, "fd=2\n");
    ck_assert_msg(count == 3, "%s", text);
    ck_assert_int_ge(fcntl(50, F_GETFD), 0); /* those of the parent are left alone */
    ck_assert_int_eq(fcntl(50, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(signals_are_as_new)
{
    struct process process;
    struct sigaction action;
    sigset_t blocked, after;
    const char *text;

    for (int i = 1; i < 32; i++) {
        if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD)
            signal(i, SIG_IGN);
    }
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    text = reported(NULL, &process);
    ck_assert_ptr_null(strstr(text, "blocked="));
    ck_assert_ptr_null(strstr(text, "ignored="));
    /* The parent's stay as they are. */
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 32; i++)
        ck_assert_int_eq(sigismember(&after, i), sigismember(&blocked, i));
    ck_assert_int_eq(sigaction(SIGTERM, NULL, &action), 0);
    ck_assert(action.sa_handler == SIG_IGN);
}

TEST(group_and_stderr)
{
    struct process process;
    struct stat status;
    const char *text = reported(NULL, &process);

    expect_line(text, "pid=%ld\n", (long)process.pid);
    expect_line(text, "group=%ld\n", (long)process.pid);
    expect_line(text, "parent=%ld\n", (long)getpid());
    ck_assert_int_eq(fstat(STDERR_FILENO, &status), 0);
    expect_line(text, "stderr=%llu:%llu\n", (unsigned long long)status.st_dev,
                (unsigned long long)status.st_ino);
}

TEST(descriptor_limit)
{
    struct process process;
    struct rlimit ours, given;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &ours), 0);
    given = ours;
    given.rlim_cur = 77;
    expect_line(reported(&given, &process), "nofile=77\n");
    expect_line(reported(NULL, &process), "nofile=%llu\n", (unsigned long long)ours.rlim_cur);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &given), 0);
    ck_assert(given.rlim_cur == ours.rlim_cur);
}

static void expect_error_of(const struct program *program, int expected)
{
    struct process process;
    int error = 0, status;

    ck_assert_int_eq(process_spawn(&process, program), STDIO_BUS_OK);
    ck_assert_int_eq(exec_result(&process, &error), STDIO_BUS_ERR);
    ck_assert_int_eq(error, expected);
    status = wait_status(process.pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    ck_assert_str_eq(read_all(process.fd_from), ""); /* the child wrote nothing */
    close_process(&process);
}

static char *output_of(const struct program *program)
{
    struct process process = spawn_program(program);
    char *text = read_all(process.fd_from);

    ck_assert_int_eq(wait_status(process.pid), 0);
    close_process(&process);
    return text;
}

/* The program gets nothing else; the parent's environment stays. */
TEST(environment)
{
    char env[] = "/usr/bin/env", one[] = "ONE=1", two[] = "TWO=a=b c", *argv[] = {env, NULL};
    char *envp[] = {one, two, NULL};

    setenv("CHECK_PROCESS", "ours", 1);
    ck_assert_str_eq(output_of(&(struct program){.argv = argv, .envp = envp}),
                     "ONE=1\nTWO=a=b c\n");
    ck_assert_str_eq(output_of(&(struct program){.argv = argv, .envp = envp + 2}), "");
    expect_line(output_of(&(struct program){.argv = argv}), "CHECK_PROCESS=ours\n");
    ck_assert_str_eq(getenv("CHECK_PROCESS"), "ours");
}

/* The command is looked up there, too. */
TEST(working_directory)
{
    char folder[] = "/tmp/check_process_XXXXXX", link[64], pwd[] = "pwd", slash_pwd[] = "./pwd";
    char here[] = "PATH=.", *argv[] = {pwd, NULL}, *slash[] = {slash_pwd, NULL};
    char *envp[] = {here, NULL};

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(link, sizeof link, "%s/pwd", folder);
    ck_assert_int_eq(symlink("/bin/pwd", link), 0);
    ck_assert_ptr_eq(strstr(output_of(&(struct program){.argv = argv, .cwd = folder}), folder),
                     read_text);
    ck_assert_ptr_eq(strstr(output_of(&(struct program){.argv = argv, .envp = envp, .cwd = folder}),
                            folder),
                     read_text);
    ck_assert_ptr_eq(
        strstr(output_of(&(struct program){.argv = slash, .envp = envp, .cwd = folder}), folder),
        read_text);
    ck_assert_int_eq(unlink(link), 0);
    expect_error_of(&(struct program){.argv = argv, .envp = envp, .cwd = folder}, ENOENT);
    ck_assert_int_eq(rmdir(folder), 0);
    expect_error_of(&(struct program){.argv = argv, .cwd = folder}, ENOENT);
    expect_error_of(&(struct program){.argv = argv, .cwd = "/dev/null"}, ENOTDIR);
}

TEST(stdin_and_stdout_are_pipes)
{
    struct process process = spawn_program(&cat);

    ck_assert_int_ne(fcntl(process.fd_to, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(process.fd_from, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(process.fd_exec, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(process.fd_exec, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(getpgid(process.pid), process.pid);
    ck_assert_int_eq(write(process.fd_to, "hello\n", 6), 6);
    close(process.fd_to);
    ck_assert_str_eq(read_all(process.fd_from), "hello\n");
    ck_assert_int_eq(wait_status(process.pid), 0);
}

/* The group can be signalled as soon as process_spawn returns. */
TEST(group_is_there_at_once)
{

    for (int i = 0; i < 50; i++) {
        struct process process;

        ck_assert_int_eq(process_spawn(&process, &cat), STDIO_BUS_OK);
        ck_assert_int_eq(getpgid(process.pid), process.pid);
        process_destroy(process.pid);
        close_process(&process);
    }
}

static volatile sig_atomic_t caught;

static void catch_signal(int signo)
{
    static const char byte = 'x';
    ssize_t written;

    (void)signo;
    caught = 1;
    /* A call in the child between fork and exec would be read by the test. */
    written = write(60, &byte, 1);
    (void)written;
}

/* A signal that meets the child between fork and exec is neither lost nor caught by the handler. */
TEST(signal_right_after_the_fork)
{
    int pipe_ends[2], i;

    ck_assert_int_eq(pipe(pipe_ends), 0);
    ck_assert_int_eq(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(dup2(pipe_ends[1], 60), 60);
    signal(SIGTERM, catch_signal);
    for (i = 0; i < 100; i++) {
        struct process process;
        char byte;

        ck_assert_int_eq(process_spawn(&process, &cat), STDIO_BUS_OK);
        ck_assert(process_signal_group(process.pid, SIGTERM));
        expect_death_by(process.pid, SIGTERM);
        ck_assert_int_eq(read(pipe_ends[0], &byte, 1), -1);
        close_process(&process);
    }
    ck_assert_int_eq(caught, 0);
}

#if defined(__linux__) && defined(HAVE_PRCTL)
/* The parent is a process in between, which is killed. The child holds the write end of the pipe as
 * its stderr, so the end of the pipe is the end of the child. */
TEST(child_dies_with_its_parent)
{
    char sleep_path[] = "/bin/sleep", seconds[] = "1000";
    char *argv[] = {sleep_path, seconds, NULL};
    int ends[2];
    pid_t between;
    char byte;

    ck_assert_int_eq(pipe(ends), 0);
    between = fork();
    ck_assert_int_ge(between, 0);
    if (between == 0) {
        struct process process;
        int error;

        dup2(ends[1], STDERR_FILENO);
        if (process_spawn(&process, &(struct program){.argv = argv}) != STDIO_BUS_OK)
            _exit(1);
        while (process_exec_result(process.fd_exec, &error) == STDIO_BUS_EAGAIN)
            poll(NULL, 0, 1);
        if (write(STDERR_FILENO, "r", 1) != 1)
            _exit(1);
        pause();
        _exit(1);
    }
    close(ends[1]);
    wait_readable(ends[0]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(kill(between, SIGKILL), 0);
    wait_readable(ends[0]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
    ck_assert_int_eq(waitpid(between, NULL, 0), between);
}
#endif

TEST_ROWS(works_with_standard_descriptors_closed, 2)
{
    struct process process;

    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    if (row == 1)
        close(STDERR_FILENO);
    process = spawn_program(&cat);
    ck_assert_int_gt(process.fd_to, STDERR_FILENO);
    ck_assert_int_gt(process.fd_from, STDERR_FILENO);
    ck_assert_int_eq(write(process.fd_to, "hello\n", 6), 6);
    close(process.fd_to);
    ck_assert_str_eq(read_all(process.fd_from), "hello\n");
    ck_assert_int_eq(wait_status(process.pid), 0);
}

/* --- exec and its failure --- */

static void expect_exec_error(char *path, int expected)
{
    char *argv[] = {path, NULL};

    expect_error_of(&(struct program){.argv = argv}, expected);
}

/* A directory of PATH that refuses does not end the search. */
TEST(refusal_in_path_is_reported_last)
{
    char folder[] = "/tmp/check_process_XXXXXX", file[64], path[64], long_path[80];
    char *envp[] = {path, NULL}, *long_envp[] = {long_path, NULL};
    struct process process;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/cat", folder);
    snprintf(path, sizeof path, "PATH=%s:/none", folder);
    snprintf(long_path, sizeof long_path, "%s:/bin", path);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect_error_of(&(struct program){.argv = cat_argv, .envp = envp}, EACCES);
    process = spawn_program(&(struct program){.argv = cat_argv, .envp = long_envp});
    close(process.fd_to);
    process.fd_to = -1;
    ck_assert_int_eq(wait_status(process.pid), 0);
    close(process.fd_from);
    close(process.fd_exec);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

#if defined(__GLIBC__) || !defined(__linux__)
#define EXECVP_HAS_A_SHELL true
#else
#define EXECVP_HAS_A_SHELL false
#endif

/* A script without a first line that names its interpreter is for the shell, but the program of
 * another machine is not. */
TEST_ROWS(shell_runs_text_alone, 2)
{
    static const char text[] = "exec cat\n", program[] = "\x7F"
                                                         "ELF\2\1\1\0\necho it runs\n";
    char folder[] = "/tmp/check_process_XXXXXX", file[64], path[64], name[] = "program";
    char *by_path[] = {file, NULL}, *by_name[] = {name, NULL}, *envp[] = {path, NULL};
    const struct program in_path = {.argv = by_name, .envp = envp};
    struct process process;
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/program", folder);
    snprintf(path, sizeof path, "PATH=/none:%s:/bin", folder);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    if (row == 0)
        ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
    else
        ck_assert_int_eq(write(fd, program, sizeof program - 1), sizeof program - 1);
    close(fd);
    if (row == 1) {
        expect_exec_error(file, ENOEXEC);
        expect_error_of(&in_path, ENOEXEC);
    } else if (EXECVP_HAS_A_SHELL) {
        process = spawn_program(&(struct program){.argv = by_path, .envp = envp});
        close(process.fd_to);
        ck_assert_int_eq(wait_status(process.pid), 0);
        close(process.fd_from);
        close(process.fd_exec);
    }
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

TEST(exec_error_is_reported)
{
    char nowhere[] = "/nonexistent/program", unknown[] = "no-such-program-in-the-path";
    char directory[] = "/", path[] = "/tmp/check_process_XXXXXX", below[64];
    char where[] = "PATH=/bin", *unknown_argv[] = {unknown, NULL}, *envp[] = {where, NULL};
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    expect_exec_error(nowhere, ENOENT);
    expect_error_of(&(struct program){.argv = unknown_argv, .envp = envp}, ENOENT);
    expect_exec_error(directory, EACCES);
    expect_exec_error(path, EACCES); /* not executable */
    snprintf(below, sizeof below, "%s/x", path);
    expect_exec_error(below, ENOTDIR);
    ck_assert_int_eq(unlink(path), 0);
}

TEST(exec_result_is_not_waited_for)
{
    int ends[2], error = 0, number = EPERM;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(process_exec_result(ends[0], &error), STDIO_BUS_EAGAIN);
    ck_assert_int_eq(write(ends[1], &number, sizeof number), sizeof number);
    ck_assert_int_eq(process_exec_result(ends[0], &error), STDIO_BUS_ERR);
    ck_assert_int_eq(error, EPERM);
    close(ends[1]);
    ck_assert_int_eq(process_exec_result(ends[0], &error), STDIO_BUS_OK);
    close(ends[0]);
    ck_assert_int_eq(process_exec_result(ends[0], &error), STDIO_BUS_ERR);
    ck_assert_int_eq(error, EBADF);
}

TEST(failed_spawn_leaves_nothing)
{
    struct rlimit limit;
    struct process process;
    int fds = count_fds(), failures = 0;
    int lowest = dup(STDERR_FILENO);

    ck_assert_int_ge(lowest, 0);
    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (limit.rlim_cur = (rlim_t)lowest;; limit.rlim_cur++) { /* one more each time */
        int status;

        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        errno = 0;
        status = process_spawn(&process, &cat);
        if (status == STDIO_BUS_OK)
            break;
        ck_assert_int_eq(status, STDIO_BUS_ERR);
        ck_assert_int_eq(errno, EMFILE);
        ck_assert_int_eq(count_fds(), fds);
        failures++;
    }
    ck_assert_int_ge(failures, 5); /* it needs six */
    process_destroy(process.pid);
    close_process(&process);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
}

TEST(spawn_and_exit_leave_no_descriptor)
{
    int fds = count_fds(), i;

    for (i = 0; i < 20; i++) {
        struct process process = spawn_shell("exit 3");
        int status = wait_status(process.pid);

        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 3);
        close_process(&process);
    }
    ck_assert_int_eq(count_fds(), fds);
}

/* --- reaping, signalling, killing --- */

TEST(reaped_once_it_has_exited)
{
    struct process process = spawn_program(&cat);
    int status = -1;

    ck_assert(!process_reap(process.pid, &status));
    close(process.fd_to);
    ck_assert_int_eq(wait_status(process.pid), 0);
    status = -1;
    ck_assert(process_reap(process.pid, &status)); /* reaped elsewhere */
    ck_assert_int_eq(status, 0);
}

TEST(signal_reaches_the_whole_group)
{
    struct process process = spawn_shell("sleep 1000 & echo ready; wait");
    char byte[16];

    wait_readable(process.fd_from);
    ck_assert_int_eq(read(process.fd_from, byte, sizeof byte), 6);
    ck_assert(process_signal_group(process.pid, SIGTERM));
    /* The pipe ends with the grandchild. */
    ck_assert_str_eq(read_all(process.fd_from), "");
    expect_death_by(process.pid, SIGTERM);
    close_process(&process);
}

TEST(group_without_members)
{
    struct process process = spawn_shell("exit 0");

    wait_status(process.pid);
    ck_assert(!process_signal_group(process.pid, SIGTERM));
    ck_assert(!process_signal_group(0, 0));  /* not the own group; signal 0 only asks */
    ck_assert(!process_signal_group(-1, 0)); /* not all processes */
    close_process(&process);
}

TEST_ROWS(destroyed_although_it_ignores_signals, 2)
{
    struct process process =
        spawn_shell("trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done");
    char byte[16];

    wait_readable(process.fd_from);
    ck_assert_int_eq(read(process.fd_from, byte, sizeof byte), 6);
    if (row == 1)
        ck_assert(process_signal_group(process.pid, SIGSTOP));
    process_destroy(process.pid);
    ck_assert_int_eq(waitpid(process.pid, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_str_eq(read_all(process.fd_from), ""); /* with its children */
    close_process(&process);
}

TEST(status_in_words)
{
    struct process process = spawn_shell("exit 3");
    char text[80], tiny[8];

    ck_assert_str_eq(process_status_text(text, sizeof text, wait_status(process.pid)),
                     "exited with status 3");
    close_process(&process);
    process = spawn_shell("kill -9 $$");
    process_status_text(text, sizeof text, wait_status(process.pid));
    ck_assert_str_eq(text, "was killed by SIGKILL");
    close_process(&process);
    ck_assert_str_eq(process_status_text(tiny, sizeof tiny, 0), "exited "); /* cut, and ended */
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "report") == 0)
        return report();
    self = argv[0];
    return harness_main("check_process");
}

/* --- exits without SIGCHLD --- */

static int exits_noted;

static void note_exit(void *user_data)
{
    (void)user_data;
    exits_noted++;
}

static void run_until_noted(struct stdio_bus_event_loop *loop, int count)
{
    int64_t deadline = clock_now_ms() + DEADLINE_MS;

    while (exits_noted < count) {
        ck_assert_int_lt(clock_now_ms(), deadline);
        ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 1000), 0);
    }
}

TEST(exit_is_noted_once_it_is_there)
{
    struct stdio_bus_event_loop *loop = stdio_bus_event_loop_create();
    struct child child = {.pid = 0};
    int status;

    ck_assert_ptr_nonnull(loop);
    child_init(&child, loop);
    child.pid = fork();
    if (child.pid == 0)
        _exit(3);
    exits_noted = 0;
    child_watch(&child, note_exit, NULL);
    while (!child_reap(&child, &status, 1000))
        run_until_noted(loop, exits_noted + 1);
    ck_assert_int_eq(WEXITSTATUS(status), 3);
    ck_assert_int_eq(child.fd_exit, -1);
    child_destroy(&child);
    stdio_bus_event_loop_destroy(loop);
}

/* There is no such process any more, so there is no descriptor for its exit. */
TEST(exit_without_a_descriptor_is_looked_for)
{
    struct stdio_bus_event_loop *loop = stdio_bus_event_loop_create();
    struct child child = {.pid = 0};
    int status;

    ck_assert_ptr_nonnull(loop);
    child_init(&child, loop);
    child.pid = fork();
    if (child.pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child.pid, &status, 0), child.pid);
    exits_noted = 0;
    child_watch(&child, note_exit, NULL);
    ck_assert_int_eq(child.fd_exit, -1);
    run_until_noted(loop, 2);
    ck_assert(child_reap(&child, &status, 1000));
    ck_assert(!timer_started(&child.exit_check));
    child_destroy(&child);
    stdio_bus_event_loop_destroy(loop);
}
