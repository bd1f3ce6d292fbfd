/* The daemon under test, with the topic bus. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
#include "rmp_chaos.h"

#define DRAIN_SEC 2

uint64_t epoch_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool failed(const char *what)
{
    fprintf(stderr, "rmp_chaos: %s: %s\n", what, strerror(errno));
    return false;
}

static bool write_config(const struct chaos *chaos)
{
    FILE *file = fopen(chaos->config_path, "w");

    if (file == NULL)
        return failed(chaos->config_path);
    fprintf(file,
            "{\"rmp\":{\"max_body\":%d,\"max_ttl_ms\":%d,\"metrics_interval_ms\":200,"
            "\"validate\":false},\n"
            "\"limits\":{\"max_output_queue\":%d,\"backpressure_timeout_sec\":%d,"
            "\"drain_timeout_sec\":%d,\"max_restarts\":1000,\"restart_window_sec\":1},\n"
            "\"pools\":[{\"id\":\"writer\",\"command\":\"%s\",\"instances\":3,"
            "\"rmp\":{\"agent\":\"writer\"}},\n"
            "{\"id\":\"runner\",\"command\":\"%s\",\"instances\":1,\"rmp\":{\"runner\":true}}]}\n",
            FRAME_BODY_MAX, TTL_MAX_MS, OUTPUT_QUEUE, BACKPRESSURE_SEC, DRAIN_SEC, chaos->worker,
            chaos->worker);
    return fclose(file) == 0 || failed(chaos->config_path);
}

static void become_daemon(const struct chaos *chaos)
{
    int log = open(chaos->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* it is ignored after nohup */
    if (log < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    execl(chaos->daemon, chaos->daemon, "--config", chaos->config_path, "--rmp", chaos->socket_path,
          (char *)NULL);
    _exit(127);
}

int subject_connect(const struct chaos *chaos)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", chaos->socket_path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool subject_alive(struct chaos *chaos)
{
    if (chaos->pid != 0 && waitpid(chaos->pid, &chaos->status, WNOHANG) == chaos->pid)
        chaos->pid = 0;
    return chaos->pid != 0;
}

bool subject_start(struct chaos *chaos)
{
    int64_t deadline = deadline_usual();
    int fd;

    snprintf(chaos->dir, sizeof chaos->dir, "/tmp/chaos-XXXXXX");
    if (mkdtemp(chaos->dir) == NULL)
        return failed(chaos->dir);
    snprintf(chaos->config_path, sizeof chaos->config_path, "%s/config.json", chaos->dir);
    snprintf(chaos->log_path, sizeof chaos->log_path, "%s/log", chaos->dir);
    snprintf(chaos->socket_path, sizeof chaos->socket_path, "%s/rmp.sock", chaos->dir);
    if (!write_config(chaos))
        return false;
    chaos->pid = fork();
    if (chaos->pid == 0)
        become_daemon(chaos);
    while ((fd = subject_connect(chaos)) < 0) {
        if (chaos->pid < 0 || !subject_alive(chaos) || deadline_over(deadline)) {
            fprintf(stderr, "rmp_chaos: %s does not listen; its log is %s\n", chaos->daemon,
                    chaos->log_path);
            return false;
        }
        nap();
    }
    close(fd);
    return true;
}

void subject_kill_worker(struct chaos *chaos)
{
    pid_t workers[16];
    size_t count = proc_children(chaos->pid, workers, 16);

    if (count == 0)
        return;
    kill(workers[dice_below(&chaos->dice, (uint32_t)count)], SIGKILL);
    chaos->kills++;
}

/* --- the end --- */

static void check_log(struct chaos *chaos)
{
    static const char *const forbidden[] = {"AddressSanitizer", "LeakSanitizer", "runtime error:",
                                            "out of memory",    "cannot wait",   "bad message"};
    struct text log = {0};

    if (!read_file(&log, chaos->log_path))
        return;
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        const char *at = memmem(log.data, log.len, forbidden[i], strlen(forbidden[i]));

        if (at != NULL)
            violation(chaos, "the daemon's log says: %.200s", at);
    }
    if (chaos->upgrades.count > 20 && strstr(log.data, "upgraded from") == NULL)
        violation(chaos, "the daemon was never upgraded");
    text_free(&log);
}

static void clean_up(const struct chaos *chaos)
{
    if (chaos->violations > 0) {
        fprintf(stderr, "the daemon's log: %s\n", chaos->log_path);
        return;
    }
    unlink(chaos->config_path);
    unlink(chaos->log_path);
    rmdir(chaos->dir);
}

void subject_stop(struct chaos *chaos)
{
    int64_t deadline = deadline_in(DRAIN_SEC + 8);

    if (subject_alive(chaos))
        kill(chaos->pid, SIGTERM);
    else
        violation(chaos, "the daemon is gone");
    while (subject_alive(chaos) && !deadline_over(deadline))
        nap();
    if (chaos->pid != 0) {
        violation(chaos, "the daemon did not exit after SIGTERM");
        kill(chaos->pid, SIGKILL);
        waitpid(chaos->pid, &chaos->status, 0);
    }
    if (!WIFEXITED(chaos->status) || WEXITSTATUS(chaos->status) != 0)
        violation(chaos, "the daemon ended with status 0x%x", (unsigned)chaos->status);
    if (access(chaos->socket_path, F_OK) == 0)
        violation(chaos, "the socket file is still there");
    check_log(chaos);
    clean_up(chaos);
}
