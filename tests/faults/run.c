#include "build_config.h"

#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "names.h"
#include "proc.h"

#define ARGUMENTS_MAX 12
#define LONGEST_MS 30000 /* for what comes for certain */
#define WAITS_MAX 3000   /* for events: a run needs hundreds, a spinning loop many thousands */
#define TERM_AGAIN_MS 500
#define PATH_SIZE 160

/* Of a shared server. */
#define SHARED_DIR "stdio_bus"
#define SHARED_FILE SHARED_DIR "/a@" PACKAGE_VERSION ".sock"
#define SHARED_LOG SHARED_DIR "/a@" PACKAGE_VERSION ".log"
#define SHARED_LOCK SHARED_DIR "/lock"
#define OLD_LOG SHARED_DIR "/old.log"

/* ---- the end -------------------------------------------------------------------------------- */

/* DIR/name in `path`. */
static const char *path_of(const struct run *run, char path[PATH_SIZE], const char *name)
{
    snprintf(path, PATH_SIZE, "%s/%s", run->dir, name);
    return path;
}

static void take_log(struct run *run)
{
    ssize_t n;

    if (run->log < 0)
        return;
    do {
        n = read(run->log, text_room(&run->log_text, 65536), 65536);
        if (n > 0)
            run->log_text.len += (size_t)n;
    } while (n > 0);
    text_add(&run->log_text, "", 1);
    run->log_text.len--;
}

/* If it is there. */
static void empty_directory(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        (void)unlinkat(dirfd(directory), entry->d_name, 0); /* not . and .. */
    if (directory != NULL)
        closedir(directory);
}

static void finish(struct run *run) __attribute__((noreturn));
static void finish(struct run *run)
{
    static const char *const files[] = {"board",
                                        "broken",
                                        "config",
                                        "config.toml",
                                        "control",
                                        "input",
                                        "log",
                                        "manager",
                                        "openssl",
                                        "pool-1.json",
                                        "socket",
                                        "syslog",
                                        "token",
                                        "http",
                                        "watched/a",
                                        "watched/.b",
                                        "bus/rmp.sock",
                                        SHARED_LOG,
                                        OLD_LOG,
                                        SHARED_LOCK,
                                        SHARED_FILE,
                                        SHARED_DIR "/b.sock",
                                        SHARED_DIR "/a.sock",
                                        SHARED_DIR "/a.log"};
    char path[PATH_SIZE];

    run->outcome->board = *run->board;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(path_of(run, path, files[i]));
    rmdir(path_of(run, path, SHARED_DIR));
    rmdir(path_of(run, path, "watched"));
    empty_directory(path_of(run, path, "bus/runs"));
    rmdir(path);
    rmdir(path_of(run, path, "bus"));
    rmdir(run->dir);
    _exit(0);
}

/* Writes what happened, and the end of the log. */
static void tell(struct run *run, const char *what)
{
    size_t start;

    take_log(run);
    start = run->log_text.len > 3000 ? run->log_text.len - 3000 : 0;
    snprintf(run->outcome->text, RUN_TEXT_MAX, "%s\n%s", what,
             run->log_text.data != NULL ? run->log_text.data + start : "");
}

void run_fail(struct run *run, const char *format, ...)
{
    char what[512];
    pid_t left[64];
    size_t count;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (run->daemon > 0)
        kill(run->daemon, SIGKILL);
    count = proc_children(getpid(), left, 64);
    while (count > 0 && count <= 64)
        kill(left[--count], SIGKILL);
    tell(run, what);
    finish(run);
}

void run_arm(struct run *run)
{
    __atomic_store_n(&run->board->armed, 1, __ATOMIC_SEQ_CST);
}

void run_lift(struct run *run)
{
    if (run->board->fault_count > 0 && run->board->faults[0].lasting)
        __atomic_store_n(&run->board->lifted, 1, __ATOMIC_SEQ_CST);
}

void run_skip(struct run *run, unsigned seconds)
{
    __atomic_add_fetch(&run->board->ahead_sec, seconds, __ATOMIC_SEQ_CST);
}

bool run_alive(struct run *run)
{
    if (run->daemon > 0 && waitpid(run->daemon, &run->status, WNOHANG) == run->daemon)
        run->daemon = 0;
    return run->daemon > 0;
}

void run_terminate(struct run *run)
{
    run->terminated = now_ms();
    if (run->daemon > 0 && __atomic_load_n(&run->board->deaf, __ATOMIC_SEQ_CST) == 0)
        kill(run->daemon, SIGTERM);
}

void run_insist(struct run *run)
{
    if (run->terminated > 0 && now_ms() - run->terminated > TERM_AGAIN_MS)
        run_terminate(run);
}

const char *run_log(struct run *run)
{
    take_log(run);
    return run->log_text.data;
}

bool run_logged(struct run *run, const char *text)
{
    take_log(run);
    return run->log_text.data != NULL && strstr(run->log_text.data, text) != NULL;
}

bool run_is_stalled(const struct run *run, int64_t began_ms, int stall_ms)
{
    int64_t passed_ms = now_ms() - began_ms;
    bool has_failed = false;

    for (uint32_t i = 0; i < run->board->fault_count; i++)
        has_failed = has_failed || __atomic_load_n(&run->board->hits[i], __ATOMIC_SEQ_CST) > 0;
    return passed_ms >= (has_failed ? stall_ms : LONGEST_MS);
}

void run_await_wait(struct run *run)
{
    int64_t deadline = deadline_usual();

    while (__atomic_load_n(&run->board->waits, __ATOMIC_SEQ_CST) == 0 && run_alive(run)) {
        if (deadline_over(deadline))
            run_fail(run, "the daemon does not wait for events");
        nap();
    }
}

static void await_end(struct run *run)
{
    int64_t deadline = deadline_usual();

    while (run_alive(run)) {
        if (deadline_over(deadline))
            run_fail(run, "the daemon does not end");
        run_insist(run);
        nap();
    }
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void must(bool done, const char *what)
{
    if (done)
        return;
    perror(what);
    abort();
}

/* The socket DIR/NAME, to which the daemon sends datagrams. */
static int datagram_socket(const struct run *run, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[PATH_SIZE];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    path_of(run, path, name);
    must(strlen(path) < sizeof address.sun_path, path);
    memcpy(address.sun_path, path, strlen(path));
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    return fd;
}

/* theirs: the daemon's ends of stdin, stdout and stderr. */
static void open_ends(struct run *run, int theirs[3])
{
    int in[2], out[2], log[2];

    must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe2");
    if (run->scene->input != NULL) {
        char path[PATH_SIZE];

        close(in[0]);
        path_of(run, path, "input");
        in[0] = open(run->scene->input[0] != '\0' ? path : "/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (run->scene->log == STDERR_SOCKET) {
        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, log) == 0, "socketpair");
    } else if (run->scene->log == STDERR_PIPE) {
        must(pipe2(log, O_CLOEXEC) == 0, "pipe2");
    } else {
        log[1] = open(run->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        log[0] = run->scene->log == SYSTEM_LOG ? datagram_socket(run, "syslog")
                                               : open(run->log_path, O_RDONLY | O_CLOEXEC);
        must(log[0] >= 0 && log[1] >= 0, run->log_path);
    }
    must(fcntl(log[0], F_SETFL, O_NONBLOCK) == 0, "fcntl");
    if (run->scene->stdin_nonblocking)
        must(fcntl(in[0], F_SETFL, O_NONBLOCK) == 0, "fcntl");
    theirs[0] = in[0];
    theirs[1] = out[1];
    theirs[2] = log[1];
    run->to = in[1];
    run->from = out[0];
    run->log = log[0];
}

/* Spells a text of a scene out. */
static void expand(const struct run *run, struct text *to, const char *from)
{
    char port[16], uid[16], gid[16];

    snprintf(port, sizeof port, "%u", run->port);
    snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    snprintf(gid, sizeof gid, "%u", (unsigned)getegid());
    text_add(to, from, strlen(from));
    text_replace(to, "@PORT@", port);
    text_replace(to, "@UID@", uid);
    text_replace(to, "@GID@", gid);
    text_replace(to, "@DIR@", run->dir);
    text_replace(to, "@WORKER@", getenv("TEST_WORKER"));
    text_quote(to, 0);
}

static void write_text(const struct run *run, const char *name, const char *from, mode_t mode)
{
    struct text text = {0};
    char path[PATH_SIZE];
    int fd;

    if (from == NULL)
        return;
    expand(run, &text, from);
    fd = open(path_of(run, path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    must(fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len, path);
    close(fd);
    text_free(&text);
}

void run_write_config(struct run *run, const char *config)
{
    write_text(run, "config", config, 0600);
}

void run_write_stdin(struct run *run, const char *from)
{
    struct text text = {0};

    expand(run, &text, from);
    if (write(run->to, text.data, text.len) < 0 && errno != EPIPE) /* the daemon may have ended */
        run_fail(run, "its stdin cannot be written to: %s", strerror(errno));
    close(run->to);
    run->to = -1;
    text_free(&text);
}

static int bound_socket(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0 && bind(fd, address, len) == 0, "bind");
    return fd;
}

/* A socket at DIR/socket, without a listener. */
static int make_socket(struct run *run)
{
    run->address.sun_family = AF_UNIX;
    snprintf(run->address.sun_path, sizeof run->address.sun_path, "%s/socket", run->dir);
    return bound_socket(AF_UNIX, &run->address, sizeof run->address);
}

static int make_tcp_socket(struct run *run)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = bound_socket(AF_INET, &address, len);

    must(getsockname(fd, (struct sockaddr *)&address, &len) == 0, "getsockname");
    run->port = ntohs(address.sin_port);
    return fd;
}

void run_make_dir(const struct run *run, const char *name)
{
    char path[PATH_SIZE];

    must(mkdir(path_of(run, path, name), 0700) == 0, path);
}

/* The log of a daemon of long ago. */
static void make_shared_directory(const struct run *run)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char path[PATH_SIZE];
    int fd;

    run_make_dir(run, SHARED_DIR);
    fd = open(path_of(run, path, OLD_LOG), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0 && futimens(fd, old) == 0, path);
    close(fd);
}

/* Two names of one socket. */
static int make_shared_sockets(struct run *run)
{
    char b[PATH_SIZE];
    int fd;

    run->address.sun_family = AF_UNIX;
    snprintf(run->address.sun_path, sizeof run->address.sun_path, "%s/%s", run->dir,
             SHARED_DIR "/a.sock");
    fd = bound_socket(AF_UNIX, &run->address, sizeof run->address);
    must(link(run->address.sun_path, path_of(run, b, SHARED_DIR "/b.sock")) == 0, b);
    return fd;
}

static void make_listener(struct run *run)
{
    switch (run->scene->listener) {
    case NO_LISTENER:
        return;
    case UNIX_LISTENER:
        run->listener = make_socket(run);
        break;
    case TCP_LISTENER:
        run->listener = make_tcp_socket(run);
        break;
    case SHARED_LISTENER:
        run->listener = make_shared_sockets(run);
    }
    must(listen(run->listener, 5) == 0, "listen");
}

static void make_board(struct run *run, const struct test *test)
{
    char path[PATH_SIZE];
    int fd = open(path_of(run, path, "board"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0 && ftruncate(fd, sizeof *run->board) == 0, path);
    run->board = mmap(NULL, sizeof *run->board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(run->board != MAP_FAILED, "mmap");
    close(fd);
    memcpy(run->board->faults, test->faults, sizeof test->faults);
    run->board->fault_count = test->fault_count;
    run->board->speed = test->repeated ? BOARD_SPEED_LOW : BOARD_SPEED;
    setenv(BOARD_VARIABLE, path, 1);
}

/* The daemon reports to this socket, which nobody reads. */
static void make_manager(struct run *run)
{
    char path[PATH_SIZE];

    unsetenv("NOTIFY_SOCKET");
    if (!run->scene->manager)
        return;
    run->manager = datagram_socket(run, "manager");
    setenv("NOTIFY_SOCKET", path_of(run, path, "manager"), 1);
}

static void limit_descriptors(rlim_t count)
{
    struct rlimit limit;

    if (count == 0)
        return;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = count;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

/* In the child: what a service manager leaves there. */
static void be_started_by_manager(const struct run *run)
{
    struct stat status;
    char text[64];
    int fd;

    unsetenv("JOURNAL_STREAM");
    if (!run->scene->manager)
        return;
    must(fstat(2, &status) == 0, "fstat");
    snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    setenv("JOURNAL_STREAM", text, 1);
    if (run->listener < 0)
        return;
    fd = fcntl(run->listener, F_DUPFD, 10);
    dup2(fd, 3);
    dup2(fd, 4);
    close(fd);
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_FDNAMES", "first:second", 1);
    snprintf(text, sizeof text, "%ld", (long)getpid());
    setenv("LISTEN_PID", text, 1);
}

static void start(struct run *run)
{
    const char *program = getenv("FAULTY_BUS");
    struct text words[ARGUMENTS_MAX] = {{0}};
    char *argv[ARGUMENTS_MAX + 1] = {(char *)(uintptr_t)program};
    int theirs[3];

    for (size_t i = 0; run->scene->arguments[i] != NULL && i + 1 < ARGUMENTS_MAX; i++) {
        expand(run, &words[i], run->scene->arguments[i]);
        argv[i + 1] = words[i].data;
    }
    open_ends(run, theirs);
    if (run->scene->no_path)
        unsetenv("PATH");
    setenv("XDG_RUNTIME_DIR", run->dir, 1);
    setenv("XDG_CACHE_HOME", run->dir, 1);
    setenv("XDG_CONFIG_HOME", run->dir, 1);
    run->daemon = fork();
    must(run->daemon >= 0, "fork");
    if (run->daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        limit_descriptors(run->scene->descriptors);
        for (int fd = 0; fd < 3; fd++)
            dup2(theirs[fd], fd);
        be_started_by_manager(run);
        execv(program, argv);
        _exit(125);
    }
    for (int fd = 0; fd < 3; fd++)
        close(theirs[fd]);
    if (run->scene->manager && run->listener >= 0)
        close(run->listener);
    for (size_t i = 0; i < ARGUMENTS_MAX; i++)
        text_free(&words[i]);
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static bool is_documented(int status)
{
    static const int documented[] = {0, 1, 2, 64, 65, 69, 71, 74, 75, 76, 78};

    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        if (status == documented[i])
            return true;
    }
    return false;
}

/* True if the log names this fault. */
static bool is_named(const char *log, const struct fault *fault)
{
    if (strstr(log, RUN_NO_PAGE) != NULL)
        return true;
    if (fault->lasting && strstr(log, "the daemon does not start") != NULL)
        return true; /* it had no log yet */
    switch (site_name(fault->key)) {
    case FAULT_getaddrinfo:
        return strstr(log, fault->error == EAI_SYSTEM ? strerror(ENOMEM)
                                                      : gai_strerror(fault->error)) != NULL;
    case FAULT_clock_gettime: /* a deadline is over too soon */
        if (strstr(log, strerror(ETIMEDOUT)) != NULL)
            return true;
        break;
    case FAULT_lstat: /* the file exists, as bind finds */
    case FAULT_unlink:
        if (fault->error == ENOENT && strstr(log, strerror(EADDRINUSE)) != NULL)
            return true;
        break;
    case FAULT_read: /* so a terminal or a client leaves */
        if ((fault->error == EIO || fault->error == ECONNRESET) && strstr(log, "hung up") != NULL)
            return true;
        break;
    case FAULT_write: /* the child could not report its error */
        if (site_role(fault->key) == ROLE_CHILD && strstr(log, "exited with status 126") != NULL)
            return true;
        break;
    }
    if (fault->error == FAULT_SHORT)
        return strstr(log, "ERROR") != NULL || strstr(log, "WARN") != NULL;
    return strstr(log, strerror(fault->error)) != NULL ||
           (fault->error == ENOMEM && strstr(log, "out of memory") != NULL);
}

/* How many faults are calls of this function; error 0: with any error. */
static unsigned count_faults(const struct board *board, unsigned name, int error)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < board->fault_count; i++)
        count += site_name(board->faults[i].key) == name &&
                 (error == 0 || board->faults[i].error == error);
    return count;
}

static bool has_fault(const struct board *board, unsigned name, int error)
{
    return count_faults(board, name, error) > 0;
}

/* True if the log names one of the faults, or nothing can be logged. */
static bool is_reported(const struct run *run)
{
    bool no_poll = run->board->faults[0].lasting && has_fault(run->board, FAULT_poll, 0);
    bool mute = has_fault(run->board, FAULT_fputs, 0) || no_poll ||
                strstr(run->log_text.data, "log lines dropped") != NULL;
    bool reported = false;

    for (uint32_t i = 0; i < run->board->fault_count; i++) {
        run->outcome->reported[i] = mute || is_named(run->log_text.data, &run->board->faults[i]);
        reported = reported || run->outcome->reported[i];
    }
    return reported;
}

/* True if neither program of an upgrade could continue: a state that was not taken is left
 * alone. */
static bool has_given_up(const struct run *run)
{
    return strstr(run->log_text.data, "the program before cannot go on") != NULL ||
           strstr(run->log_text.data, "neither the next program nor this one") != NULL;
}

/* The name of a process that has ended, or ends. */
static void read_name(pid_t pid, char name[64])
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%63[^\n]", name) != 1)
        snprintf(name, 64, "?");
    if (file != NULL)
        fclose(file);
}

/* The daemon must have reaped all processes, if it could kill them and wait for their end. */
static void check_children(struct run *run)
{
    siginfo_t child = {.si_pid = 0};
    char name[64] = "";
    int status = 0;
    pid_t pid;

    if (waitid(P_ALL, 0, &child, WEXITED | WNOWAIT) == 0)
        read_name(child.si_pid, name);
    pid = waitpid(-1, &status, 0);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    if (WIFSIGNALED(status) && strstr(run->log_text.data, "cannot wait for events") != NULL)
        return;
    if (pid > 0 && !has_fault(run->board, FAULT_waitpid, 0) &&
        count_faults(run->board, FAULT_kill, 0) < 2 && !has_given_up(run))
        run_fail(run, "process %ld (%s) outlived the daemon", (long)pid, name);
}

/* True if the only fault is a call that the daemon must repeat. */
static bool is_passing(const struct board *board)
{
    static const enum fault_name_index repeated[] = {FAULT_accept4, FAULT_epoll_wait, FAULT_kevent,
                                                     FAULT_poll,    FAULT_read,       FAULT_send,
                                                     FAULT_waitpid, FAULT_write,      FAULT_writev};
    int error = board->faults[0].error;

    if (board->fault_count != 1 || board->faults[0].lasting ||
        site_role(board->faults[0].key) == ROLE_CHILD ||
        (error != EINTR && error != EAGAIN && error != FAULT_SHORT))
        return false;
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++) {
        if (site_name(board->faults[0].key) == repeated[i])
            return true;
    }
    return false;
}

/* True for an end that no fault excuses; sanitizers end the program with status 1. */
static bool has_crashed(int status)
{
    if (!WIFSIGNALED(status))
        return !is_documented(WEXITSTATUS(status));
    return WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS ||
           WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGFPE || WTERMSIG(status) == SIGILL;
}

/* Ends the daemon of a shared server. Its log counts too. */
static void end_shared(struct run *run)
{
    int64_t deadline = deadline_usual();
    struct text log = {0};
    char path[PATH_SIZE];
    pid_t left[64], ended;
    int status;

    if (!run->scene->shares)
        return;
    while ((ended = waitpid(-1, &status, WNOHANG)) >= 0) {
        size_t count = ended == 0 ? proc_children(getpid(), left, 64) : 0;

        if (ended > 0 && WIFSIGNALED(status) && has_crashed(status))
            run_fail(run, "the shared daemon was killed by signal %d", WTERMSIG(status));
        if (deadline_over(deadline))
            run_fail(run, "the shared daemon does not end");
        while (count > 0 && count <= 64)
            kill(left[--count], SIGTERM);
        nap();
    }
    if (read_file(&log, path_of(run, path, SHARED_LOG)))
        text_add(&run->log_text, log.data, log.len);
    text_free(&log);
}

/* What the daemon has written to stderr counts, too. */
static void take_stderr(struct run *run)
{
    struct text text = {0};

    if (run->scene->log == SYSTEM_LOG && read_file(&text, run->log_path))
        text_add(&run->log_text, text.data, text.len);
    text_free(&text);
}

/* True for a daemon that a signal of the scene has met at its very end, where it catches none. */
static bool is_hung_up(const struct run *run)
{
    return run->hung_up && run->board->fault_count > 0 && WIFSIGNALED(run->status) &&
           WTERMSIG(run->status) == SIGHUP;
}

/* Whether the program may exit with another status: it says which files and daemons it found, and a
 * call that failed hid one. */
static bool is_other_verdict(const struct run *run)
{
    static const int nothing[] = {ENOENT, ECONNREFUSED, ECONNRESET, EPIPE};
    bool finds_nothing = false;

    for (uint32_t i = 0; i < run->board->fault_count; i++) {
        for (size_t at = 0; at < sizeof nothing / sizeof nothing[0]; at++)
            finds_nothing = finds_nothing || run->board->faults[i].error == nothing[at];
    }
    return run->scene->is_verdict && finds_nothing;
}

static void judge(struct run *run)
{
    struct board *board = run->board;
    int status = WEXITSTATUS(run->status);
    const char *lost = run->client_lost ? ", a client was lost" : "";
    bool reported, wrong = status != run->scene->exit_status || run->client_lost;

    take_log(run);
    take_stderr(run);
    reported = is_reported(run);
    run->outcome->crashed = has_crashed(run->status);
    if (is_hung_up(run))
        return;
    if (WIFSIGNALED(run->status))
        run_fail(run, "the daemon was killed by signal %d", WTERMSIG(run->status));
    if (!is_documented(status))
        run_fail(run, "exit status %d", status);
    if (wrong && (board->fault_count == 0 || is_passing(board)))
        run_fail(run, "exit status %d%s", status, lost);
    if (wrong && !reported && !is_other_verdict(run))
        run_fail(run, "exit status %d%s, without a reason in the log", status, lost);
    if (!board->ended)
        run_fail(run, "main did not return");
    if ((board->allocations != 0 || board->descriptors != 0) && !has_given_up(run))
        run_fail(run, "left: %d allocations, %d descriptors", board->allocations,
                 board->descriptors);
    if (board->waits > WAITS_MAX)
        run_fail(run, "it waited %u times for events: it spins", board->waits);
    check_children(run);
    if (run->scene->socket && access(run->address.sun_path, F_OK) == 0 && !reported &&
        !has_fault(board, FAULT_lstat, ENOENT) && !has_fault(board, FAULT_unlink, ENOENT))
        run_fail(run, "the socket is left, without a reason in the log");
}

void run_test(const struct test *test, unsigned number, struct outcome *outcome)
{
    const struct scene *scene = test->scene;
    struct run run = {
        .scene = scene, .outcome = outcome, .to = -1, .from = -1, .log = -1, .listener = -1};

    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_DFL); /* a daemon leaves it ignored where it is (nohup) */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(run.dir, sizeof run.dir, "%s/%u", getenv("FAULTS_DIR"), number);
    must(mkdir(run.dir, 0700) == 0, run.dir);
    path_of(&run, run.log_path, "log");
    make_board(&run, test);
    write_text(&run, "config.toml", scene->toml, 0600);
    write_text(&run, "pool-1.json", scene->included, 0600);
    write_text(&run, "token", scene->token ? "faults\n" : NULL, 0600);
    write_text(&run, "input", scene->input, 0600);
    write_text(&run, "broken", "#!/dev/null/nothing\n", 0700);
    if (scene->socket)
        close(make_socket(&run));
    if (scene->shares)
        make_shared_directory(&run);
    if (scene->prepare != NULL)
        scene->prepare(&run);
    make_listener(&run);
    write_text(&run, "config", scene->config, 0600); /* it may name the port */
    make_manager(&run);
    start(&run);
    scene->play(&run);
    await_end(&run);
    end_shared(&run);
    judge(&run);
    tell(&run, "a fault is neither in the log nor in silent.txt"); /* where one must be */
    outcome->passed = true;
    finish(&run);
}
