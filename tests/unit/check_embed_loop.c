/* The public event loop: descriptors and timers of a host, and buses, in one loop. */
#include "build_config.h"

#include <fcntl.h>

#include "base/clock.h"
#include "embed_fixture.h"
#include "event/stdio_bus_event_loop.h"

static struct embed embeds[2];
static stdio_bus_event_loop_t *loop;

static void set_up(void)
{
    loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(loop);
}

static void tear_down(void)
{
    stdio_bus_event_loop_destroy(loop);
    for (size_t i = 0; i < COUNT(embeds); i++) {
        if (embeds[i].bus != NULL)
            embed_end(&embeds[i]);
    }
}

FIXTURE(set_up, tear_down)

#define LOOP_UNTIL(condition)                                                                      \
    for (int64_t loop_deadline = deadline_usual(); !(condition);) {                                \
        ck_assert_msg(!deadline_over(loop_deadline), "no %s", #condition);                         \
        ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, deadline_left_ms(loop_deadline)), 0); \
    }

static void step(void *user_data, unsigned events)
{
    const struct embed *embed = user_data;

    ck_assert_uint_eq(events, STDIO_BUS_EVENT_READ);
    ck_assert_int_ge(stdio_bus_step(embed->bus, 0), 0);
}

/* False where the system has no poll_fd: a host has to step by a timer there. */
static bool join(struct embed *embed)
{
    int fd = stdio_bus_get_poll_fd(embed->bus);

    if (fd < 0)
        return false;
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fd, STDIO_BUS_EVENT_READ, step, embed),
                     STDIO_BUS_OK);
    return true;
}

static bool all_stopped(void)
{
    for (size_t i = 0; i < COUNT(embeds); i++) {
        if (embeds[i].bus != NULL && stdio_bus_get_state(embeds[i].bus) != STDIO_BUS_STATE_STOPPED)
            return false;
    }
    return true;
}

/* --- a bus in a loop --- */

TEST(two_buses_in_one_loop_get_their_own_answers)
{
    for (size_t i = 0; i < COUNT(embeds); i++) {
        embed_init(&embeds[i], 2, "", "");
        embed_start(&embeds[i]);
        if (!join(&embeds[i]))
            return;
    }
    for (int n = 0; n < 200; n++) {
        for (size_t i = 0; i < COUNT(embeds); i++)
            EMBED_SEND(&embeds[i], "{'id':'%d-%zu','method':'x'}", n, i);
    }
    LOOP_UNTIL(embeds[0].count == 200 && embeds[1].count == 200);
    ck_assert_ptr_nonnull(strstr(embeds[0].messages.data, "\"199-0\""));
    ck_assert_ptr_nonnull(strstr(embeds[1].messages.data, "\"199-1\""));
    ck_assert_ptr_null(strstr(embeds[0].messages.data, "-1\""));
    for (size_t i = 0; i < COUNT(embeds); i++)
        ck_assert_int_eq(stdio_bus_stop(embeds[i].bus, -1), STDIO_BUS_OK);
    LOOP_UNTIL(all_stopped());
}

TEST(a_loop_that_only_waits_sees_a_worker_restarted)
{
    embed_init(&embeds[0], 1, "", "");
    embed_start(&embeds[0]);
    if (!join(&embeds[0]))
        return;
    EMBED_SEND(&embeds[0], "{'id':1,'method':'die','params':{'code':3}}");
    LOOP_UNTIL(embed_has(&embeds[0], "worker 1 restarting"));
    LOOP_UNTIL(strstr(embeds[0].events.data, "restarting\nworker 1 started") != NULL);
    ck_assert_ptr_nonnull(strstr(embeds[0].messages.data, "-32000"));
}

TEST(a_bus_leaves_a_loop_before_it_is_destroyed)
{
    int fd;

    embed_init(&embeds[0], 1, "", "");
    embed_start(&embeds[0]);
    if (!join(&embeds[0]))
        return;
    fd = stdio_bus_get_poll_fd(embeds[0].bus);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, fd), STDIO_BUS_OK);
    embed_end(&embeds[0]);
    embeds[0].bus = NULL;
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, fd), STDIO_BUS_ENOTFOUND);
}

/* --- descriptors of the host --- */

struct pipe_end {
    int fd;
    size_t bytes;
};

static void take_byte(void *user_data, unsigned events)
{
    struct pipe_end *end = user_data;
    char byte;

    ck_assert_uint_eq(events, STDIO_BUS_EVENT_READ);
    ck_assert_int_eq(read(end->fd, &byte, 1), 1);
    if (++end->bytes == 1) /* the rest of this end stays where it is */
        ck_assert_int_eq(stdio_bus_event_loop_modify(loop, end->fd, 0), STDIO_BUS_OK);
}

TEST(descriptors_are_watched_for_what_they_ask)
{
    struct pipe_end end = {.bytes = 0};
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    end.fd = fds[0];
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, fds[0], STDIO_BUS_EVENT_READ),
                     STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, -1, STDIO_BUS_EVENT_READ, take_byte, &end),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fds[0], 8u, take_byte, &end), STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fds[0], STDIO_BUS_EVENT_READ, NULL, &end),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fds[0], STDIO_BUS_EVENT_READ, take_byte, &end),
                     STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fds[0], STDIO_BUS_EVENT_READ, take_byte, &end),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0);
    ck_assert_int_eq(write(fds[1], "ab", 2), 2);
    LOOP_UNTIL(end.bytes == 1);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0);
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, fds[0], STDIO_BUS_EVENT_READ), STDIO_BUS_OK);
    LOOP_UNTIL(end.bytes == 2);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, fds[0]), STDIO_BUS_OK);
    close(fds[0]);
    close(fds[1]);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, fds[0], STDIO_BUS_EVENT_READ, take_byte, &end),
                     STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EBADF);
}

/* --- timers --- */

struct alarm {
    stdio_bus_event_timer_t *timer;
    int count;
    int again_ms;  /* its callback starts it again; 0: not */
    bool destroys; /* its callback destroys it */
    int64_t at_ms;
};

static void ring(void *user_data)
{
    struct alarm *alarm = user_data;

    alarm->count++;
    alarm->at_ms = clock_now_ms();
    if (alarm->again_ms > 0)
        stdio_bus_event_timer_start(alarm->timer, alarm->again_ms);
    if (alarm->destroys)
        stdio_bus_event_timer_destroy(alarm->timer);
}

static void create_timer(struct alarm *alarm)
{
    alarm->timer = stdio_bus_event_timer_create(loop, ring, alarm);
    ck_assert_ptr_nonnull(alarm->timer);
}

TEST(a_timer_is_due_once_for_each_start)
{
    struct alarm again = {.again_ms = 1}, stopped = {.count = 0}, own = {.destroys = true};

    create_timer(&again);
    create_timer(&stopped);
    create_timer(&own);
    stdio_bus_event_timer_start(again.timer, 0);
    stdio_bus_event_timer_start(stopped.timer, 0);
    stdio_bus_event_timer_start(own.timer, -5); /* the past is now */
    stdio_bus_event_timer_stop(stopped.timer);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 2);
    ck_assert_int_eq(again.count, 1);
    LOOP_UNTIL(again.count == 3);
    again.again_ms = 0;
    LOOP_UNTIL(again.count == 4);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 5), 0);
    ck_assert_int_eq(stopped.count, 0);
    ck_assert_int_eq(own.count, 1);
    stdio_bus_event_timer_destroy(again.timer);
    stdio_bus_event_timer_destroy(stopped.timer);
    stdio_bus_event_timer_destroy(NULL);
}

/* The host may be busy for long between two rounds: the delay begins with the call. */
TEST(a_timer_is_never_early)
{
    struct alarm alarm = {.count = 0}, never = {.count = 0};
    int64_t start_ms = clock_now_ms();

    create_timer(&alarm);
    create_timer(&never);
    while (clock_now_ms() < start_ms + 30)
        continue;
    start_ms = clock_now_ms();
    stdio_bus_event_timer_start(never.timer, INT64_MAX);
    stdio_bus_event_timer_start(alarm.timer, 1000);
    stdio_bus_event_timer_start(alarm.timer, 20); /* it is moved */
    LOOP_UNTIL(alarm.count == 1);
    ck_assert_int_ge(alarm.at_ms, start_ms + 20);
    ck_assert_int_eq(never.count, 0);
    stdio_bus_event_timer_destroy(alarm.timer);
    stdio_bus_event_timer_destroy(never.timer);
}
