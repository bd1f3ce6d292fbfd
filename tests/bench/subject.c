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
#include <unistd.h>

#include "deadline.h"
#include "proc.h"

#define STOP_SECONDS 5
#define START_SECONDS 10
#define CHILDREN_MAX 256

static void fail(const char *what)
{
    fprintf(stderr, "load: ");
    perror(what);
    exit(1);
}

/* The last processor serves devices less often than the first. */
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

/* The file that the process executes; before exec that of its parent. */
static void executable(char *path, size_t size, pid_t pid)
{
    char link[100];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    len = readlink(link, path, size - 1);
    path[len > 0 ? len : 0] = '\0';
}

/* The number after "name:" in a file of /proc/PID; 0: none. */
static uint64_t proc_number(pid_t pid, const char *file, const char *name)
{
    struct text text = {0};
    char path[64], wanted[64];
    const char *at = NULL;
    uint64_t number;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    snprintf(wanted, sizeof wanted, "\n%s:", name);
    if (read_file(&text, path) && text.len > 0)
        at = strstr(text.data, wanted);
    number = at != NULL ? strtoull(at + strlen(wanted), NULL, 10) : 0;
    text_free(&text);
    return number;
}

void subject_settle(const struct subject *subject)
{
    for (int tries = 0; tries < 100000 && proc_state(subject->pid) != 'S'; tries++)
        sched_yield();
}

static unsigned executed_workers(const struct subject *subject)
{
    char own[512], its[512];
    pid_t children[CHILDREN_MAX];
    size_t count = proc_children(subject->pid, children, CHILDREN_MAX);
    unsigned executed = 0;

    executable(own, sizeof own, subject->pid);
    for (size_t i = 0; i < count && i < CHILDREN_MAX; i++) {
        executable(its, sizeof its, children[i]);
        executed += its[0] != '\0' && strcmp(own, its) != 0;
    }
    return executed;
}

void subject_wait_workers(const struct subject *subject, unsigned workers)
{
    int64_t deadline = deadline_in(START_SECONDS);

    while (executed_workers(subject) < workers) {
        if (deadline_over(deadline)) {
            fprintf(stderr, "load: the program under test does not start its workers\n");
            exit(1);
        }
        nap();
    }
    subject_settle(subject);
}

uint64_t subject_cpu_ns(const struct subject *subject)
{
    char path[320];
    struct text text = {0};
    uint64_t total = 0;
    const struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)subject->pid);
    tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof path, "/proc/%ld/task/%s/schedstat", (long)subject->pid,
                 entry->d_name);
        text.len = 0;
        if (entry->d_name[0] != '.' && read_file(&text, path) && text.len > 0)
            total += strtoull(text.data, NULL, 10);
    }
    if (tasks != NULL)
        closedir(tasks);
    text_free(&text);
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
    int64_t deadline = deadline_in(STOP_SECONDS);

    while (!deadline_over(deadline)) {
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
