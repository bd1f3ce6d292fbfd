#include "build_config.h"

#include "event/event_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "event/backend.h"

/* Always-ready descriptors that a round serves, at most; with more they take turns. */
#define ALWAYS_ROUND_MAX 32

#define IO_EVENTS (STDIO_BUS_EVENT_READ | STDIO_BUS_EVENT_WRITE)
#define ALL_EVENTS (IO_EVENTS | STDIO_BUS_EVENT_HANGUP)

struct handler {
    stdio_bus_event_fn *fn; /* NULL: this number is not registered */
    void *user_data;
    uint64_t added_round; /* the generation: tells this registration from an earlier one */
    unsigned char events;
    bool always; /* always ready, and unknown to the backend */
};

struct stdio_bus_event_loop {
    const struct event_backend *backend;
    void *state; /* the backend's */
    struct handler *handlers; /* by descriptor */
    size_t handlers_len;
    int *always; /* the always-ready descriptors that have an interest */
    size_t always_len, always_capacity, always_start;
    struct timers timers;
    struct stdio_bus_event_deferred *deferred, **deferred_end;
    stdio_bus_event_after_fn *after;
    void *after_user_data;
    bool again; /* the after-hook has more to do */
    int64_t now_ms;
    bool now_is_old; /* of an earlier round */
    uint64_t round;
    struct event_ready ready[EVENT_BACKEND_ROUND_MAX + ALWAYS_ROUND_MAX];
};

struct stdio_bus_event_loop *stdio_bus_event_loop_create(void)
{
    return event_loop_create_with(&EVENT_BACKEND_DEFAULT);
}

struct stdio_bus_event_loop *event_loop_create_with(const struct event_backend *backend)
{
    struct stdio_bus_event_loop *loop = calloc(1, sizeof(*loop));
    int saved;

    if (loop == NULL)
        return NULL;
    loop->backend = backend;
    loop->deferred_end = &loop->deferred;
    loop->now_ms = clock_now_ms();
    loop->state = backend->create();
    if (loop->state == NULL)
        goto fail;
    return loop;

fail:
    saved = errno;
    free(loop);
    errno = saved;
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
    free(loop->always);
    free(loop);
}

/* The registration of fd, or NULL. */
static struct handler *find_handler(const struct stdio_bus_event_loop *loop, int fd)
{
    if (fd < 0 || (size_t)fd >= loop->handlers_len || loop->handlers[fd].fn == NULL)
        return NULL;
    return &loop->handlers[fd];
}

/* Room for the handler of fd. */
static int grow_handlers(struct stdio_bus_event_loop *loop, size_t fd)
{
    size_t len = loop->handlers_len == 0 ? 16 : loop->handlers_len;
    struct handler *handlers;

    if (fd < loop->handlers_len)
        return STDIO_BUS_OK;
    while (len <= fd)
        len *= 2;
    handlers = realloc(loop->handlers, len * sizeof(*handlers));
    if (handlers == NULL)
        return STDIO_BUS_ERR;
    memset(handlers + loop->handlers_len, 0, (len - loop->handlers_len) * sizeof(*handlers));
    loop->handlers = handlers;
    loop->handlers_len = len;
    return STDIO_BUS_OK;
}

static int always_append(struct stdio_bus_event_loop *loop, int fd)
{
    if (loop->always_len == loop->always_capacity) {
        size_t capacity = loop->always_capacity == 0 ? 4 : loop->always_capacity * 2;
        int *always = realloc(loop->always, capacity * sizeof(*always));
        if (always == NULL)
            return STDIO_BUS_ERR;
        loop->always = always;
        loop->always_capacity = capacity;
    }
    loop->always[loop->always_len++] = fd;
    return STDIO_BUS_OK;
}

static void always_remove(struct stdio_bus_event_loop *loop, int fd)
{
    for (size_t i = 0; i < loop->always_len; i++) {
        if (loop->always[i] == fd) {
            loop->always[i] = loop->always[--loop->always_len];
            return;
        }
    }
}

/* An always-ready descriptor with interest is in the list, and that is all. */
static int list_always(struct stdio_bus_event_loop *loop, int fd, unsigned before, unsigned events)
{
    if (before == 0)
        return always_append(loop, fd);
    if (events == 0)
        always_remove(loop, fd);
    return STDIO_BUS_OK;
}

/* A descriptor without interest is unknown to the backend: the systems report hang-up even to who
 * asked for nothing, round after round, and a paused connection would spin. */
static int tell_backend(struct stdio_bus_event_loop *loop, int fd, unsigned before,
                        unsigned events)
{
    if (before == 0)
        return loop->backend->add(loop->state, fd, events);
    if (events != 0)
        return loop->backend->modify(loop->state, fd, before, events);
    loop->backend->remove(loop->state, fd, before);
    return STDIO_BUS_OK;
}

static int set_interest(struct stdio_bus_event_loop *loop, int fd, struct handler *handler,
                        unsigned events)
{
    int result = STDIO_BUS_OK;

    if (events != handler->events && !handler->always) {
        result = tell_backend(loop, fd, handler->events, events);
        if (result != STDIO_BUS_OK && errno == EPERM && handler->events == 0)
            handler->always = true;
    }
    if (handler->always) {
        events &= IO_EVENTS; /* it has no peer that could hang up */
        result = STDIO_BUS_OK;
        if (events != handler->events)
            result = list_always(loop, fd, handler->events, events);
    }
    if (result == STDIO_BUS_OK)
        handler->events = (unsigned char)events;
    return result;
}

int stdio_bus_event_loop_add(struct stdio_bus_event_loop *loop, int fd, unsigned events,
                             stdio_bus_event_fn *fn, void *user_data)
{
    struct handler handler = {.user_data = user_data, .added_round = loop->round};
    struct stat status;

    if (fd < 0 || fn == NULL || (events & ~ALL_EVENTS) != 0 || find_handler(loop, fd) != NULL)
        return STDIO_BUS_EINVAL;
    if (fstat(fd, &status) != 0)
        return STDIO_BUS_ERR;
    if (grow_handlers(loop, (size_t)fd) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    /* Not left to the backends: kqueue counts a file as not readable at its end. */
    handler.always = S_ISREG(status.st_mode);
    if (set_interest(loop, fd, &handler, events) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    handler.fn = fn;
    loop->handlers[fd] = handler;
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

/* A clock that fails says 0. Whatever started then, and waits, would be due when it goes again. */
static int64_t clock_of(const struct stdio_bus_event_loop *loop)
{
    int64_t now_ms = clock_now_ms();

    return now_ms > loop->now_ms ? now_ms : loop->now_ms;
}

/* How long this round may wait: -1 without end. */
static int wait_limit_ms(const struct stdio_bus_event_loop *loop, int timeout_ms)
{
    int deadline_ms;

    if (loop->again || loop->always_len > 0)
        return 0;
    if (timeout_ms < 0)
        timeout_ms = -1;
    if (timeout_ms == 0 || loop->timers.root == NULL)
        return timeout_ms;
    /* Not now_ms: the callbacks since then, or the host between two steps, took their time too. The
     * clock is cut to whole milliseconds, so a wait of the difference never ends before the
     * deadline and no round is made in vain. */
    deadline_ms = timers_wait_ms(&loop->timers, clock_of(loop));
    return timeout_ms < 0 || deadline_ms < timeout_ms ? deadline_ms : timeout_ms;
}

/* Appends always-ready descriptors to the `count` that the backend found. A snapshot: the callbacks
 * may add and remove some. */
static int collect_always(struct stdio_bus_event_loop *loop, int count)
{
    for (size_t i = 0; i < loop->always_len && i < ALWAYS_ROUND_MAX; i++) {
        if (loop->always_start >= loop->always_len)
            loop->always_start = 0;
        loop->ready[count].fd = loop->always[loop->always_start++];
        loop->ready[count].events = IO_EVENTS;
        count++;
    }
    return count;
}

/* Calls the callbacks. The registration is looked up for each anew, since any callback before may
 * have changed it: one made in this round belongs to another descriptor of the same number. */
static int serve_ready(struct stdio_bus_event_loop *loop, int count)
{
    int called = 0;

    for (int i = 0; i < count; i++) {
        const struct handler *handler = find_handler(loop, loop->ready[i].fd);
        unsigned events;
        if (handler == NULL || handler->added_round == loop->round)
            continue;
        events = loop->ready[i].events & handler->events;
        if (events == 0)
            continue;
        handler->fn(handler->user_data, events);
        called++;
    }
    return called;
}

int stdio_bus_event_loop_run_once(struct stdio_bus_event_loop *loop, int timeout_ms)
{
    int wait_ms = wait_limit_ms(loop, timeout_ms);
    int count, called;

    loop->round++;
    count = loop->backend->wait(loop->state, loop->ready, EVENT_BACKEND_ROUND_MAX, wait_ms);
    if (count < 0) {
        if (errno != EINTR)
            return STDIO_BUS_ERR;
        count = 0;
    }
    loop->now_is_old = true;
    called = serve_ready(loop, collect_always(loop, count));
    if (loop->timers.root != NULL)
        called += timers_run(&loop->timers, stdio_bus_event_loop_now_ms(loop));
    loop->again = loop->after != NULL && loop->after(loop->after_user_data);
    run_deferred(loop);
    return called;
}

int64_t stdio_bus_event_loop_now_ms(struct stdio_bus_event_loop *loop)
{
    if (loop->now_is_old) {
        loop->now_ms = clock_of(loop);
        loop->now_is_old = false;
    }
    return loop->now_ms;
}

struct timers *stdio_bus_event_loop_timers(struct stdio_bus_event_loop *loop)
{
    return &loop->timers;
}

void stdio_bus_event_loop_set_after(struct stdio_bus_event_loop *loop,
                                    stdio_bus_event_after_fn *fn, void *user_data)
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
    return loop->backend->get_fd(loop->state);
}

const char *stdio_bus_event_loop_backend_name(const struct stdio_bus_event_loop *loop)
{
    return loop->backend->name;
}
