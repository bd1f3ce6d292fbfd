/* The library while the C library fails: each allocation, and each call for a descriptor, once. The
 * program is told by a code, or the bus overcomes it; nothing is left in any case. */
#include "build_config.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed_fixture.h"

#define FDS_MAX 128
#define SECONDS_MAX 20 /* of one run */

enum call {
    CALL_MALLOC,
    CALL_CALLOC,
    CALL_REALLOC,
    CALL_TIMERFD,
    CALL_EPOLL_CTL,
    CALL_PIPE,
    CALLS
};

static struct {
    enum call call;
    long left; /* calls until the one that fails; 0: it has failed */
    bool on;
} fault;

/* Whether this call is to fail. */
static bool fails(enum call call)
{
    if (!fault.on || fault.call != call || fault.left == 0 || --fault.left > 0)
        return false;
    errno = call <= CALL_REALLOC ? ENOMEM : EMFILE;
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

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)bus;
    (void)user_data;
    ck_assert_uint_eq(strlen(msg), len);
    host.messages++;
}

static void on_log(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    (void)bus;
    (void)level;
    (void)message;
    (void)user_data;
}

static bool step(void)
{
    ck_assert_msg(!deadline_over(host.deadline), "it waits for ever");
    return stdio_bus_step(host.bus, 20) >= 0;
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
        (void)step();
    close(ends[1]);
    if (id > 0)
        ck_assert_int_eq(stdio_bus_unregister_embedded_worker(host.bus, id), STDIO_BUS_OK);
}

/* From the creation to the end of a bus. */
static void live(const char *config)
{
    const stdio_bus_options_t options = {
        .config_json = config, .on_message = on_message, .on_log = on_log};

    host.messages = 0;
    host.deadline = deadline_in(SECONDS_MAX);
    host.bus = stdio_bus_create(&options);
    if (host.bus == NULL)
        return;
    (void)stdio_bus_get_poll_fd(host.bus);
    if (stdio_bus_start(host.bus) == STDIO_BUS_OK) {
        exchange("{\"id\":1,\"sessionId\":\"s\",\"method\":\"echo\"}");
        add_worker();
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

/* Until a run has fewer calls than that. */
TEST_ROWS(each_call_fails_once, CALLS)
{
    const char *worker = getenv("TEST_WORKER");
    char config[1024];
    int before = open_descriptors();
    long number = 0, most = getenv("TEST_FEWER") != NULL ? 20 : 400;

    snprintf(config, sizeof config,
             "{\"pools\":[{\"id\":\"p\",\"command\":\"%s\",\"instances\":1}],"
             "\"limits\":{\"max_restarts\":20}}",
             worker != NULL ? worker : "./test_worker");
    fault.call = (enum call)row;
    do {
        fault.left = ++number;
        fault.on = true;
        live(config);
        fault.on = false;
        ck_assert_int_eq(open_descriptors(), before);
        ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    } while (fault.left == 0 && number < most);
    ck_assert(row != CALL_MALLOC || number > 1); /* the calls of the library are those above */
}
