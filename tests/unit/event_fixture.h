/* For the tests of the event loop: a spy between the loop and each backend that is compiled in, and
 * descriptors with a callback that counts. */
#ifndef CHECK_EVENT_FIXTURE_H
#define CHECK_EVENT_FIXTURE_H

#include <fcntl.h>
#include <sys/socket.h>

#include "base/error.h"
#include "event/event_loop.h"
#include "over_backends.h"

#define READ STDIO_BUS_EVENT_READ
#define WRITE STDIO_BUS_EVENT_WRITE
#define WAIT_MS 5000 /* longer than anything that is waited for */

/* A backend in between that counts the calls and can make them fail. */
static struct {
    const struct event_backend *real;
    int changes;
    int waits;
    int wait_ms; /* timeout of the last wait */
    int wait_result;
    int wait_errno;
    int fail_change, fail_wait; /* errno of the next call, or 0 */
} spy;

static inline void *spy_create(int *poll_fd)
{
    return spy.real->create(poll_fd);
}

static inline void spy_destroy(void *state)
{
    spy.real->destroy(state);
}

static inline bool spy_fails(int *error)
{
    if (*error == 0)
        return false;
    errno = *error;
    *error = 0;
    return true;
}

static inline int spy_change(void *state, int fd, unsigned before, unsigned events)
{
    spy.changes++;
    if (events != 0 && spy_fails(&spy.fail_change))
        return STDIO_BUS_ERR;
    return spy.real->change(state, fd, before, events);
}

static inline int spy_wait(void *state, struct event_ready *ready, int max, int timeout_ms)
{
    spy.waits++;
    spy.wait_ms = timeout_ms;
    if (spy_fails(&spy.fail_wait))
        return -1;
    spy.wait_result = spy.real->wait(state, ready, max, timeout_ms);
    spy.wait_errno = spy.wait_result < 0 ? errno : 0;
    return spy.wait_result;
}

static const struct event_backend spy_backend = {
    .create = spy_create,
    .destroy = spy_destroy,
    .change = spy_change,
    .wait = spy_wait,
};

static struct stdio_bus_event_loop *loop; /* of the test that runs */

#define FDS_MAX 2048
static bool watched_fds[FDS_MAX]; /* to be closed after the test */

static inline void set_up_over(const struct event_backend *backend)
{
    memset(&spy, 0, sizeof spy);
    spy.real = backend;
    loop = event_loop_create_with(&spy_backend);
    ck_assert_ptr_nonnull(loop);
}

static inline void tear_down(void)
{
    stdio_bus_event_loop_destroy(loop);
    loop = NULL;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (watched_fds[fd])
            ck_assert_int_eq(close(fd), 0);
        watched_fds[fd] = false;
    }
}

OVER_EACH_BACKEND

static inline int run(int timeout_ms)
{
    return stdio_bus_event_loop_run_once(loop, timeout_ms);
}

/* A descriptor, the events that its callback got, and the action of the callback. */
struct watched {
    int fd, peer; /* the end that is watched and the other one, -1 when closed */
    int calls;
    unsigned events; /* of the last call */
    unsigned seen;   /* of all calls */
    struct watched *other;
    void (*act)(struct watched *watched);
};

static inline void on_event(void *user_data, unsigned events)
{
    struct watched *watched = user_data;

    watched->calls++;
    watched->events = events;
    watched->seen |= events;
    if (watched->act != NULL)
        watched->act(watched);
}

static inline void add(struct watched *watched, unsigned events)
{
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, watched->fd, events, on_event, watched),
                     STDIO_BUS_OK);
}

static inline void modify(struct watched *watched, unsigned events)
{
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, watched->fd, events), STDIO_BUS_OK);
}

static inline void watch(struct watched *watched, int fd, int peer, unsigned events)
{
    *watched = (struct watched){.fd = fd, .peer = peer};
    watched_fds[fd] = true;
    if (peer >= 0)
        watched_fds[peer] = true;
    add(watched, events);
}

/* Watches the read end of a new pipe. */
static inline void open_reader(struct watched *watched, unsigned events)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    watch(watched, ends[0], ends[1], events);
}

/* Watches the write end of a new pipe. */
static inline void open_writer(struct watched *watched, unsigned events)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    watch(watched, ends[1], ends[0], events);
}

/* Watches one end of a new socket pair. */
static inline void open_socket(struct watched *watched, unsigned events)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    watch(watched, ends[0], ends[1], events);
}

static inline void open_file(struct watched *watched, const char *path, unsigned events)
{
    watch(watched, open(path, O_RDWR), -1, events);
}

static inline void close_peer(struct watched *watched)
{
    ck_assert_int_eq(close(watched->peer), 0);
    watched_fds[watched->peer] = false;
    watched->peer = -1;
}

static inline void close_watched(struct watched *watched)
{
    (void)stdio_bus_event_loop_remove(loop, watched->fd);
    ck_assert_int_eq(close(watched->fd), 0);
    watched_fds[watched->fd] = false;
    if (watched->peer >= 0)
        close_peer(watched);
}

static inline void put(const struct watched *watched)
{
    ck_assert_int_eq(write(watched->peer, "x", 1), 1);
}

static inline ssize_t take(const struct watched *watched)
{
    char bytes[16];

    return read(watched->fd, bytes, sizeof bytes);
}

#endif
