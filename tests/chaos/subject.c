#include "build_config.h"

#include "subject.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos.h"
#include "deadline.h"
#include "phases.h"
#include "proc.h"

#define JOURNAL_PIPE_BYTES (1 << 20)
#define HOSTILE_UID 60000

static bool failed(const char *what)
{
    fprintf(stderr, "chaos: %s: %s\n", what, strerror(errno));
    return false;
}

static void set_paths(struct subject *subject)
{
#define SET_PATH(path, name) snprintf(path, sizeof path, "%s/" name, subject->dir)
    SET_PATH(subject->config_path, "config.json");
    SET_PATH(subject->log_path, "log");
    SET_PATH(subject->socket_path, "socket");
    SET_PATH(subject->journal_path, "journal");
    SET_PATH(subject->board_path, "board");
}

/* Whether the daemon has a listener of HTTP. */
static bool has_http(const struct chaos *chaos)
{
    return (chaos->options.hostile >> HOSTILE_UNFETCHED & 1) != 0;
}

static void write_pool(FILE *file, const struct chaos *chaos, unsigned number)
{
    const struct subject *subject = &chaos->subject;

    fprintf(file,
            "%s\n {\"id\":\"p%u\",\"command\":\"%s\",\"instances\":%u,"
            "\"args\":[\"%s\",\"%s\",\"%llu\",\"%u\"],\"framing\":\"%s\"%s",
            number > 0 ? "," : "", number, chaos->options.worker, chaos->options.workers,
            subject->journal_path, subject->board_path, chaos->options.seed, number,
            wire_framing_words[chaos->options.worker_framing], chaos->options.keys);
    if (subject->programs > 0)
        fprintf(file, ",\"env\":{\"CHAOS_PROGRAM\":\"%u\"}", subject->programs);
    if (chaos_exclusive(chaos) || wire_stateless)
        fprintf(file, ",\"spare\":%d,\"busy_timeout_sec\":%d", LIMIT_SPARE, LIMIT_BUSY_SEC);
    fprintf(file, "}");
}

static void write_limits(FILE *file, const struct chaos *chaos)
{
    if (chaos->options.hostile != 0)
        fprintf(file,
                "\"max_input_buffer\":%d,\"backpressure_timeout_sec\":%d,\"max_connections\":%d,"
                "\"max_pending_requests\":%u,\"max_memory\":%d,\"slow_client_timeout_sec\":%d,"
                "\"abandoned_id_sec\":%d,\"half_close_sec\":%d,\"frame_timeout_sec\":%d,"
                "\"max_resume_total\":%d,\"session_idle_sec\":%d",
                SIEGE_INPUT, SIEGE_BACKPRESSURE_SEC, SIEGE_CONNECTIONS, chaos_max_sessions(chaos),
                SIEGE_MEMORY, SIEGE_SLOW_SEC, SIEGE_ABANDONED_SEC, SIEGE_HALF_CLOSE_SEC,
                SIEGE_FRAME_SEC, SIEGE_RESUME, SIEGE_IDLE_SEC);
    else
        fprintf(file,
                "\"max_input_buffer\":%d,\"backpressure_timeout_sec\":%d,\"max_connections\":%d,"
                "\"max_pending_requests\":%d",
                LIMIT_INPUT, LIMIT_BACKPRESSURE_SEC, LIMIT_CONNECTIONS, LIMIT_PENDING);
}

static bool write_config(const struct chaos *chaos)
{
    const struct subject *subject = &chaos->subject;
    FILE *file = fopen(subject->config_path, "w");

    if (file == NULL)
        return failed(subject->config_path);
    fprintf(file, "{\"pools\":[");
    for (unsigned i = 0; i < chaos->options.pools; i++)
        write_pool(file, chaos, i);
    fprintf(file,
            "],\n\"listen\":{\"framing\":\"%s\"},\n"
            "\"limits\":{\"max_restarts\":1000,\"restart_window_sec\":1,\"max_output_queue\":%d,"
            "\"drain_timeout_sec\":%d,\"max_sessions\":%u,",
            wire_framing_words[wire_framing], LIMIT_QUEUE, LIMIT_DRAIN_SEC,
            chaos_max_sessions(chaos));
    write_limits(file, chaos);
    fprintf(file, "}}\n");
    return fclose(file) == 0 || failed(subject->config_path);
}

/* Half a file: the daemon continues. */
static void write_fault(const struct chaos *chaos)
{
    FILE *file = fopen(chaos->subject.config_path, "w");

    if (file == NULL)
        return;
    fputs("{\"pools\":[{\"id\":\"p0\"", file);
    fclose(file);
}

void subject_reload(struct chaos *chaos)
{
    if (chaos->options.reload == 0 || chaos->subject.pid == 0 ||
        chaos->now_ms < chaos->next_reload_ms)
        return;
    chaos->next_reload_ms = chaos->now_ms + dice_between(&chaos->dice, 1, chaos->options.reload);
    if (dice_chance(&chaos->dice, 300)) {
        write_fault(chaos);
    } else {
        chaos->subject.programs += dice_chance(&chaos->dice, 500);
        if (!write_config(chaos))
            return;
    }
    chaos->stats.reloads++;
    kill(chaos->subject.pid, SIGHUP);
}

void subject_reload_last(struct chaos *chaos)
{
    if (chaos->options.reload > 0 && chaos->subject.pid != 0 && write_config(chaos))
        kill(chaos->subject.pid, SIGHUP);
}

static bool make_board(struct chaos *chaos)
{
    int fd = open(chaos->subject.board_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof *chaos->board) < 0)
        return failed(chaos->subject.board_path);
    chaos->board = mmap(NULL, sizeof *chaos->board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (chaos->board == MAP_FAILED)
        return failed("mmap");
    chaos->board->calm = true;
    chaos->board->mode = chaos->options.mode;
    chaos->board->stateless = wire_stateless;
    chaos->board->framing = chaos->options.worker_framing;
    chaos->board->bridged = wire_bridged;
    return true;
}

static bool make_journal(struct chaos *chaos)
{
    const char *path = chaos->subject.journal_path;

    if (mkfifo(path, 0600) < 0)
        return failed(path);
    chaos->journal = open(path,
                          O_RDWR | O_NONBLOCK | O_CLOEXEC); /* a writer of its own: it never ends */
    if (chaos->journal < 0)
        return failed(path);
#ifdef F_SETPIPE_SZ
    fcntl(chaos->journal, F_SETPIPE_SZ, JOURNAL_PIPE_BYTES);
#endif
    return true;
}

static void become_daemon(const struct chaos *chaos, int log)
{
    const struct subject *subject = &chaos->subject;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const char *mode = chaos->options.tcp ? "--tcp" : "--unix";
    const char *address = chaos->options.tcp ? "127.0.0.1:0" : subject->socket_path;
    const char *level = getenv("CHAOS_LOG_LEVEL");

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* it is ignored after nohup */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    execl(chaos->options.daemon, chaos->options.daemon, "--config", subject->config_path, mode,
          address, "--log-level", level != NULL ? level : "info", has_http(chaos) ? "--http" : NULL,
          "127.0.0.1:0", (char *)NULL);
    _exit(127);
}

static bool spawn(struct chaos *chaos)
{
    struct subject *subject = &chaos->subject;
    int log = open(subject->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    subject->log = open(subject->log_path, O_RDONLY | O_CLOEXEC);
    if (log < 0 || subject->log < 0)
        return failed(subject->log_path);
    subject->pid = fork();
    if (subject->pid == 0)
        become_daemon(chaos, log);
    close(log);
    return subject->pid > 0 || failed("fork");
}

/* The port in the log after these words, or 0. */
static uint16_t find_port(const struct subject *subject, const char *words)
{
    struct text log = {0};
    const char *at = NULL;
    uint16_t port = 0;

    if (read_file(&log, subject->log_path) && log.len > 0)
        at = strstr(log.data, words);
    if (at != NULL && strchr(at, '\n') != NULL)
        port = (uint16_t)strtoul(at + strlen(words), NULL, 10);
    text_free(&log);
    return port;
}

static bool listens(struct chaos *chaos)
{
    int fd;

    if (chaos->options.tcp && chaos->subject.port == 0)
        chaos->subject.port = find_port(&chaos->subject, "listening on 127.0.0.1:");
    if (has_http(chaos) && chaos->subject.http_port == 0)
        chaos->subject.http_port = find_port(&chaos->subject, "HTTP at http://127.0.0.1:");
    if (has_http(chaos) && chaos->subject.http_port == 0)
        return false;
    if (chaos->options.tcp)
        return chaos->subject.port != 0;
    fd = subject_connect(chaos);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Hostile clients of other users can connect. */
static bool open_to_all(const struct chaos *chaos)
{
    const struct subject *subject = &chaos->subject;

    if (chaos->options.tcp || !chaos->origins)
        return true;
    return (chmod(subject->dir, 0711) == 0 && chmod(subject->socket_path, 0666) == 0) ||
           failed(subject->socket_path);
}

bool subject_start(struct chaos *chaos)
{
    struct subject *subject = &chaos->subject;
    int64_t deadline = deadline_usual();

    snprintf(subject->dir, sizeof subject->dir, "/tmp/chaos-XXXXXX");
    if (mkdtemp(subject->dir) == NULL)
        return failed(subject->dir);
    set_paths(subject);
    if (!write_config(chaos) || !make_board(chaos) || !make_journal(chaos) || !spawn(chaos))
        return false;
    while (!listens(chaos)) {
        if (!subject_reap(chaos) || deadline_over(deadline)) {
            fprintf(stderr, "chaos: %s does not listen; its log is %s\n", chaos->options.daemon,
                    subject->log_path);
            return false;
        }
        nap();
    }
    return open_to_all(chaos);
}

/* The origin of a client; 0: an honest one. The hostile have others: each kind its own, but one in
 * exclusive pools, whose few processes are shared out by origin. */
static unsigned origin_of(const struct chaos *chaos, const unsigned *kind)
{
    if (kind == NULL || !chaos->origins)
        return 0;
    return chaos_exclusive(chaos) ? 1 : 1 + *kind;
}

/* Over TCP the origin is the address, else the user. */
static bool take_origin(int fd, bool tcp, unsigned origin)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + origin)};

    if (origin == 0)
        return true;
    if (!tcp)
        return seteuid(HOSTILE_UID + origin) == 0;
    return bind(fd, (const struct sockaddr *)&from, sizeof from) == 0;
}

static void leave_origin(bool tcp, unsigned origin)
{
    if (origin != 0 && !tcp && seteuid(0) != 0)
        abort();
}

/* `kind`: NULL for an honest client. */
static int connect_as(const struct chaos *chaos, const unsigned *kind)
{
    unsigned origin = origin_of(chaos, kind);
    bool http = kind != NULL && *kind == HOSTILE_UNFETCHED, by_tcp = chaos->options.tcp || http;
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in tcp = {
        .sin_family = AF_INET,
        .sin_port = htons(http ? chaos->subject.http_port : chaos->subject.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const void *address = by_tcp ? (const void *)&tcp : &local;
    socklen_t len = by_tcp ? sizeof tcp : sizeof local;
    int flags = SOCK_STREAM | SOCK_CLOEXEC | (kind != NULL ? SOCK_NONBLOCK : 0);
    int fd = socket(by_tcp ? AF_INET : AF_UNIX, flags, 0);
    bool connected;

    snprintf(local.sun_path, sizeof local.sun_path, "%s", chaos->subject.socket_path);
    if (fd < 0)
        return -1;
    connected = take_origin(fd, by_tcp, origin) &&
                (connect(fd, address, len) == 0 || (kind != NULL && errno == EINPROGRESS));
    leave_origin(by_tcp, origin);
    if (connected) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
    }
    close(fd);
    return -1;
}

int subject_connect(const struct chaos *chaos)
{
    return connect_as(chaos, NULL);
}

int subject_connect_hostile(const struct chaos *chaos, unsigned kind)
{
    return connect_as(chaos, &kind);
}

bool subject_reap(struct chaos *chaos)
{
    struct subject *subject = &chaos->subject;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == subject->pid) {
            subject->pid = 0;
            subject->status = status;
        } else {
            subject->orphans++;
            if (fleet_has_pid(&chaos->fleet, pid))
                violation(chaos, "the daemon did not wait for its worker %ld", (long)pid);
        }
    }
    return subject->pid != 0;
}

/* --- the end --- */

/* All children of this program outlived the daemon. Processes that it killed may take a moment. */
static void check_none_left(struct chaos *chaos)
{
    int64_t deadline = deadline_in(1);
    pid_t left[64];
    size_t count, i;

    while (proc_children(getpid(), left, 64) > 0 && !deadline_over(deadline)) {
        subject_reap(chaos);
        nap();
    }
    count = proc_children(getpid(), left, 64);
    for (i = 0; i < count && i < 64; i++) {
        violation(chaos, "process %ld outlived the daemon, in state %c", (long)left[i],
                  proc_state(left[i]));
        kill(left[i], SIGKILL);
    }
}

static void check_status(struct chaos *chaos)
{
    int status = chaos->subject.status;

    if (WIFSIGNALED(status))
        violation(chaos, "the daemon was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        violation(chaos, "the daemon exited with status %d", WEXITSTATUS(status));
}

void subject_stop(struct chaos *chaos)
{
    struct subject *subject = &chaos->subject;
    /* 1500 ms of grace; 3 s more for a process that SIGKILL does not end at once. */
    int64_t limit_ms = (int64_t)((LIMIT_DRAIN_SEC * 1000 + 1500 + 3000) * timeout_factor());
    int64_t start = now_ms();
    unsigned long long orphans;

    if (subject->pid == 0) {
        violation(chaos, "the daemon is gone");
        check_status(chaos);
        return;
    }
    orphans = subject->orphans;
    note_event(chaos, "SIGTERM to the daemon");
    kill(subject->pid, SIGTERM);
    while (subject_reap(chaos) && now_ms() - start < limit_ms + 20000)
        chaos_step(chaos, 5);
    if (subject->pid != 0) {
        violation(chaos, "the daemon did not exit after SIGTERM");
        kill(subject->pid, SIGKILL);
        waitpid(subject->pid, &subject->status, 0);
        return;
    }
    if (now_ms() - start > limit_ms)
        violation(chaos, "the daemon took %lld ms to exit after SIGTERM, drain_timeout_sec is %d",
                  (long long)(now_ms() - start), LIMIT_DRAIN_SEC);
    check_status(chaos);
    check_none_left(chaos);
    if (subject->orphans - orphans > 0)
        note_event(chaos, "%llu grandchildren ended with the daemon", subject->orphans - orphans);
    if (access(subject->socket_path, F_OK) == 0)
        violation(chaos, "the socket file is still there");
    subject_read_log(chaos);
}

void subject_clean_up(struct chaos *chaos)
{
    const struct subject *subject = &chaos->subject;

    if (subject->dir[0] == '\0' || chaos->verdict.violations > 0)
        return;
    unlink(subject->config_path);
    unlink(subject->log_path);
    unlink(subject->journal_path);
    unlink(subject->board_path);
    unlink(subject->socket_path);
    rmdir(subject->dir);
}
