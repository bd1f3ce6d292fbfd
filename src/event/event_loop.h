/* The event loop: one thread, non-blocking I/O, no tick (spec 3.1.5; architecture, "Event Loop").
 *
 * The public half is stdio_bus_event_loop.h; here is what the bus has beside it. After the timers a
 * round calls the after-hook and runs what was deferred. A callback may call every function here
 * but run_once and destroy. */
#ifndef STDIO_BUS_EVENT_EVENT_LOOP_H
#define STDIO_BUS_EVENT_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "event/timers.h"

/* Shown by the library, while calls from inside it stay inside: a program's function of the same
 * name is never called. Mach-O has no protected names, and needs none. */
#if defined __GNUC__ && defined __ELF__
#pragma GCC visibility push(protected)
#elif defined __GNUC__
#pragma GCC visibility push(default)
#endif
#include "event/stdio_bus_event_loop.h"
#if defined __GNUC__
#pragma GCC visibility pop
#endif

struct archive;

/* Called once per round, after the ready descriptors and the due timers. True: there is more to do,
 * so the next round must not wait. */
typedef bool stdio_bus_event_after_fn(void *user_data);

/* A release of memory that waits for the end of the round; lives inside that memory. */
struct stdio_bus_event_deferred {
    struct stdio_bus_event_deferred *next;
    void (*fn)(void *user_data);
    void *user_data;
};

/* Monotonic time, read by the first call after a round's wait (and by create): a round that only
 * passes messages on reads no clock. */
int64_t stdio_bus_event_loop_now_ms(struct stdio_bus_event_loop *loop);

/* Starts a timer that is due in delay_ms from now_ms, or moves a started one. */
void stdio_bus_event_loop_start_timer(struct stdio_bus_event_loop *loop, struct timer *timer,
                                      int64_t delay_ms);

/* Stops a timer; a stopped one is left alone. */
void stdio_bus_event_loop_stop_timer(struct stdio_bus_event_loop *loop, struct timer *timer);

/* The loop's timers, for deadlines in now_ms's time. */
struct timers *stdio_bus_event_loop_timers(struct stdio_bus_event_loop *loop);

/* Sets the one after-hook (NULL: none). */
void stdio_bus_event_loop_set_after(struct stdio_bus_event_loop *loop, stdio_bus_event_after_fn *fn,
                                    void *user_data);

/* Calls fn(user_data) at the end of this round (outside of a round: of the next), in the order of
 * the calls. The record must live until then; fn may free it. Each may be deferred once. */
void stdio_bus_event_loop_defer(struct stdio_bus_event_loop *loop,
                                struct stdio_bus_event_deferred *deferred,
                                void (*fn)(void *user_data), void *user_data);

/* A descriptor that is readable when run_once has ready descriptors, or -1 where the backend has
 * none (poll). Deadlines, always-ready descriptors and the after-hook do not make it readable, but
 * for a loop with a waker (event/waker.h). */
int stdio_bus_event_loop_get_poll_fd(const struct stdio_bus_event_loop *loop);

#define EVENT_LOOP_NOW 0
#define EVENT_LOOP_NEVER INT64_MAX

/* When the next round has something to do that no descriptor shows, in now_ms's time. */
int64_t event_loop_due_ms(const struct stdio_bus_event_loop *loop);

struct event_usage {
    uint64_t rounds;
    uint64_t busy_us; /* of a loop that measures: the time in which it did not wait */
};

/* From now on the loop measures, which takes two looks at the clock per round. */
void event_loop_measure(struct stdio_bus_event_loop *loop);

struct event_usage event_loop_usage(const struct stdio_bus_event_loop *loop);

/* stdio_bus_event_loop_create over a backend of the caller's choice (for tests). */
struct event_backend;
struct stdio_bus_event_loop *event_loop_create_with(const struct event_backend *backend);

/* A timer in an archive: whether it is started, and its time, which is that of the whole system. */
void timer_archive(struct archive *archive, struct stdio_bus_event_loop *loop, struct timer *timer);

#endif
