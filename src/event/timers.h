/* Deadlines: a heap of intrusive timers. Starting and stopping never allocate and never fail. */
#ifndef STDIO_BUS_EVENT_TIMERS_H
#define STDIO_BUS_EVENT_TIMERS_H

#include "base/heap.h"

typedef void timer_fn(void *user_data);

/* Lives inside its owner, which stops it before it goes. All members are private to timers.c. */
struct timer {
    struct heap_node node; /* its key: the deadline */
    timer_fn *fn;
    void *user_data;
};

struct timers {
    struct heap_node *root; /* the earliest, or NULL */
    struct heap_node *due;  /* the heap that timers_run is working on, or NULL */
};

/* A stopped timer that will call fn(user_data). */
void timer_init(struct timer *timer, timer_fn *fn, void *user_data);

/* Starts a timer, or moves a started one. O(1) to start, O(log n) amortised to move. */
void timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms);

/* Stops a timer; a stopped one is left alone. O(log n) amortised. */
void timers_stop(struct timers *timers, struct timer *timer);

static inline bool timer_started(const struct timer *timer)
{
    return timer->node.in_heap;
}

/* Of a started timer: its deadline; of another one: the last that it had. */
static inline int64_t timer_deadline_ms(const struct timer *timer)
{
    return timer->node.key;
}

/* Milliseconds from now_ms until the earliest deadline, at most INT_MAX; 0 when it has passed, -1
 * when there is none. */
int timers_wait_ms(const struct timers *timers, int64_t now_ms);

/* Calls each timer whose deadline is at or before now_ms, earliest first; a timer is stopped before
 * its call. A callback may start, stop or free any timer; a timer that it starts is called by a
 * later timers_run, even if it is due. Not to be called from a callback. Returns the number of
 * calls. */
int timers_run(struct timers *timers, int64_t now_ms);

#endif
