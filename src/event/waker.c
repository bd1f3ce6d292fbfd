#include "build_config.h"

#include "event/waker.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
#if defined HAVE_TIMERFD_CREATE
#include <sys/timerfd.h>
#elif defined HAVE_EVFILT_TIMER
#include <sys/event.h>
#include <sys/time.h>
#endif

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"

#if defined HAVE_TIMERFD_CREATE

static int create(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* A time in the past is now, and no time at all would disarm it. */
static void arm(int fd, int64_t due_ms)
{
    struct itimerspec at = {.it_value = {(time_t)(due_ms / 1000), (long)(due_ms % 1000) * 1000000}};

    if (due_ms <= 0)
        at.it_value = (struct timespec){0, 1};
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void take(int fd)
{
    uint64_t expirations;
    ssize_t got = read(fd, &expirations, sizeof expirations);

    (void)got;
}

#elif defined HAVE_EVFILT_TIMER

static int create(void)
{
    int fd = kqueue();

    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        descriptor_close(fd);
        fd = -1;
    }
    return fd;
}

static void arm(int fd, int64_t due_ms)
{
    struct kevent timer = {.ident = 1, .filter = EVFILT_TIMER};
    int64_t delay_ms = due_ms - clock_now_ms();

    timer.flags = EV_ADD | EV_ONESHOT;
    timer.data = delay_ms > 1 ? (intptr_t)delay_ms : 1;
    (void)kevent(fd, &timer, 1, NULL, 0, NULL);
}

static void take(int fd)
{
    const struct timespec none = {0, 0};
    struct kevent timer;

    (void)kevent(fd, NULL, 0, &timer, 1, &none);
}

#else

static int create(void)
{
    errno = 0;
    return -1;
}

static void arm(int fd, int64_t due_ms)
{
    (void)fd;
    (void)due_ms;
}

static void take(int fd)
{
    (void)fd;
}

#endif

static void readable(void *user_data, unsigned events)
{
    struct waker *waker = user_data;

    (void)events;
    take(waker->fd);
    waker->due_ms = EVENT_LOOP_NEVER;
}

int waker_open(struct waker *waker, struct stdio_bus_event_loop *loop)
{
    *waker = (struct waker){.loop = loop, .fd = -1, .due_ms = EVENT_LOOP_NEVER};
    if (stdio_bus_event_loop_get_poll_fd(loop) < 0)
        return STDIO_BUS_OK;
    waker->fd = create();
    if (waker->fd < 0)
        return errno == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
    if (stdio_bus_event_loop_add(loop, waker->fd, STDIO_BUS_EVENT_READ, readable, waker) ==
        STDIO_BUS_OK)
        return STDIO_BUS_OK;
    descriptor_close(waker->fd);
    waker->fd = -1;
    return STDIO_BUS_ERR;
}

void waker_close(struct waker *waker)
{
    if (waker->fd < 0)
        return;
    (void)stdio_bus_event_loop_remove(waker->loop, waker->fd);
    close(waker->fd);
    waker->fd = -1;
}

void waker_arm(struct waker *waker, int64_t due_ms)
{
    if (waker->fd < 0 || due_ms >= waker->due_ms)
        return;
    waker->due_ms = due_ms;
    arm(waker->fd, due_ms);
}
