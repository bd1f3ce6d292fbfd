/* The daemon under test, with HTTP listeners on TCP and on a Unix socket. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "http_chaos.h"
#include "proc.h"

#define DRAIN_SEC 2

static bool failed(const char *what)
{
    fprintf(stderr, "http_chaos: %s: %s\n", what, strerror(errno));
    return false;
}

static bool write_config(const struct chaos *chaos)
{
    FILE *file = fopen(chaos->config_path, "w");

    if (file == NULL)
        return failed(chaos->config_path);
    fprintf(file,
            "{\"limits\":{\"session_idle_sec\":%d,\"max_resume\":%d,\"max_output_queue\":65536,"
            "\"frame_timeout_sec\":5,\"ping_sec\":4,\"drain_timeout_sec\":%d,"
            "\"max_restarts\":1000,\"restart_window_sec\":1},\n"
            "\"pools\":[{\"id\":\"own\",\"protocol\":\"mcp\",\"command\":\"%s\","
            "\"instances\":80},\n"
            "{\"id\":\"all\",\"protocol\":\"mcp\",\"command\":\"%s\",\"instances\":3,"
            "\"clients\":\"sticky\"},\n"
            "{\"id\":\"plain\",\"command\":\"%s\",\"instances\":2}]}\n",
            IDLE_SEC, chaos->forgetful ? LITTLE_RESUME : MAX_RESUME, DRAIN_SEC, chaos->worker,
            chaos->worker, chaos->worker);
    return fclose(file) == 0 || failed(chaos->config_path);
}

static void become_daemon(const struct chaos *chaos)
{
    int log = open(chaos->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);
    const char *level = getenv("CHAOS_LOG_LEVEL");
    char address[112];

    snprintf(address, sizeof address, "unix:%s", chaos->socket_path);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* it is ignored after nohup */
    if (log < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    execl(chaos->daemon, chaos->daemon, "--config", chaos->config_path, "--http", address, "--http",
          "127.0.0.1:0", "--log-level", level != NULL ? level : "info", (char *)NULL);
    _exit(127);
}

/* The port is in the log. */
static bool find_port(struct chaos *chaos)
{
    static const char words[] = "HTTP at http://127.0.0.1:";
    struct text log = {0};
    const char *at = NULL;

    if (read_file(&log, chaos->log_path) && log.len > 0)
        at = strstr(log.data, words);
    chaos->port = at != NULL ? (unsigned)strtoul(at + strlen(words), NULL, 10) : 0;
    text_free(&log);
    return chaos->port != 0;
}

int subject_connect(const struct chaos *chaos, bool tcp)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((uint16_t)chaos->port)};
    const struct sockaddr *address = tcp ? (const void *)&port : (const void *)&path;
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(path.sun_path, sizeof path.sun_path, "%s", chaos->socket_path);
    if (fd >= 0 && connect(fd, address, tcp ? sizeof port : sizeof path) != 0) {
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

    snprintf(chaos->dir, sizeof chaos->dir, "/tmp/chaos-XXXXXX");
    if (mkdtemp(chaos->dir) == NULL)
        return failed(chaos->dir);
    snprintf(chaos->config_path, sizeof chaos->config_path, "%s/config.json", chaos->dir);
    snprintf(chaos->log_path, sizeof chaos->log_path, "%s/log", chaos->dir);
    snprintf(chaos->socket_path, sizeof chaos->socket_path, "%s/http.sock", chaos->dir);
    if (!write_config(chaos))
        return false;
    chaos->pid = fork();
    if (chaos->pid == 0)
        become_daemon(chaos);
    while (!find_port(chaos)) {
        if (chaos->pid < 0 || !subject_alive(chaos) || deadline_over(deadline)) {
            fprintf(stderr, "http_chaos: %s does not listen; its log is %s\n", chaos->daemon,
                    chaos->log_path);
            return false;
        }
        nap();
    }
    return true;
}

/* --- its workers --- */

void subject_spare(struct chaos *chaos)
{
    if (chaos->stopped != 0)
        kill(chaos->stopped, SIGCONT);
    chaos->stopped = 0;
}

/* Kills a worker, or stops one for a while. */
void subject_harm(struct chaos *chaos)
{
    pid_t workers[128], worker;
    size_t count = proc_children(chaos->pid, workers, 128);

    subject_spare(chaos);
    if (count == 0)
        return;
    worker = workers[dice_below(&chaos->dice, (uint32_t)(count < 128 ? count : 128))];
    if (dice_chance(&chaos->dice, 300)) {
        chaos->stopped = worker;
        kill(worker, SIGSTOP);
        return;
    }
    kill(worker, dice_chance(&chaos->dice, 500) ? SIGKILL : SIGHUP);
    chaos->last_kill_ms = now_ms();
    chaos->kills++;
}

/* --- the end --- */

static void check_log(struct chaos *chaos)
{
    static const char *const forbidden[] = {"AddressSanitizer", "LeakSanitizer", "runtime error:",
                                            "out of memory",    "WRONG",         "bad message"};
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
    if (!chaos->forgetful && strstr(log.data, "are kept no more") != NULL)
        violation(chaos, "events were forgotten");
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
