#include "build_config.h"

#include "event/event_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/archive.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "event/backend.h"

/* The most always-ready descriptors that one round serves; if there are more, they take turns. */
#define ALWAYS_ROUND_MAX 32

#define IO_EVENTS (STDIO_BUS_EVENT_READ | STDIO_BUS_EVENT_WRITE)
#define ALL_EVENTS (IO_EVENTS | STDIO_BUS_EVENT_HANGUP)

struct handler {
    stdio_bus_event_fn *fn; /* NULL: this number is not registered */
    void *user_data;
    uint64_t added_round; /* tells this registration from an earlier one of the number */
    unsigned char events;
    bool always; /* always ready, and unknown to the backend */
};

struct stdio_bus_event_loop {
    const struct event_backend *backend;
    void *state; /* the backend's */
    int poll_fd;
    struct handler *handlers; /* by descriptor */
    size_t handlers_len;
    size_t always_count; /* always-ready descriptors with interest */
    size_t always_at;    /* the last one that was served */
    struct timers timers;
    struct stdio_bus_event_deferred *deferred, **deferred_end;
    stdio_bus_event_after_fn *after;
    void *after_user_data;
    bool again; /* the after-hook has more to do */
    int64_t now_ms;
    bool now_is_old; /* of an earlier round */
    uint64_t round;
    bool measures;
    int64_t woken_us; /* since then it does not wait */
    struct event_usage usage;
    struct event_ready ready[EVENT_BACKEND_ROUND_MAX + ALWAYS_ROUND_MAX];
};

struct stdio_bus_event_loop *stdio_bus_event_loop_create(void)
{
    return event_loop_create_with(&EVENT_BACKEND_DEFAULT);
}

struct stdio_bus_event_loop *event_loop_create_with(const struct event_backend *backend)
{
    struct stdio_bus_event_loop *loop = calloc(1, sizeof *loop);
    int error;

    if (loop == NULL)
        return NULL;
    loop->backend = backend;
    loop->deferred_end = &loop->deferred;
    loop->now_ms = clock_now_ms();
    loop->state = backend->create(&loop->poll_fd);
    if (loop->state != NULL)
        return loop;
    error = errno;
    free(loop);
    errno = error;
    return NULL;
}

static void run_deferred(struct stdio_bus_event_loop *loop)
{
    struct stdio_bus_event_deferred *deferred;

    while ((deferred = loop->deferred) != NULL) {
        loop->deferred = deferred->next;
        if (loop->deferred == NULL)
            loop->deferred_end = &loop->deferred;
        deferred->fn(deferred->user_data);
    }
}

void stdio_bus_event_loop_destroy(struct stdio_bus_event_loop *loop)
{
    if (loop == NULL)
        return;
    run_deferred(loop);
    loop->backend->destroy(loop->state);
    free(loop->handlers);
    free(loop);
}

/* The registration of fd, or NULL. */
static struct handler *find_handler(const struct stdio_bus_event_loop *loop, int fd)
{
    if (fd < 0 || (size_t)fd >= loop->handlers_len || loop->handlers[fd].fn == NULL)
        return NULL;
    return &loop->handlers[fd];
}

/* A descriptor without interest is unknown to the backend: the systems report a hang-up all the
 * same, round after round, and a paused connection would spin. */
static int set_interest(struct stdio_bus_event_loop *loop, int fd, struct handler *handler,
                        unsigned events)
{
    unsigned before = handler->events;
    int result = STDIO_BUS_OK;

    if (events != before && !handler->always) {
        result = loop->backend->change(loop->state, fd, before, events);
        if (result != STDIO_BUS_OK && errno == EPERM && before == 0)
            handler->always = true;
    }
    if (handler->always) {
        events &= IO_EVENTS; /* it has no peer that could hang up */
        if (before == 0 && events != 0)
            loop->always_count++;
        if (before != 0 && events == 0)
            loop->always_count--;
        result = STDIO_BUS_OK;
    }
    if (result == STDIO_BUS_OK)
        handler->events = (unsigned char)events;
    return result;
}

int stdio_bus_event_loop_add(struct stdio_bus_event_loop *loop, int fd, unsigned events,
                             stdio_bus_event_fn *fn, void *user_data)
{
    struct handler handler = {.fn = fn, .user_data = user_data, .added_round = loop->round};
    struct handler *handlers;
    struct stat status;

    if (fd < 0 || fn == NULL || (events & ~ALL_EVENTS) != 0 || find_handler(loop, fd) != NULL)
        return STDIO_BUS_EINVAL;
    if (fstat(fd, &status) != 0)
        return STDIO_BUS_ERR;
    handlers = array_grow(loop->handlers, &loop->handlers_len, (size_t)fd + 1, sizeof *handlers);
    if (handlers == NULL)
        return STDIO_BUS_ERR;
    loop->handlers = handlers;
    /* Not left to the backends: to kqueue a file is not readable at its end. */
    handler.always = S_ISREG(status.st_mode);
    if (set_interest(loop, fd, &handler, events) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    handlers[fd] = handler;
    return STDIO_BUS_OK;
}

int stdio_bus_event_loop_modify(struct stdio_bus_event_loop *loop, int fd, unsigned events)
{
    struct handler *handler = find_handler(loop, fd);

    if (handler == NULL)
        return STDIO_BUS_ENOTFOUND;
    if ((events & ~ALL_EVENTS) != 0)
        return STDIO_BUS_EINVAL;
    return set_interest(loop, fd, handler, events);
}

int stdio_bus_event_loop_remove(struct stdio_bus_event_loop *loop, int fd)
{
    struct handler *handler = find_handler(loop, fd);

    if (handler == NULL)
        return STDIO_BUS_ENOTFOUND;
    (void)set_interest(loop, fd, handler, 0);
    handler->fn = NULL;
    return STDIO_BUS_OK;
}

/* A clock that fails reads 0: a timer started then would be due once the clock works again. */
static int64_t clock_of(const struct stdio_bus_event_loop *loop)
{
    int64_t now_ms = clock_now_ms();

    return now_ms > loop->now_ms ? now_ms : loop->now_ms;
}

/* The longest wait of this round, -1 without end. */
static int wait_limit_ms(const struct stdio_bus_event_loop *loop, int timeout_ms)
{
    int deadline_ms;

    if (loop->again || loop->always_count > 0)
        return 0;
    if (timeout_ms < 0)
        timeout_ms = -1;
    if (timeout_ms == 0 || loop->timers.root == NULL)
        return timeout_ms;
    /* Not now_ms: callbacks, and the host between two rounds, took time since. The clock is cut to
     * whole milliseconds, so a wait of the difference never ends before the deadline. */
    deadline_ms = timers_wait_ms(&loop->timers, clock_of(loop));
    return timeout_ms < 0 || deadline_ms < timeout_ms ? deadline_ms : timeout_ms;
}

int64_t event_loop_due_ms(const struct stdio_bus_event_loop *loop)
{
    if (loop->again || loop->always_count > 0)
        return EVENT_LOOP_NOW;
    return loop->timers.root != NULL ? loop->timers.root->key : EVENT_LOOP_NEVER;
}

/* Appends always-ready descriptors with interest to the `count` that the backend found. A snapshot:
 * callbacks may add and remove some. */
static int collect_always(struct stdio_bus_event_loop *loop, int count)
{
    size_t left = loop->always_count < ALWAYS_ROUND_MAX ? loop->always_count : ALWAYS_ROUND_MAX;

    while (left > 0) {
        const struct handler *handler;

        loop->always_at = loop->always_at + 1 < loop->handlers_len ? loop->always_at + 1 : 0;
        handler = &loop->handlers[loop->always_at];
        if (!handler->always || handler->events == 0)
            continue;
        loop->ready[count].fd = (int)loop->always_at;
        loop->ready[count++].events = IO_EVENTS;
        left--;
    }
    return count;
}

/* Calls the callbacks. Each registration is looked up again, since an earlier callback may have
 * changed it: one made in this round belongs to another descriptor of the same number. */
static int serve_ready(struct stdio_bus_event_loop *loop, int count)
{
    int called = 0;

    for (int i = 0; i < count; i++) {
        const struct handler *handler = find_handler(loop, loop->ready[i].fd);
        unsigned events = handler != NULL ? loop->ready[i].events & handler->events : 0;

        if (events == 0 || handler->added_round == loop->round)
            continue;
        handler->fn(handler->user_data, events);
        called++;
    }
    return called;
}

/* One look at the clock for both. */
static void note_woken(struct stdio_bus_event_loop *loop)
{
    loop->woken_us = clock_now_us();
    if (loop->woken_us / 1000 > loop->now_ms)
        loop->now_ms = loop->woken_us / 1000;
    loop->now_is_old = false;
}

int stdio_bus_event_loop_run_once(struct stdio_bus_event_loop *loop, int timeout_ms)
{
    int wait_ms = wait_limit_ms(loop, timeout_ms);
    int count, called;

    loop->round++;
    if (loop->measures)
        loop->usage = event_loop_usage(loop);
    count = loop->backend->wait(loop->state, loop->ready, EVENT_BACKEND_ROUND_MAX, wait_ms);
    if (count < 0) {
        if (errno != EINTR)
            return STDIO_BUS_ERR;
        count = 0;
    }
    loop->now_is_old = true;
    if (loop->measures)
        note_woken(loop);
    called = serve_ready(loop, collect_always(loop, count));
    if (loop->timers.root != NULL)
        called += timers_run(&loop->timers, stdio_bus_event_loop_now_ms(loop));
    loop->again = loop->after != NULL && loop->after(loop->after_user_data);
    run_deferred(loop);
    return called;
}

void event_loop_measure(struct stdio_bus_event_loop *loop)
{
    loop->measures = true;
    loop->woken_us = clock_now_us();
}

struct event_usage event_loop_usage(const struct stdio_bus_event_loop *loop)
{
    struct event_usage usage = loop->usage;

    usage.rounds = loop->round;
    if (loop->measures)
        usage.busy_us += (uint64_t)(clock_now_us() - loop->woken_us);
    return usage;
}

int64_t stdio_bus_event_loop_now_ms(struct stdio_bus_event_loop *loop)
{
    if (loop->now_is_old) {
        loop->now_ms = clock_of(loop);
        loop->now_is_old = false;
    }
    return loop->now_ms;
}

void stdio_bus_event_loop_start_timer(struct stdio_bus_event_loop *loop, struct timer *timer,
                                      int64_t delay_ms)
{
    timers_start(&loop->timers, timer, stdio_bus_event_loop_now_ms(loop) + delay_ms);
}

void stdio_bus_event_loop_stop_timer(struct stdio_bus_event_loop *loop, struct timer *timer)
{
    timers_stop(&loop->timers, timer);
}

struct timers *stdio_bus_event_loop_timers(struct stdio_bus_event_loop *loop)
{
    return &loop->timers;
}

void stdio_bus_event_loop_set_after(struct stdio_bus_event_loop *loop, stdio_bus_event_after_fn *fn,
                                    void *user_data)
{
    loop->after = fn;
    loop->after_user_data = user_data;
}

void stdio_bus_event_loop_defer(struct stdio_bus_event_loop *loop,
                                struct stdio_bus_event_deferred *deferred,
                                void (*fn)(void *user_data), void *user_data)
{
    deferred->next = NULL;
    deferred->fn = fn;
    deferred->user_data = user_data;
    *loop->deferred_end = deferred;
    loop->deferred_end = &deferred->next;
}

int stdio_bus_event_loop_get_poll_fd(const struct stdio_bus_event_loop *loop)
{
    return loop->poll_fd;
}

void timer_archive(struct archive *archive, struct stdio_bus_event_loop *loop, struct timer *timer)
{
    int64_t deadline_ms = timer_deadline_ms(timer);
    bool started = archive_present(archive, timer_started(timer));

    ARCHIVE_INTEGER(archive, deadline_ms);
    if (archive_loads(archive) && started)
        timers_start(stdio_bus_event_loop_timers(loop), timer, deadline_ms);
}
