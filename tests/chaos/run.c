#include "build_config.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "proc.h"

#define PRINTED_MAX 8
#define ARGUMENTS_MAX 16

void run_violation(struct run *run, const char *format, ...)
{
    va_list arguments;

    if (run->violations++ >= PRINTED_MAX)
        return;
    fprintf(stderr,
            "VIOLATION after %.3f s, seed %llu: ", (double)(now_ms() - run->start_ms) / 1000,
            run->seed);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\n", stderr);
}

/* --- the command line --- */

static void read_options(struct run *run, int argc, char *argv[])
{
    const char *daemon = getenv("STDIO_BUS");

    run->seconds = 30;
    run->seed = (unsigned long long)time(NULL) % 1000000;
    run->daemon = daemon != NULL && daemon[0] != '\0' ? daemon : "./stdio_bus";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--http") == 0 || strcmp(argv[i], "--rmp") == 0)
            continue;
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0)
            run->seconds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            run->seed = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--upgrade") == 0)
            run->upgrades.apart_ms = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--daemon") == 0)
            run->daemon = argv[++i];
        else {
            fprintf(stderr,
                    "usage: %s [--seconds N] [--seed S] [--daemon PATH] [--upgrade MILLISECONDS]\n",
                    run->name);
            exit(64);
        }
    }
}

void run_begin(struct run *run, int argc, char *argv[], const char *worker)
{
    read_options(run, argc, argv);
    run->worker = realpath(worker, NULL);
    if (run->worker == NULL) {
        fprintf(stderr, "%s: %s: %s\n", run->name, worker, strerror(errno));
        exit(64);
    }
    if (!proc_available()) {
        printf("%s: there is no /proc\n", run->name);
        exit(77);
    }
    signal(SIGPIPE, SIG_IGN);
    dice_seed(&run->dice, run->seed);
    run->start_ms = now_ms();
}

/* --- the daemon --- */

static bool failed(const struct run *run, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", run->name, what, strerror(errno));
    return false;
}

bool run_make_dir(struct run *run)
{
    snprintf(run->dir, sizeof run->dir, "/tmp/chaos-XXXXXX");
    if (mkdtemp(run->dir) == NULL)
        return failed(run, run->dir);
    snprintf(run->config_path, sizeof run->config_path, "%s/config.json", run->dir);
    snprintf(run->log_path, sizeof run->log_path, "%s/log", run->dir);
    snprintf(run->socket_path, sizeof run->socket_path, "%s/bus.sock", run->dir);
    return true;
}

static bool write_config(const struct run *run, const char *config)
{
    FILE *file = fopen(run->config_path, "w");

    if (file == NULL)
        return failed(run, run->config_path);
    fputs(config, file);
    return fclose(file) == 0 || failed(run, run->config_path);
}

static void become_daemon(const struct run *run, const char *const *arguments)
{
    const char *words[ARGUMENTS_MAX] = {run->daemon, "--config", run->config_path};
    int log = open(run->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);

    for (size_t i = 0; arguments[i] != NULL && i + 4 < ARGUMENTS_MAX; i++)
        words[3 + i] = arguments[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* it is ignored after nohup */
    if (log < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    execv(run->daemon, (char **)(uintptr_t)words);
    _exit(127);
}

bool run_start(struct run *run, const char *config, const char *const *arguments,
               bool (*listens)(void *object), void *object)
{
    int64_t deadline = deadline_usual();

    if (!write_config(run, config))
        return false;
    run->pid = fork();
    if (run->pid == 0)
        become_daemon(run, arguments);
    while (!listens(object)) {
        if (run->pid < 0 || !run_alive(run) || deadline_over(deadline)) {
            fprintf(stderr, "%s: %s does not listen; its log is %s\n", run->name, run->daemon,
                    run->log_path);
            return false;
        }
        nap();
    }
    return true;
}

int run_connect(const struct run *run, unsigned port)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct sockaddr *address = port != 0 ? (const void *)&in : (const void *)&path;
    int fd = socket(port != 0 ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(path.sun_path, sizeof path.sun_path, "%s", run->socket_path);
    if (fd >= 0 && connect(fd, address, port != 0 ? sizeof in : sizeof path) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool run_alive(struct run *run)
{
    if (run->pid != 0 && waitpid(run->pid, &run->status, WNOHANG) == run->pid)
        run->pid = 0;
    return run->pid != 0;
}

/* --- the end --- */

static void check_log(struct run *run, const char *word, const char *other_word)
{
    const char *forbidden[] = {
        "AddressSanitizer", "LeakSanitizer", "runtime error:", "out of memory", "bad message", word,
        other_word};
    struct text log = {0};

    if (!read_file(&log, run->log_path))
        return;
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        const char *at = memmem(log.data, log.len, forbidden[i], strlen(forbidden[i]));

        if (at != NULL)
            run_violation(run, "the daemon's log says: %.200s", at);
    }
    if (run->upgrades.count > 20 && strstr(log.data, "upgraded from") == NULL)
        run_violation(run, "the daemon was never upgraded");
    text_free(&log);
}

void run_stop(struct run *run, const char *word, const char *other_word)
{
    int64_t deadline = deadline_in(DRAIN_SEC + 8);

    if (run_alive(run))
        kill(run->pid, SIGTERM);
    else
        run_violation(run, "the daemon is gone");
    while (run_alive(run) && !deadline_over(deadline))
        nap();
    if (run->pid != 0) {
        run_violation(run, "the daemon did not exit after SIGTERM");
        kill(run->pid, SIGKILL);
        waitpid(run->pid, &run->status, 0);
    }
    if (!WIFEXITED(run->status) || WEXITSTATUS(run->status) != 0)
        run_violation(run, "the daemon ended with status 0x%x", (unsigned)run->status);
    if (access(run->socket_path, F_OK) == 0)
        run_violation(run, "the socket file is still there");
    check_log(run, word, other_word);
    if (run->violations > 0) {
        fprintf(stderr, "the daemon's log: %s\n", run->log_path);
        return;
    }
    unlink(run->config_path);
    unlink(run->log_path);
    rmdir(run->dir);
}
