#include "build_config.h"

#include "daemon.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "deadline.h"
#include "log.h"
#include "proc.h"
#include "setup.h"
#include "steps.h"
#include "suite.h"

#define MAX_WORKERS 256
#define ASLEEP_WATCH_MS 250

static int open_file(const char *path, int flags)
{
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

static void write_config(const struct setup *setup, const struct daemon *daemon)
{
    struct text text = {0};
    setup_config(setup, daemon, &text);
    int fd = open_file(daemon->config_path, O_WRONLY | O_TRUNC);
    ck_assert_int_eq(write(fd, text.data, text.len), (ssize_t)text.len);
    close(fd);
    text_free(&text);
}

static void make_pipe(int fds[2])
{
    ck_assert_int_eq(pipe(fds), 0);
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
}

/* Descriptors that the daemon gets; the test's ends of the pipes are in the daemon struct. */
struct endpoints {
    int fds[3];
    bool ours[3]; /* opened here: to be closed after the fork */
};

static void open_endpoints(struct endpoints *ends, const struct setup *setup, struct daemon *daemon)
{
    int fds[2];
    bool stdio = setup->mode == SETUP_STDIO;
    memset(ends, 0, sizeof *ends);
    ends->fds[0] = setup->stdin_fd;
    ends->fds[1] = setup->stdout_fd;
    ends->fds[2] = setup->stderr_fd;
    for (int i = 0; i < 3; i++)
        ends->ours[i] = ends->fds[i] == 0;
    if (ends->ours[0] && stdio) {
        make_pipe(fds);
        ends->fds[0] = fds[0];
        daemon->stdin_fd = fds[1];
    } else if (ends->ours[0]) {
        ends->fds[0] = open_file("/dev/null", O_RDONLY);
    }
    if (ends->ours[1] && stdio) {
        make_pipe(fds);
        ends->fds[1] = fds[1];
        daemon->stdout_fd = fds[0];
    } else if (ends->ours[1]) {
        ends->fds[1] = open_file(test_format("%s/out", daemon->dir), O_WRONLY | O_APPEND);
    }
    if (ends->ours[2])
        ends->fds[2] = open_file(daemon->log_path, O_WRONLY | O_APPEND);
}

static void close_endpoints(const struct endpoints *ends)
{
    for (int i = 0; i < 3; i++) {
        if (ends->ours[i])
            close(ends->fds[i]);
    }
}

static void read_port(struct daemon *daemon)
{
    const char *line = daemon_wait_log(daemon, "listening on .*:[0-9]+$");
    const char *address = strstr(line, "listening on ") + strlen("listening on ");
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "http://", 7) == 0)
        address += 7;
    size_t len = (size_t)(colon - address);
    if (address[0] == '[') {
        address++;
        len -= 2;
    }
    snprintf(daemon->host, sizeof daemon->host, "%.*s", (int)len, address);
    daemon->port = (unsigned)strtoul(colon + 1, NULL, 10);
}

static void end_daemon(void *object)
{
    struct daemon *daemon = object;
    if (daemon->pid != 0)
        daemon_stop(daemon);
    free(daemon);
}

static struct daemon *new_daemon(void)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);
    ck_assert_ptr_nonnull(daemon);
    harness_at_end(end_daemon, daemon);
    daemon->stdin_fd = daemon->stdout_fd = -1;
    harness_make_dir(daemon->dir, sizeof daemon->dir);
    return daemon;
}

struct daemon *daemon_start(const struct setup *setup)
{
    struct endpoints ends;
    sigset_t all, mask;
    struct daemon *daemon = new_daemon();
    harness_adopt_orphans();
    snprintf(daemon->config_path, sizeof daemon->config_path, "%s/config.json", daemon->dir);
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/log", daemon->dir);
    if (setup->mode == SETUP_UNIX)
        snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s/socket", daemon->dir);
    write_config(setup, daemon);
    open_endpoints(&ends, setup, daemon);
    /* libcheck's handler of SIGTERM, which would end the whole test, must not run in the child. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    daemon->pid = fork();
    if (daemon->pid == 0)
        setup_exec(setup, daemon, ends.fds[0], ends.fds[1], ends.fds[2]);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    ck_assert_int_ge(daemon->pid, 0);
    close_endpoints(&ends);
    if (setup->mode == SETUP_UNIX && !setup->no_wait)
        daemon_wait_log(daemon, "listening on ");
    else if ((setup->mode == SETUP_TCP || setup->mode == SETUP_HTTP) && !setup->no_wait)
        read_port(daemon);
    steps_daemon(daemon);
    return daemon;
}

void daemon_write_file(const struct daemon *daemon, const char *name, const char *text)
{
    struct text path = {0}, content = {0}, part = {0};

    daemon_expand(daemon, &path, name);
    daemon_expand(daemon, &content, text);
    text_printf(&part, "%s.part", path.data);
    FILE *file = fopen(part.data, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(content.data, 1, content.len, file), content.len);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(part.data, path.data), 0);
    text_free(&path);
    text_free(&content);
    text_free(&part);
}

void daemon_signal(struct daemon *daemon, int signo)
{
    ck_assert_int_gt(daemon->pid, 0);
    if (signo == SIGSTOP || signo == SIGCONT)
        steps_daemon(signo == SIGCONT ? daemon : NULL);
    kill(daemon->pid, signo);
}

bool daemon_has_ended(const struct daemon *daemon)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)daemon->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

static void wait_end(struct daemon *daemon)
{
    WAIT_UNTIL(waitpid(daemon->pid, &daemon->status, WNOHANG) != 0, "the daemon does not exit");
}

/* Orphans became children of the test when the daemon exited. They must be dying; the daemon must
 * have reaped its own children. */
static void check_processes(const pid_t *workers, size_t count)
{
    int64_t deadline = deadline_usual();
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return;
        for (size_t i = 0; pid > 0 && i < count; i++)
            ck_assert_msg(pid != workers[i], "worker %ld was not reaped", (long)pid);
        ck_assert_msg(!deadline_over(deadline), "a process is left");
        if (pid == 0)
            nap();
    }
}

static bool expected_name(const char *name)
{
    static const char *const names[] = {".", "..", "config.json", "log", "out"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return strncmp(name, "test-", 5) == 0;
}

static void check_files(const struct daemon *daemon)
{
    DIR *dir = opendir(daemon->dir);
    struct dirent *entry;
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        ck_assert_msg(expected_name(entry->d_name), "%s was left", entry->d_name);
    closedir(dir);
}

static void release(struct daemon *daemon)
{
    if (daemon->stdin_fd >= 0)
        close(daemon->stdin_fd);
    if (daemon->stdout_fd >= 0)
        close(daemon->stdout_fd);
    daemon->stdin_fd = daemon->stdout_fd = -1;
    daemon->pid = 0;
    steps_daemon(NULL);
    text_free(&daemon->log);
    text_free(&daemon->line);
    harness_remove_dir(daemon->dir);
}

/* Returns the exit status; `clean`: no worker may have to be killed. */
static int wait_and_check(struct daemon *daemon, bool clean)
{
    pid_t workers[MAX_WORKERS];
    size_t count = daemon_workers(daemon, workers, MAX_WORKERS);
    wait_end(daemon);
    ck_assert_msg(WIFEXITED(daemon->status), "the daemon died of signal %d",
                  WTERMSIG(daemon->status));
    ck_assert_msg(!clean || !daemon_logged(daemon, "killing it"), "%s", daemon->line.data);
    check_processes(workers, count);
    check_files(daemon);
    release(daemon);
    return WEXITSTATUS(daemon->status);
}

int daemon_wait(struct daemon *daemon)
{
    return wait_and_check(daemon, false);
}

void daemon_stop(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGTERM);
    clients_finish();
    ck_assert_int_eq(wait_and_check(daemon, true), 0);
}

/* Where no signal tells a worker of the death of its daemon, it may stay. */
void daemon_kill(struct daemon *daemon)
{
    pid_t workers[16];
    size_t count = 0;

    if (!harness_has_prctl())
        count = daemon_workers(daemon, workers, COUNT(workers));
    daemon_signal(daemon, SIGKILL);
    wait_end(daemon);
    while (count > 0)
        kill(workers[--count], SIGKILL);
    check_processes(NULL, 0);
    release(daemon);
}

void daemon_interrupt(struct daemon *daemon)
{
    daemon_signal(daemon, SIGTERM);
    wait_end(daemon);
    ck_assert(WIFEXITED(daemon->status) ? WEXITSTATUS(daemon->status) == 0
                                        : WTERMSIG(daemon->status) == SIGTERM);
    check_processes(NULL, 0);
    release(daemon);
}

size_t daemon_workers(const struct daemon *daemon, pid_t *workers, size_t max)
{
    pid_t children[MAX_WORKERS];
    size_t alive = 0, count = proc_children(daemon->pid, children, MAX_WORKERS);
    ck_assert_uint_le(count, MAX_WORKERS);
    for (size_t i = 0; i < count; i++) {
        if (!proc_alive(children[i]))
            continue;
        if (alive < max)
            workers[alive] = children[i];
        alive++;
    }
    return alive;
}

void daemon_wait_workers(const struct daemon *daemon, size_t wanted)
{
    pid_t children[MAX_WORKERS];
    WAIT_UNTIL(proc_children(daemon->pid, children, MAX_WORKERS) == wanted &&
                   daemon_workers(daemon, children, MAX_WORKERS) == wanted,
               "%zu children instead of %zu", proc_children(daemon->pid, children, MAX_WORKERS),
               wanted);
}

void daemon_wait_fds(const struct daemon *daemon, int wanted)
{
    WAIT_UNTIL(proc_fd_count(daemon->pid) == wanted, "%d descriptors instead of %d",
               proc_fd_count(daemon->pid), wanted);
}

void wait_gone(long pid)
{
    WAIT_UNTIL(proc_state((pid_t)pid) == 0, "process %ld is still there", pid);
}

void daemon_check_memory(const struct daemon *daemon, long max_kib)
{
    if (harness_skips_memory() || !proc_available())
        return;
    ck_assert_int_le(proc_status(daemon->pid, "VmHWM"), max_kib);
}

void daemon_check_asleep(const struct daemon *daemon)
{
    int64_t until = now_ms() + ASLEEP_WATCH_MS;
    long before = proc_cpu_ms(daemon->pid);
    if (!proc_available() || getenv("STDIO_BUS_WRAPPER") != NULL)
        return;
    while (now_ms() < until)
        nap();
    ck_assert_int_le(proc_cpu_ms(daemon->pid) - before, ASLEEP_WATCH_MS / 5);
}

/* Reads until the other side is closed. */
static void read_to_end(int fd, struct text *out)
{
    int64_t deadline = deadline_usual();
    ssize_t n;
    do {
        ck_assert_msg(wait_fd(fd, POLLIN, deadline), "stdout is not closed");
        n = read(fd, text_room(out, 65536), 65536);
        if (n > 0)
            out->len += (size_t)n;
    } while (n > 0);
    *text_room(out, 1) = '\0';
}

const char *daemon_run(const struct setup *setup, int status, struct text *out)
{
    struct setup once = *setup;
    struct text *err = test_text(), *output = out != NULL ? out : test_text();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    once.no_wait = true;
    if (once.stdin_fd == 0)
        once.stdin_fd = null;
    struct daemon *daemon = daemon_start(&once);
    if (daemon->stdout_fd >= 0)
        read_to_end(daemon->stdout_fd, output);
    wait_end(daemon);
    if (daemon->stdout_fd < 0)
        read_file(output, test_format("%s/out", daemon->dir));
    ck_assert(read_file(err, daemon->log_path));
    check_processes(NULL, 0);
    check_files(daemon);
    release(daemon);
    close(null);
    ck_assert_msg(WIFEXITED(daemon->status), "the daemon died of signal %d",
                  WTERMSIG(daemon->status));
    ck_assert_msg(WEXITSTATUS(daemon->status) == status, "exit status %d: %s",
                  WEXITSTATUS(daemon->status), err->data);
    ck_assert_msg(out != NULL || output->len == 0, "on stdout: %s", output->data);
    return err->data;
}

void daemon_upgrade(struct daemon *daemon)
{
    const char *line;

    do { /* a daemon that serves already may be waiting for its first worker still */
        daemon_mark_log(daemon);
        daemon_signal(daemon, SIGUSR2);
        line = daemon_wait_log(daemon, DAEMON_UPGRADED "|the daemon is still starting");
    } while (strstr(line, DAEMON_UPGRADED) == NULL);
}

bool daemon_can_upgrade(void)
{
    return getenv("STDIO_BUS_WRAPPER") == NULL && proc_available();
}

bool daemon_has(const char *part)
{
    const struct setup setup = {.mode = SETUP_STDIO, .config = "{}", .arguments = {"--version"}};
    struct text *out = test_text();
    char pattern[64];
    daemon_run(&setup, 0, out);
    snprintf(pattern, sizeof pattern, "with:[a-z ]* %s[ \n]", part);
    return text_matches(out->data, pattern);
}
