#include "build_config.h"

#include "subject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_SECONDS 5
#define START_SECONDS 10

static void fail(const char *what)
{
    fprintf(stderr, "load: ");
    perror(what);
    exit(1);
}

static void nap(void)
{
    const struct timespec two_ms = {0, 2000000};

    nanosleep(&two_ms, NULL);
}

/* The last one, which is less often asked to serve devices than the first. */
static void stay_on_one_cpu(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        fail("sched_setaffinity");
}

static void become(char **argv, int in, int out)
{
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

void subject_start(struct subject *subject, char **argv, bool stdio, bool one_cpu)
{
    int in[2] = {-1, -1}, out[2] = {-1, STDERR_FILENO};

    if (stdio && (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0))
        fail("pipe");
    if (!stdio && (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        fail("/dev/null");
    if (one_cpu)
        stay_on_one_cpu();
    subject->pid = fork();
    if (subject->pid < 0)
        fail("fork");
    if (subject->pid == 0)
        become(argv, in[0], out[1]);
    close(in[0]);
    if (stdio)
        close(out[1]);
    subject->in = in[1];
    subject->out = out[0];
}

/* Which file the process runs; a child that has yet to execute runs its parent's. */
static void executable(char *path, size_t size, const char *pid)
{
    char link[100];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/%s/exe", pid);
    len = readlink(link, path, size - 1);
    path[len > 0 ? len : 0] = '\0';
}

/* The beginning of a file of /proc/PID; empty when it cannot be read. */
static void read_proc(char *text, size_t size, pid_t pid, const char *name)
{
    char path[300];
    ssize_t len = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, text, size - 1);
        close(fd);
    }
    text[len > 0 ? len : 0] = '\0';
}

/* The number behind "name:" in a file of /proc/PID. */
static uint64_t proc_number(pid_t pid, const char *file, const char *name)
{
    char text[8192], wanted[64];
    const char *at;

    read_proc(text, sizeof text, pid, file);
    snprintf(wanted, sizeof wanted, "\n%s:", name);
    at = strstr(text, wanted);
    return at != NULL ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

static bool sleeps(pid_t pid)
{
    char text[512];
    const char *after_name;

    read_proc(text, sizeof text, pid, "stat");
    after_name = strrchr(text, ')');
    return after_name != NULL && strncmp(after_name, ") S", 3) == 0;
}

void subject_settle(const struct subject *subject)
{
    for (int tries = 0; tries < 100000 && !sleeps(subject->pid); tries++)
        sched_yield();
}

static unsigned executed_workers(const struct subject *subject)
{
    char name[64], children[16384], own[512], its[512], *word, *rest;
    unsigned count = 0;

    snprintf(name, sizeof name, "%ld", (long)subject->pid);
    executable(own, sizeof own, name);
    snprintf(name, sizeof name, "task/%ld/children", (long)subject->pid);
    read_proc(children, sizeof children, subject->pid, name);
    for (word = strtok_r(children, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        executable(its, sizeof its, word);
        count += its[0] != '\0' && strcmp(own, its) != 0;
    }
    return count;
}

void subject_wait_workers(const struct subject *subject, unsigned workers)
{
    for (int i = 0; executed_workers(subject) < workers; i++) {
        if (i == START_SECONDS * 500) {
            fprintf(stderr, "load: the program under test does not start its workers\n");
            exit(1);
        }
        nap();
    }
    subject_settle(subject);
}

uint64_t subject_cpu_ns(const struct subject *subject)
{
    char path[64];
    uint64_t total = 0;
    const struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)subject->pid);
    tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char text[128], name[280];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "task/%s/schedstat", entry->d_name);
        read_proc(text, sizeof text, subject->pid, name);
        total += strtoull(text, NULL, 10);
    }
    if (tasks != NULL)
        closedir(tasks);
    return total;
}

uint64_t subject_sleeps(const struct subject *subject)
{
    return proc_number(subject->pid, "status", "voluntary_ctxt_switches");
}

uint64_t subject_peak_kib(const struct subject *subject)
{
    return proc_number(subject->pid, "status", "VmHWM");
}

void subject_memory(const struct subject *subject, uint64_t *resident, uint64_t *anonymous)
{
    *resident = proc_number(subject->pid, "smaps_rollup", "Rss") * 1024;
    *anonymous = proc_number(subject->pid, "smaps_rollup", "Anonymous") * 1024;
}

static bool exited(const struct subject *subject, int *status)
{
    for (int i = 0; i < STOP_SECONDS * 500; i++) {
        pid_t pid = waitpid(subject->pid, status, WNOHANG);

        if (pid == subject->pid)
            return true;
        if (pid < 0 && errno != EINTR)
            fail("waitpid");
        nap();
    }
    return false;
}

bool subject_stop(struct subject *subject)
{
    int status = 0;
    bool by_itself;

    if (subject->in >= 0)
        close(subject->in);
    else
        kill(subject->pid, SIGTERM);
    by_itself = exited(subject, &status);
    if (!by_itself) {
        kill(subject->pid, SIGKILL);
        waitpid(subject->pid, &status, 0);
    }
    if (subject->out >= 0)
        close(subject->out);
    subject->in = subject->out = -1;
    if (!by_itself)
        fprintf(stderr, "load: the program under test did not end and was killed\n");
    else if (status != 0)
        fprintf(stderr, "load: the program under test ended with status %#x\n", (unsigned)status);
    return by_itself && status == 0;
}
