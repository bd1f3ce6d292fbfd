/* The library while the C library fails: each allocation and each system call, once. The program is
 * told by a code, or the bus overcomes it; nothing is left in any case. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed_fixture.h"

#define FDS_MAX 128
#define SECONDS_MAX 20 /* of one run */
#define STEP_MS 10     /* without a poll_fd */

enum call {
    CALL_MALLOC,
    CALL_CALLOC,
    CALL_REALLOC,
    CALL_TIMERFD,
    CALL_EPOLL_CREATE,
    CALL_EPOLL_CTL,
    CALL_EPOLL_WAIT,
    CALL_PIPE,
    CALL_FCNTL,
    CALL_FORK,
    CALL_PIDFD, /* and all that goes by syscall */
    CALL_WAITPID,
    CALL_READ,
    CALL_WRITE,
    CALL_WRITEV,
    CALL_SOCKET,
    CALL_BIND,
    CALL_LISTEN,
    CALL_ACCEPT,
    CALLS
};

static const int errors[CALLS] = {
    [CALL_MALLOC] = ENOMEM,     [CALL_CALLOC] = ENOMEM,       [CALL_REALLOC] = ENOMEM,
    [CALL_TIMERFD] = EMFILE,    [CALL_EPOLL_CREATE] = EMFILE, [CALL_EPOLL_CTL] = ENOMEM,
    [CALL_EPOLL_WAIT] = ENOMEM, [CALL_PIPE] = EMFILE,         [CALL_FCNTL] = EMFILE,
    [CALL_FORK] = EAGAIN,       [CALL_PIDFD] = EMFILE,        [CALL_WAITPID] = ECHILD,
    [CALL_READ] = EIO,          [CALL_WRITE] = EIO,           [CALL_WRITEV] = EIO,
    [CALL_SOCKET] = EMFILE,     [CALL_BIND] = EADDRINUSE,     [CALL_LISTEN] = EADDRINUSE,
    [CALL_ACCEPT] = EMFILE,
};

/* A build may do without these, or call them by another name. */
static const bool is_of_some[CALLS] = {
    [CALL_TIMERFD] = true,      [CALL_PIPE] = true,      [CALL_FCNTL] = true,
    [CALL_PIDFD] = true,        [CALL_READ] = true,      [CALL_ACCEPT] = true,
    [CALL_EPOLL_CREATE] = true, [CALL_EPOLL_CTL] = true, [CALL_EPOLL_WAIT] = true,
};

/* Shared with the processes that the library forks. */
static struct fault {
    enum call call;
    long left; /* calls until the one that fails; 0: it has failed */
    bool on;
} * fault;

/* Whether this call is to fail. */
static bool fails(enum call call)
{
    if (fault == NULL || !fault->on || fault->call != call || fault->left == 0 || --fault->left > 0)
        return false;
    errno = errors[call];
    return true;
}

/* The linker turns the calls of the library into calls of these. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
struct epoll_event;
int __real_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);
int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __real_write(int fd, const void *from, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size);
ssize_t __real_writev(int fd, const struct iovec *parts, int count);
ssize_t __wrap_writev(int fd, const struct iovec *parts, int count);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);

void *__wrap_malloc(size_t size)
{
    return fails(CALL_MALLOC) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(CALL_CALLOC) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails(CALL_REALLOC) ? NULL : __real_realloc(old, size);
}

/* One that takes a descriptor out never fails. */
int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event)
{
    return operation != 2 && fails(CALL_EPOLL_CTL) ? -1
                                                   : __real_epoll_ctl(fd, operation, of, event);
}

int __wrap_pipe2(int fds[2], int flags)
{
    return fails(CALL_PIPE) ? -1 : __real_pipe2(fds, flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return fails(CALL_TIMERFD) ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_epoll_create1(int flags)
{
    return fails(CALL_EPOLL_CREATE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    return fails(CALL_EPOLL_WAIT) ? -1 : __real_epoll_wait(fd, events, max, timeout_ms);
}

int __wrap_fcntl(int fd, int command, ...)
{
    va_list arguments;
    long argument;

    va_start(arguments, command);
    argument = va_arg(arguments, long);
    va_end(arguments);
    return fails(CALL_FCNTL) ? -1 : __real_fcntl(fd, command, argument);
}

pid_t __wrap_fork(void)
{
    return fails(CALL_FORK) ? -1 : __real_fork();
}

/* Those of the library have three arguments. */
long __wrap_syscall(long number, ...)
{
    va_list arguments;
    long first, second, third;

    va_start(arguments, number);
    first = va_arg(arguments, long);
    second = va_arg(arguments, long);
    third = va_arg(arguments, long);
    va_end(arguments);
    return fails(CALL_PIDFD) ? -1 : __real_syscall(number, first, second, third);
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    return fails(CALL_WAITPID) ? -1 : __real_waitpid(pid, status, options);
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    return fails(CALL_READ) ? -1 : __real_read(fd, to, size);
}

ssize_t __wrap_write(int fd, const void *from, size_t size)
{
    return fails(CALL_WRITE) ? -1 : __real_write(fd, from, size);
}

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count)
{
    return fails(CALL_WRITEV) ? -1 : __real_writev(fd, parts, count);
}

int __wrap_socket(int domain, int type, int protocol)
{
    return fails(CALL_SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
    return fails(CALL_BIND) ? -1 : __real_bind(fd, address, len);
}

int __wrap_listen(int fd, int backlog)
{
    return fails(CALL_LISTEN) ? -1 : __real_listen(fd, backlog);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    return fails(CALL_ACCEPT) ? -1 : __real_accept4(fd, address, len, flags);
}

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* --- the program --- */

static struct {
    stdio_bus_t *bus;
    int messages;
    int64_t deadline;
} host;

/* Two messages that fit into no one buffer; their write is one, by writev. */
static void send_long(stdio_bus_t *bus)
{
    static const char start[] = "{\"method\":\"no_answer\",\"params\":[\"", end[] = "\"]}";
    static char text[200000];

    memset(text, 'x', sizeof text);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + sizeof text - (sizeof end - 1), end, sizeof end - 1);
    (void)stdio_bus_ingest(bus, text, sizeof text);
    (void)stdio_bus_ingest(bus, text, sizeof text);
}

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)bus;
    (void)user_data;
    ck_assert_uint_eq(strlen(msg), len);
    if (++host.messages == 1)
        send_long(bus);
}

static void on_log(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    (void)bus;
    (void)level;
    (void)message;
    (void)user_data;
}

/* Waits for the poll_fd alone; where there is none, for the bus. */
static bool step(void)
{
    int fd = stdio_bus_get_poll_fd(host.bus);

    if (fd < 0) {
        ck_assert_msg(!deadline_over(host.deadline), "the bus waits for ever");
        return stdio_bus_step(host.bus, STEP_MS) >= 0;
    }
    ck_assert_msg(wait_fd(fd, POLLIN, host.deadline), "the bus waits for ever");
    return stdio_bus_step(host.bus, 0) >= 0;
}

/* Sends until the message is taken or refused for good, and waits for the answer. */
static void exchange(const char *text)
{
    int status, before = host.messages;

    do
        status = stdio_bus_ingest(host.bus, text, strlen(text));
    while ((status == STDIO_BUS_EAGAIN || status == STDIO_BUS_EFULL) && step());
    while (status == STDIO_BUS_OK && host.messages == before && step())
        continue;
}

static void add_worker(void)
{
    int ends[2], id;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return;
    id = stdio_bus_register_embedded_worker(host.bus, ends[0], ends[0], "inside");
    if (id < 0)
        close(ends[0]);
    else
        (void)stdio_bus_step(host.bus, 0);
    close(ends[1]);
    if (id > 0 && stdio_bus_get_state(host.bus) == STDIO_BUS_STATE_RUNNING)
        ck_assert_int_eq(stdio_bus_unregister_embedded_worker(host.bus, id), STDIO_BUS_OK);
}

/* A client of the listener asks once, and gets an answer or is disconnected. Its own calls do not
 * fail. */
static void visit(const char *path)
{
    static const char request[] = "{\"id\":1,\"method\":\"big\",\"params\":{\"size\":100000}}\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char byte;
    int fd;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fault->on = false;
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    fault->on = true;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN && step())
        continue;
    close(fd);
}

/* From the creation to the end of a bus: with a listener and a client, or, without a path, with a
 * worker that crashes and is restarted. */
static void live(const char *config, const char *path)
{
    stdio_bus_options_t options = {
        .config_json = config, .on_message = on_message, .on_log = on_log};

    if (path != NULL) {
        options.listener.mode = STDIO_BUS_LISTEN_UNIX;
        options.listener.unix_path = path;
    }
    host.messages = 0;
    host.deadline = deadline_in(SECONDS_MAX);
    host.bus = stdio_bus_create(&options);
    if (host.bus == NULL)
        return;
    (void)stdio_bus_get_poll_fd(host.bus);
    if (stdio_bus_start(host.bus) == STDIO_BUS_OK) {
        exchange("{\"id\":1,\"sessionId\":\"s\",\"method\":\"echo\"}");
        if (path != NULL)
            visit(path);
        add_worker();
        if (path == NULL)
            exchange("{\"id\":2,\"method\":\"die\",\"params\":{\"code\":1}}");
        exchange("{\"id\":3,\"method\":\"big\",\"params\":{\"size\":100000}}");
        ck_assert_int_eq(stdio_bus_stop(host.bus, 5), STDIO_BUS_OK);
        while (stdio_bus_get_state(host.bus) != STDIO_BUS_STATE_STOPPED)
            (void)step();
    } else {
        ck_assert_int_eq(stdio_bus_get_state(host.bus), STDIO_BUS_STATE_STOPPED);
    }
    stdio_bus_destroy(host.bus);
}

/* No process is left. If waitpid failed, the library takes the process for gone. */
static void check_processes(void)
{
    while (fault->call == CALL_WAITPID && waitpid(-1, NULL, 0) > 0)
        continue;
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* Until a run has fewer calls than that. */
TEST_ROWS(each_call_fails_once, CALLS)
{
    const char *worker = getenv("TEST_WORKER");
    char config[1024], path[108];
    int before = open_descriptors();
    long number = 0, most = harness_fewer() ? 20 : 400;

    snprintf(path, sizeof path, "%s/bus.sock", test_dir());
    snprintf(config, sizeof config,
             "{\"pools\":[{\"id\":\"p\",\"command\":\"%s\",\"instances\":1}],"
             "\"limits\":{\"max_restarts\":20}}",
             worker != NULL ? worker : "./test_worker");
    fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(fault != MAP_FAILED);
    fault->call = (enum call)row;
    do {
        fault->left = ++number;
        fault->on = true;
        live(config, fault->call >= CALL_READ ? path : NULL);
        fault->on = false;
        ck_assert_int_eq(open_descriptors(), before);
        check_processes();
    } while (fault->left == 0 && number < most);
    ck_assert_msg(number > 1 || is_of_some[row], "the library calls none of these");
    munmap(fault, sizeof *fault);
    fault = NULL;
}
