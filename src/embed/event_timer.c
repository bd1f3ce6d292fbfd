/* The timers of stdio_bus_event_loop.h: those of the loop, in memory of their own. */
#include "build_config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "event/event_loop.h"

struct stdio_bus_event_timer {
    struct stdio_bus_event_loop *loop;
    struct timer timer;
};

stdio_bus_event_timer_t *stdio_bus_event_timer_create(stdio_bus_event_loop_t *loop,
                                                      stdio_bus_event_timer_fn *fn, void *user_data)
{
    struct stdio_bus_event_timer *timer = malloc(sizeof *timer);

    if (timer == NULL)
        return NULL;
    timer->loop = loop;
    timer_init(&timer->timer, fn, user_data);
    return timer;
}

void stdio_bus_event_timer_start(stdio_bus_event_timer_t *timer, int64_t delay_ms)
{
    int64_t now_ms = clock_now_ms(); /* not the loop's, which stands still between two rounds */
    int64_t due_ms = delay_ms < EVENT_LOOP_NEVER - now_ms ? now_ms + delay_ms : EVENT_LOOP_NEVER;

    timers_start(stdio_bus_event_loop_timers(timer->loop), &timer->timer,
                 delay_ms > 0 ? due_ms : now_ms);
}

void stdio_bus_event_timer_stop(stdio_bus_event_timer_t *timer)
{
    stdio_bus_event_loop_stop_timer(timer->loop, &timer->timer);
}

void stdio_bus_event_timer_destroy(stdio_bus_event_timer_t *timer)
{
    if (timer == NULL)
        return;
    stdio_bus_event_timer_stop(timer);
    free(timer);
}
