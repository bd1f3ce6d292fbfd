/* The rest of a round: how long it waits, timers, the after-hook, deferred memory. */
#include "build_config.h"

#include "event/event_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>

#include "base/clock.h"
#include "event/backend.h"
#include "event/waker.h"
#include "event_fixture.h"

#ifdef HAVE_WRAP
static bool clock_fails;

/* The linker turns calls of clock_now_ms into calls of this. */
int64_t __real_clock_now_ms(void);
int64_t __wrap_clock_now_ms(void);

int64_t __wrap_clock_now_ms(void)
{
    return clock_fails ? 0 : __real_clock_now_ms();
}
#endif

/* An object that frees itself, and what was freed in which order. */
struct object {
    struct stdio_bus_event_deferred deferred;
    struct object *child;
    int number;
};

static int freed[8];
static int freed_len;

static void free_object(void *user_data)
{
    struct object *object = user_data;

    freed[freed_len++] = object->number;
    if (object->child != NULL)
        stdio_bus_event_loop_defer(loop, &object->child->deferred, free_object, object->child);
    free(object);
}

static struct object *new_object(int number, struct object *child)
{
    struct object *object = calloc(1, sizeof(*object));

    ck_assert_ptr_nonnull(object);
    object->number = number;
    object->child = child;
    return object;
}

static void defer(struct object *object)
{
    stdio_bus_event_loop_defer(loop, &object->deferred, free_object, object);
}

static void defer_three(struct watched *watched)
{
    (void)watched;
    defer(new_object(1, new_object(3, NULL)));
    defer(new_object(2, NULL));
    ck_assert_int_eq(freed_len, 0);
}

static bool nothing_is_freed_yet(void *user_data)
{
    (void)user_data;
    ck_assert_int_eq(freed_len, 0);
    return false;
}

TEST(deferred_memory_goes_at_the_end_of_the_round)
{
    struct watched reader;

    freed_len = 0;
    open_reader(&reader, READ);
    reader.act = defer_three;
    put(&reader);
    stdio_bus_event_loop_set_after(loop, nothing_is_freed_yet, NULL);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(freed_len, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(freed[i], i + 1);
    stdio_bus_event_loop_set_after(loop, NULL, NULL);
    reader.act = NULL;
    defer(new_object(4, NULL));
    ck_assert_int_eq(freed_len, 3);
    ck_assert_int_eq(run(0), 1);
    ck_assert_int_eq(freed_len, 4);
    defer(new_object(5, new_object(6, NULL)));
    tear_down();
    ck_assert_int_eq(freed_len, 6);
}

/* Timers that append their number. */
struct alarm {
    struct timer timer;
    int number;
    bool restart;
};

static int rung[8];
static int rung_len;

static void on_alarm(void *user_data)
{
    struct alarm *alarm = user_data;

    rung[rung_len++] = alarm->number;
    if (alarm->restart)
        stdio_bus_event_loop_start_timer(loop, &alarm->timer, 0);
}

static void start_alarm(struct alarm *alarm, int number, int delay_ms)
{
    *alarm = (struct alarm){.number = number};
    timer_init(&alarm->timer, on_alarm, alarm);
    timers_start(stdio_bus_event_loop_timers(loop), &alarm->timer, clock_now_ms() + delay_ms);
}

TEST(deadline_ends_the_wait_and_not_too_early)
{
    struct alarm alarm;
    int64_t start_ms;

    rung_len = 0;
    start_ms = clock_now_ms();
    start_alarm(&alarm, 1, 30);
    while (rung_len == 0)
        ck_assert_int_ge(run(-1), 0);
    ck_assert_int_ge(clock_now_ms() - start_ms, 30);
    ck_assert_int_ge(stdio_bus_event_loop_now_ms(loop) - start_ms, 30);
    ck_assert_int_le(spy.waits, 2); /* 1, where a wait is not cut short by the system */
}

#ifdef HAVE_WRAP
TEST(time_stands_still_while_the_clock_fails)
{
    struct alarm alarm;
    struct watched reader;
    int64_t before_ms;

    rung_len = 0;
    open_reader(&reader, READ);
    put(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    before_ms = stdio_bus_event_loop_now_ms(loop);
    clock_fails = true;
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(stdio_bus_event_loop_now_ms(loop), before_ms);
    start_alarm(&alarm, 1, 0);
    timers_start(stdio_bus_event_loop_timers(loop), &alarm.timer, before_ms + 100000);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_int_eq(spy.wait_ms, 100000);
    clock_fails = false;
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_ge(stdio_bus_event_loop_now_ms(loop), before_ms);
    ck_assert_int_eq(rung_len, 0);
    stdio_bus_event_loop_stop_timer(loop, &alarm.timer);
}
#endif

TEST(wait_is_the_shorter_of_timeout_and_deadline)
{
    struct alarm alarm;
    struct watched reader;

    open_reader(&reader, READ);
    put(&reader);
    ck_assert_int_eq(run(-1), 1); /* no deadline: no tick */
    ck_assert_int_eq(spy.wait_ms, -1);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_ms, WAIT_MS);
    start_alarm(&alarm, 1, 2 * WAIT_MS);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_ms, WAIT_MS);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_int_gt(spy.wait_ms, WAIT_MS);
    ck_assert_int_le(spy.wait_ms, 2 * WAIT_MS);
    ck_assert_int_eq(run(3 * WAIT_MS), 1);
    ck_assert_int_le(spy.wait_ms, 2 * WAIT_MS);
    ck_assert_int_eq(run(0), 1);
    ck_assert_int_eq(spy.wait_ms, 0);
    stdio_bus_event_loop_stop_timer(loop, &alarm.timer);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_int_eq(spy.wait_ms, -1);
}

TEST(timers_run_in_order_after_descriptors)
{
    struct alarm alarms[3];
    struct watched reader;

    rung_len = 0;
    open_reader(&reader, READ);
    put(&reader);
    start_alarm(&alarms[0], 2, -1);
    start_alarm(&alarms[1], 1, -1000); /* far from the other: a slow machine */
    start_alarm(&alarms[2], 3, 1000000);
    alarms[0].restart = true;
    ck_assert_int_eq(run(-1), 3);
    ck_assert_int_eq(spy.wait_ms, 0);
    ck_assert_int_eq(rung_len, 2); /* what was restarted for now waits for the next round ... */
    ck_assert_int_eq(rung[0], 1);
    ck_assert_int_eq(rung[1], 2);
    alarms[0].restart = false;
    ck_assert_int_eq(run(-1), 2); /* ... which does not wait */
    ck_assert_int_eq(spy.wait_ms, 0);
    ck_assert_int_eq(rung_len, 3);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_int_gt(spy.wait_ms, 0);
}

static int hook_calls;
static int hook_wishes; /* how many times it asks for another round */

static bool after_hook(void *user_data)
{
    const struct watched *watched = user_data;

    hook_calls++;
    ck_assert_int_eq(watched->calls, hook_calls);
    ck_assert_int_eq(rung_len, 1);
    return hook_wishes-- > 0;
}

TEST(after_hook_asks_for_another_round)
{
    struct watched reader;
    struct alarm alarm;

    rung_len = hook_calls = 0;
    hook_wishes = 2;
    open_reader(&reader, READ);
    put(&reader);
    start_alarm(&alarm, 1, -1);
    stdio_bus_event_loop_set_after(loop, after_hook, &reader);
    for (int i = 1; i <= 4; i++) {
        ck_assert_int_ge(run(-1), 1);
        ck_assert_int_eq(hook_calls, i);
        ck_assert_int_eq(spy.wait_ms, i == 4 ? -1 : 0);
    }
}

static void ignore_signal(int signo)
{
    (void)signo;
}

/* Again and again, so it does not matter when the wait begins. */
TEST(signal_ends_the_wait)
{
    struct sigaction action = {.sa_handler = ignore_signal};
    struct itimerval interval = {{0, 10000}, {0, 10000}}, none = {{0, 0}, {0, 0}};

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &interval, NULL), 0);
    ck_assert_int_eq(run(-1), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &none, NULL), 0);
    ck_assert_int_eq(spy.wait_result, -1);
    ck_assert_int_eq(spy.wait_errno, EINTR);
}

static bool readable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};

    return poll(&asked, 1, 0) == 1 && (asked.revents & POLLIN) != 0;
}

TEST(poll_fd_is_readable_with_work)
{
    struct watched reader;
    int fd = stdio_bus_event_loop_get_poll_fd(loop);

    if (spy.real == &event_backend_poll) {
        ck_assert_int_eq(fd, -1);
    } else {
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        open_reader(&reader, READ);
        ck_assert(!readable(fd));
        put(&reader);
        ck_assert(readable(fd));
        ck_assert_int_eq(take(&reader), 1);
        ck_assert(!readable(fd));
        close_watched(&reader);
    }
}

/* --- wakers --- */

static bool poll_fd_is_readable(int wait_ms)
{
    struct pollfd wanted = {stdio_bus_event_loop_get_poll_fd(loop), POLLIN, 0};

    return poll(&wanted, 1, wait_ms) == 1;
}

/* A program that waits for the poll_fd alone is woken for deadlines. */
TEST(waker_makes_the_poll_fd_readable)
{
    struct waker waker;

    ck_assert_int_eq(waker_open(&waker, loop), STDIO_BUS_OK);
    if (waker.fd < 0)
        return; /* this backend has no poll_fd, or this system no such descriptor */
    ck_assert(!poll_fd_is_readable(0));
    waker_arm(&waker, EVENT_LOOP_NEVER);
    ck_assert(!poll_fd_is_readable(0));
    waker_arm(&waker, clock_now_ms() + 3600000);
    ck_assert(!poll_fd_is_readable(20));
    waker_arm(&waker, clock_now_ms() + 20);
    waker_arm(&waker, clock_now_ms() + 3600000); /* the earlier one holds */
    ck_assert(poll_fd_is_readable(WAIT_MS));
    (void)stdio_bus_event_loop_run_once(loop, 0);
    ck_assert(!poll_fd_is_readable(0));
    waker_arm(&waker, EVENT_LOOP_NOW);
    ck_assert(poll_fd_is_readable(WAIT_MS));
    waker_close(&waker);
    waker_close(&waker);
    ck_assert(!poll_fd_is_readable(0));
}

static void no_timer(void *user_data)
{
    (void)user_data;
}

TEST(loop_tells_when_it_is_due)
{
    struct timer timer;

    ck_assert_int_eq(event_loop_due_ms(loop), EVENT_LOOP_NEVER);
    timer_init(&timer, no_timer, NULL);
    stdio_bus_event_loop_start_timer(loop, &timer, 1000);
    ck_assert_int_eq(event_loop_due_ms(loop), stdio_bus_event_loop_now_ms(loop) + 1000);
    stdio_bus_event_loop_stop_timer(loop, &timer);
    ck_assert_int_eq(event_loop_due_ms(loop), EVENT_LOOP_NEVER);
}
