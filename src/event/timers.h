/* Deadlines: a heap of intrusive timers. Starting and stopping never allocate and never fail. */
#ifndef STDIO_BUS_EVENT_TIMERS_H
#define STDIO_BUS_EVENT_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

typedef void timer_fn(void *user_data);

/* Lives inside its owner, which stops it before it goes. All members are timers.c's. */
struct timer {
    int64_t deadline_ms;
    timer_fn *fn;
    void *user_data;
    struct timer *child, *sibling; /* pairing heap */
    struct timer *parent;          /* the previous sibling, or for a first child its parent */
    bool started;
};

struct timers {
    struct timer *root; /* the earliest, or NULL */
};

/* A stopped timer that will call fn(user_data). */
void timer_init(struct timer *timer, timer_fn *fn, void *user_data);

/* Starts the timer, or moves it when it already runs. O(1) to start, O(log n) amortised to move. */
void timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms);

/* Stops the timer; a stopped one is left alone. O(log n) amortised. */
void timers_stop(struct timers *timers, struct timer *timer);

static inline bool timer_started(const struct timer *timer)
{
    return timer->started;
}

/* Milliseconds from now_ms until the earliest deadline, 0 when it has passed, -1 when there is
 * none; capped at INT_MAX. */
int timers_wait_ms(const struct timers *timers, int64_t now_ms);

/* Calls each timer whose deadline is at or before now_ms, earliest first, stopped before its call.
 * A callback may start, stop or free any timer; one started anew for now or earlier is called by
 * the next timers_run, not by this one. Not to be called from a callback. Returns how many were
 * called. */
int timers_run(struct timers *timers, int64_t now_ms);

#endif
