/* For the tests of the event loop: the backends, a spy between them and the loop, and descriptors
 * with a callback that counts. A test is called once per backend that is compiled in: _i. */
#ifndef CHECK_EVENT_FIXTURE_H
#define CHECK_EVENT_FIXTURE_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "event/backend.h"

#define READ STDIO_BUS_EVENT_READ
#define WRITE STDIO_BUS_EVENT_WRITE
#define WAIT_MS 5000 /* longer than anything that is waited for */

static const struct event_backend *const backends[] = {
    &event_backend_poll,
#ifdef HAVE_SYS_EPOLL_H
    &event_backend_epoll,
#endif
#if defined(HAVE_KQUEUE) || defined(TEST_KQUEUE)
    &event_backend_kqueue,
#endif
};

#define BACKENDS (int)(sizeof(backends) / sizeof(backends[0]))

/* A backend in between that counts the calls and can make them fail. */
static struct {
    const struct event_backend *real;
    int changes;   /* add, modify, remove */
    int waits;
    int wait_ms;   /* timeout of the last wait */
    int wait_result;
    int wait_errno;
    int fail_change, fail_wait; /* errno of the next call, or 0 */
} spy;

static inline void *spy_create(void)
{
    return spy.real->create();
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

static inline int spy_add(void *state, int fd, unsigned events)
{
    spy.changes++;
    return spy_fails(&spy.fail_change) ? STDIO_BUS_ERR : spy.real->add(state, fd, events);
}

static inline int spy_modify(void *state, int fd, unsigned before, unsigned events)
{
    spy.changes++;
    if (spy_fails(&spy.fail_change))
        return STDIO_BUS_ERR;
    return spy.real->modify(state, fd, before, events);
}

static inline void spy_remove(void *state, int fd, unsigned before)
{
    spy.changes++;
    spy.real->remove(state, fd, before);
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

static inline int spy_get_fd(const void *state)
{
    return spy.real->get_fd(state);
}

static const struct event_backend spy_backend = {"spy",      spy_create, spy_destroy, spy_add,
                                                 spy_modify, spy_remove, spy_wait,    spy_get_fd};

static struct stdio_bus_event_loop *loop; /* of the test that runs */

static inline void set_up(int backend)
{
    memset(&spy, 0, sizeof(spy));
    spy.real = backends[backend];
    loop = event_loop_create_with(&spy_backend);
    ck_assert_ptr_nonnull(loop);
}

static inline void tear_down(void)
{
    stdio_bus_event_loop_destroy(loop);
}

static inline int run(int timeout_ms)
{
    return stdio_bus_event_loop_run_once(loop, timeout_ms);
}

/* A descriptor and what its callback has seen and shall do. */
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
    ck_assert_int_eq(
        stdio_bus_event_loop_add(loop, watched->fd, events, on_event, watched), STDIO_BUS_OK);
}

static inline void modify(struct watched *watched, unsigned events)
{
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, watched->fd, events), STDIO_BUS_OK);
}

/* Watches the read end of a new pipe. */
static inline void open_reader(struct watched *watched, unsigned events)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    *watched = (struct watched){.fd = ends[0], .peer = ends[1]};
    add(watched, events);
}

/* Watches the write end of a new pipe. */
static inline void open_writer(struct watched *watched, unsigned events)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    *watched = (struct watched){.fd = ends[1], .peer = ends[0]};
    add(watched, events);
}

static inline void open_file(struct watched *watched, const char *path, unsigned events)
{
    *watched = (struct watched){.fd = open(path, O_RDWR), .peer = -1};
    ck_assert_int_ge(watched->fd, 0);
    add(watched, events);
}

static inline void close_peer(struct watched *watched)
{
    ck_assert_int_eq(close(watched->peer), 0);
    watched->peer = -1;
}

static inline void close_watched(struct watched *watched)
{
    (void)stdio_bus_event_loop_remove(loop, watched->fd);
    ck_assert_int_eq(close(watched->fd), 0);
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

    return read(watched->fd, bytes, sizeof(bytes));
}

#endif
