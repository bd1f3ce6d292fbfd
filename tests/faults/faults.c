/* The layer between the daemon and the C library: in the daemon's objects each NAME of names.def is
 * renamed to faulty_NAME. Without a board it has no effect. */
#include "build_config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_KQUEUE
#include <sys/event.h>
#endif

#include "names.h"

#define DESCRIPTORS_MAX 256

extern const char __executable_start[]; /* the linker's */

static struct board *board;
static enum board_role role;
static int32_t allocations;
static enum { BEFORE_FAULT, IN_FAULTED_ROUND, AFTER_FAULTED_ROUND } moment;
static bool open_at_start[DESCRIPTORS_MAX];

/* FAULTY(type, name, (parameters)): the function that the daemon calls in place of NAME. */
#define FAULTY(type, name, parameters)                                                             \
    type faulty_##name parameters;                                                                 \
    type faulty_##name parameters

/* ---- the board ------------------------------------------------------------------------------ */

/* The C library passes the arguments of main. The check before an upgrade in place is a child. */
static void __attribute__((constructor)) begin(int argc, char *argv[])
{
    const char *path = getenv(BOARD_VARIABLE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED)
        abort();
    close(fd);
    if (argc > 1 && strcmp(argv[1], "--upgrade-check") == 0)
        role = ROLE_CHILD;
    for (fd = 0; fd < DESCRIPTORS_MAX; fd++)
        open_at_start[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* main has returned. */
static void __attribute__((destructor)) end(void)
{
    if (board == NULL || role != ROLE_DAEMON)
        return;
    board->allocations = allocations;
    for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS_MAX; fd++)
        board->descriptors += fcntl(fd, F_GETFD) >= 0 && !open_at_start[fd];
    board->ended = 1;
}

/* Counts a call; returns its number at this site. Children may count at the same time. */
static uint32_t count(uint64_t key)
{
    size_t at = (size_t)((key >> 16 ^ key >> 8 ^ key) * 2654435761u);

    for (;; at++) {
        struct site *site = &board->sites[at % BOARD_SITES];
        uint64_t empty = 0;

        if (__atomic_load_n(&site->key, __ATOMIC_SEQ_CST) == key ||
            __atomic_compare_exchange_n(&site->key, &empty, key, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST) ||
            empty == key)
            return __atomic_add_fetch(&site->calls, 1, __ATOMIC_SEQ_CST);
    }
}

/* True if the fault is for this call of this site. */
static bool is_meant(const struct fault *fault, uint64_t key, uint32_t number)
{
    if (fault->lasting)
        return site_kind(key) == site_kind(fault->key) &&
               __atomic_load_n(&board->armed, __ATOMIC_SEQ_CST) != 0 &&
               __atomic_load_n(&board->lifted, __ATOMIC_SEQ_CST) == 0;
    return key == fault->key && number == fault->number;
}

/* Notes a call between the first fault and the end of that round of the event loop. */
static void note_follower(uint64_t key, uint32_t number)
{
    struct call *followers = board->followers;
    uint32_t same = 0;

    for (uint32_t i = 0; i < board->follower_count; i++)
        same += followers[i].key == key;
    if (same < FOLLOWERS_SITE && board->follower_count < FOLLOWERS_MAX)
        followers[board->follower_count++] = (struct call){key, number};
}

/* The daemon is about to wait for events. */
static void end_round(void)
{
    if (moment == IN_FAULTED_ROUND)
        moment = AFTER_FAULTED_ROUND;
}

/* The error of this call; 0: none. */
static int fails(enum fault_name_index name, const void *caller)
{
    uint64_t key;
    uint32_t number;

    if (board == NULL)
        return 0;
    key = site_key(role, name, (uint64_t)((const char *)caller - __executable_start));
    number = count(key);
    if (moment == IN_FAULTED_ROUND && role == ROLE_DAEMON)
        note_follower(key, number);
    for (uint32_t i = 0; i < board->fault_count; i++) {
        if (!is_meant(&board->faults[i], key, number))
            continue;
        __atomic_add_fetch(&board->hits[i], 1, __ATOMIC_SEQ_CST);
        if (moment == BEFORE_FAULT)
            moment = IN_FAULTED_ROUND;
        if (board->faults[i].error != FAULT_SHORT)
            errno = board->faults[i].error;
        return board->faults[i].error;
    }
    return 0;
}

#define FAILS(name) fails(FAULT_##name, __builtin_return_address(0))

/* PLAIN(type, name, failure, (parameters), (arguments)): fails or calls. */
#define PLAIN(type, name, failure, parameters, arguments)                                          \
    FAULTY(type, name, parameters)                                                                 \
    {                                                                                              \
        return FAILS(name) ? (failure) : name arguments;                                           \
    }

PLAIN(int, access, -1, (const char *path, int mode), (path, mode))
PLAIN(int, accept4, -1, (int fd, struct sockaddr *to, socklen_t *len, int flags),
      (fd, to, len, flags))
PLAIN(int, bind, -1, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len))
PLAIN(int, chdir, -1, (const char *path), (path))
PLAIN(int, chmod, -1, (const char *path, mode_t mode), (path, mode))
PLAIN(size_t, confstr, 0, (int name, char *to, size_t size), (name, to, size))
PLAIN(int, connect, -1, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
PLAIN(int, dup2, -1, (int from, int to), (from, to))
PLAIN(int, epoll_create1, -1, (int flags), (flags))
PLAIN(int, execvp, -1, (const char *file, char *const *argv), (file, argv))
PLAIN(int, execv, -1, (const char *path, char *const *argv), (path, argv))
PLAIN(int, fchdir, -1, (int fd), (fd))
PLAIN(int, fchmodat, -1, (int at, const char *path, mode_t mode, int flags),
      (at, path, mode, flags))
PLAIN(DIR *, fdopendir, NULL, (int fd), (fd))
PLAIN(int, fflush, -1, (FILE * file), (file))
PLAIN(int, flock, -1, (int fd, int operation), (fd, operation))
PLAIN(int, fsync, -1, (int fd), (fd))
PLAIN(int, fputs, EOF, (const char *text, FILE *file), (text, file))
PLAIN(int, fstat, -1, (int fd, struct stat *to), (fd, to))
PLAIN(int, fstatat, -1, (int at, const char *path, struct stat *to, int flags),
      (at, path, to, flags))
PLAIN(int, futimens, -1, (int fd, const struct timespec *times), (fd, times))
PLAIN(int, getentropy, -1, (void *to, size_t len), (to, len))
PLAIN(struct group *, getgrnam, NULL, (const char *name), (name))
PLAIN(struct passwd *, getpwnam, NULL, (const char *name), (name))
PLAIN(char *, getcwd, NULL, (char *to, size_t size), (to, size))
PLAIN(struct passwd *, getpwuid, NULL, (uid_t uid), (uid))
PLAIN(int, getrlimit, -1, (unsigned what, struct rlimit *to), (what, to))
PLAIN(int, getsockname, -1, (int fd, struct sockaddr *to, socklen_t *len), (fd, to, len))
PLAIN(int, getsockopt, -1, (int fd, int level, int name, void *value, socklen_t *len),
      (fd, level, name, value, len))
PLAIN(struct tm *, gmtime_r, NULL, (const time_t *when, struct tm *to), (when, to))
PLAIN(struct tm *, localtime_r, NULL, (const time_t *when, struct tm *to), (when, to))
PLAIN(const char *, inet_ntop, NULL, (int family, const void *from, char *to, socklen_t size),
      (family, from, to, size))
PLAIN(int, inotify_add_watch, -1, (int fd, const char *path, uint32_t mask), (fd, path, mask))
PLAIN(int, inotify_init1, -1, (int flags), (flags))
PLAIN(int, isatty, 0, (int fd), (fd))
PLAIN(int, kill, -1, (pid_t pid, int signo), (pid, signo))
PLAIN(int, lchown, -1, (const char *path, uid_t user, gid_t group), (path, user, group))
PLAIN(int, lstat, -1, (const char *path, struct stat *to), (path, to))
PLAIN(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags))
PLAIN(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
PLAIN(int, mkstemp, -1, (char *path), (path))
PLAIN(DIR *, opendir, NULL, (const char *path), (path))
PLAIN(struct dirent *, readdir, NULL, (DIR * directory), (directory))
PLAIN(ssize_t, pread, -1, (int fd, void *to, size_t len, off_t at), (fd, to, len, at))
PLAIN(ssize_t, recv, -1, (int fd, void *to, size_t len, int flags), (fd, to, len, flags))
PLAIN(int, pipe2, -1, (int *fds, int flags), (fds, flags))
PLAIN(int, rename, -1, (const char *from, const char *to), (from, to))
PLAIN(int, renameat, -1, (int from_at, const char *from, int to_at, const char *to),
      (from_at, from, to_at, to))
PLAIN(int, setenv, -1, (const char *name, const char *value, int replaces), (name, value, replaces))
PLAIN(int, setpgid, -1, (pid_t pid, pid_t group), (pid, group))
PLAIN(int, setrlimit, -1, (unsigned what, const struct rlimit *to), (what, to))
PLAIN(int, setsockopt, -1, (int fd, int level, int name, const void *value, socklen_t len),
      (fd, level, name, value, len))
PLAIN(int, shutdown, -1, (int fd, int how), (fd, how))
PLAIN(int, sigprocmask, -1, (int how, const sigset_t *to, sigset_t *old), (how, to, old))
PLAIN(int, socket, -1, (int family, int type, int protocol), (family, type, protocol))
PLAIN(int, socketpair, -1, (int family, int type, int protocol, int ends[2]),
      (family, type, protocol, ends))
PLAIN(int, stat, -1, (const char *path, struct stat *to), (path, to))
PLAIN(long, sysconf, -1, (int name), (name))
PLAIN(int, timerfd_create, -1, (int clock, int flags), (clock, flags))
PLAIN(int, unlink, -1, (const char *path), (path))
PLAIN(int, unlinkat, -1, (int at, const char *path, int flags), (at, path, flags))
PLAIN(int, waitid, -1, (idtype_t which, id_t id, siginfo_t *child, int options),
      (which, id, child, options))
PLAIN(pid_t, waitpid, -1, (pid_t pid, int *status, int options), (pid, status, options))

/* ---- memory --------------------------------------------------------------------------------- */

static void *counted(void *memory)
{
    allocations += memory != NULL;
    return memory;
}

FAULTY(void *, malloc, (size_t size))
{
    return FAILS(malloc) ? NULL : counted(malloc(size));
}

FAULTY(void *, calloc, (size_t count_, size_t size))
{
    return FAILS(calloc) ? NULL : counted(calloc(count_, size));
}

FAULTY(void *, realloc, (void *memory, size_t size))
{
    bool fresh = memory == NULL;
    void *moved = FAILS(realloc) ? NULL : realloc(memory, size);

    return fresh ? counted(moved) : moved;
}

FAULTY(void, free, (void *memory))
{
    allocations -= memory != NULL;
    free(memory);
}

/* ---- time ----------------------------------------------------------------------------------- */

FAULTY(int, clock_gettime, (clockid_t clock, struct timespec *to))
{
    int64_t ns;

    if (FAILS(clock_gettime))
        return -1;
    if (clock_gettime(clock, to) != 0 || board == NULL || clock != CLOCK_MONOTONIC)
        return 0;
    ns = ((int64_t)to->tv_sec * 1000000000 + to->tv_nsec) * board->speed;
    to->tv_sec = (time_t)(ns / 1000000000) +
                 (time_t)__atomic_load_n(&board->ahead_sec, __ATOMIC_SEQ_CST);
    to->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

/* A timeout on the daemon's clock, in real time. */
static int shortened(int timeout_ms)
{
    if (board == NULL)
        return timeout_ms;
    __atomic_add_fetch(&board->waits, 1, __ATOMIC_SEQ_CST);
    return timeout_ms > 0 ? (timeout_ms - 1) / (int)board->speed + 1 : timeout_ms;
}

FAULTY(int, epoll_wait, (int fd, struct epoll_event *events, int max, int timeout_ms))
{
    timeout_ms = shortened(timeout_ms);
    end_round();
    return FAILS(epoll_wait) ? -1 : epoll_wait(fd, events, max, timeout_ms);
}

FAULTY(int, poll, (struct pollfd * fds, nfds_t len, int timeout_ms))
{
    timeout_ms = shortened(timeout_ms);
    if (len > 1) /* by the event loop */
        end_round();
    return FAILS(poll) ? -1 : poll(fds, len, timeout_ms);
}

PLAIN(int, select, -1,
      (int count, fd_set *input, fd_set *output, fd_set *other, struct timeval *timeout),
      (count, input, output, other, timeout))

#ifdef HAVE_KQUEUE
PLAIN(int, kqueue, -1, (void), ())

FAULTY(int, kevent,
       (int fd, const struct kevent *changes, int change_count, struct kevent *events,
        int event_count, const struct timespec *timeout))
{
    bool removes = change_count > 0 && (changes->flags & EV_DELETE) != 0;
    struct timespec sooner = {0};

    if (event_count > 0)
        end_round();
    if (event_count > 0 && timeout == NULL)
        shortened(-1);
    if (event_count > 0 && timeout != NULL) {
        int ms = shortened((int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000));

        sooner.tv_sec = ms / 1000;
        sooner.tv_nsec = (long)(ms % 1000) * 1000000;
        timeout = &sooner;
    }
    if (!removes && FAILS(kevent))
        return -1;
    return kevent(fd, changes, change_count, events, event_count, timeout);
}
#endif

/* ---- short reads and writes ----------------------------------------------------------------- */

#define SHORTENED(type, name, parameters, short_call, whole_call)                                  \
    FAULTY(type, name, parameters)                                                                 \
    {                                                                                              \
        int error = FAILS(name);                                                                   \
                                                                                                   \
        if (error == FAULT_SHORT)                                                                  \
            return short_call;                                                                     \
        return error != 0 ? -1 : whole_call;                                                       \
    }

SHORTENED(ssize_t, read, (int fd, void *to, size_t len), read(fd, to, len > 0), read(fd, to, len))
SHORTENED(ssize_t, send, (int fd, const void *from, size_t len, int flags),
          send(fd, from, len > 0, flags), send(fd, from, len, flags))
SHORTENED(ssize_t, writev, (int fd, const struct iovec *from, int count_),
          write(fd, from->iov_base, 1), writev(fd, from, count_))

/* ENOSPC is for files only. */
static bool is_on_disk(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

FAULTY(ssize_t, write, (int fd, const void *from, size_t len))
{
    int error = FAILS(write);

    if (error == FAULT_SHORT)
        return write(fd, from, len > 0);
    if (error == 0 || (error == ENOSPC && !is_on_disk(fd)))
        return write(fd, from, len);
    return -1;
}

/* ---- the rest ------------------------------------------------------------------------------- */

FAULTY(int, close, (int fd))
{
    int error = FAILS(close), status = close(fd);

    if (error == 0)
        return status;
    errno = error;
    return -1;
}

FAULTY(int, epoll_ctl, (int fd, int operation, int of, struct epoll_event *event))
{
    if (operation != EPOLL_CTL_DEL && FAILS(epoll_ctl))
        return -1;
    return epoll_ctl(fd, operation, of, event);
}

FAULTY(int, sigaction, (int signo, const struct sigaction *to, struct sigaction *old))
{
    if (FAILS(sigaction))
        return -1;
    if (board != NULL && role == ROLE_DAEMON && signo == SIGTERM && to != NULL &&
        to->sa_handler == SIG_DFL)
        __atomic_store_n(&board->deaf, 1, __ATOMIC_SEQ_CST);
    return sigaction(signo, to, old);
}

FAULTY(pid_t, fork, (void))
{
    pid_t pid = FAILS(fork) ? -1 : fork();

    if (pid == 0) /* a child that forks makes a daemon */
        role = role == ROLE_DAEMON ? ROLE_CHILD : ROLE_DAEMON;
    return pid;
}

FAULTY(int, getaddrinfo,
       (const char *host, const char *service, const struct addrinfo *hints,
        struct addrinfo **found))
{
    int error = FAILS(getaddrinfo);

    if (error == EAI_SYSTEM)
        errno = ENOMEM;
    return error != 0 ? error : getaddrinfo(host, service, hints, found);
}

FAULTY(int, listen, (int fd, int backlog))
{
    socklen_t len = sizeof(struct sockaddr_storage);
    int status = FAILS(listen) ? -1 : listen(fd, backlog);
    int error = errno;

    if (board != NULL && getsockname(fd, (struct sockaddr *)&board->address, &len) == 0)
        __atomic_store_n(&board->address_len, len, __ATOMIC_SEQ_CST);
    errno = error;
    return status;
}

/* ---- variadic: the C library ignores arguments that were not given -------------------------- */

/* One optional argument of type `argument_type`. */
#define VARIADIC(type, name, parameters, last, argument_type, call)                                \
    FAULTY(type, name, parameters)                                                                 \
    {                                                                                              \
        va_list arguments;                                                                         \
        argument_type argument;                                                                    \
                                                                                                   \
        va_start(arguments, last);                                                                 \
        argument = va_arg(arguments, argument_type);                                               \
        va_end(arguments);                                                                         \
        return FAILS(name) ? -1 : call;                                                            \
    }

VARIADIC(int, fcntl, (int fd, int command, ...), command, long, fcntl(fd, command, argument))
VARIADIC(int, ioctl, (int fd, unsigned long request, ...), request, void *,
         ioctl(fd, request, argument))
VARIADIC(int, open, (const char *path, int flags, ...), flags, unsigned,
         open(path, flags, argument))
VARIADIC(int, openat, (int at, const char *path, int flags, ...), flags, unsigned,
         openat(at, path, flags, argument))
VARIADIC(int, prctl, (int option, ...), option, unsigned long, prctl(option, argument, 0, 0, 0))

FAULTY(long, syscall, (long number, ...))
{
    va_list arguments;
    unsigned values[3];

    va_start(arguments, number);
    for (size_t i = 0; i < 3; i++)
        values[i] = va_arg(arguments, unsigned);
    va_end(arguments);
    return FAILS(syscall) ? -1 : syscall(number, values[0], values[1], values[2]);
}
