/* The event loop: one thread, non-blocking I/O, no tick (spec 3.1.5; architecture, "Event Loop").
 *
 * One round (run_once) waits for ready descriptors or the next deadline, calls the callbacks, runs
 * the due timers, calls the after-hook and runs what was deferred. A callback may call every
 * function here but run_once and destroy. */
#ifndef STDIO_BUS_EVENT_EVENT_LOOP_H
#define STDIO_BUS_EVENT_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "event/timers.h"

struct archive;
struct stdio_bus_event_loop;

typedef void stdio_bus_event_fn(void *user_data, unsigned events);

/* Called once per round, after the ready descriptors and the due timers. True: there is more to do,
 * so the next round must not wait. */
typedef bool stdio_bus_event_after_fn(void *user_data);

/* A release of memory that waits for the end of the round; lives inside that memory. */
struct stdio_bus_event_deferred {
    struct stdio_bus_event_deferred *next;
    void (*fn)(void *user_data);
    void *user_data;
};

/* A new loop, or NULL with errno set. */
struct stdio_bus_event_loop *stdio_bus_event_loop_create(void);

/* Runs what is deferred and frees the loop. Descriptors stay open; timers are forgotten. NULL is
 * allowed. */
void stdio_bus_event_loop_destroy(struct stdio_bus_event_loop *loop);

/* Registers `fd` for `events`, level-triggered; 0: nothing is delivered until modify asks for more.
 * A descriptor that the system cannot watch (regular file, /dev/null) counts as always ready.
 * STDIO_BUS_EINVAL when fd is negative or registered already, or an event is unknown; STDIO_BUS_ERR
 * with errno set (EBADF, ENOMEM, ENOSPC). After an error nothing is registered. */
int stdio_bus_event_loop_add(struct stdio_bus_event_loop *loop, int fd, unsigned events,
                             stdio_bus_event_fn *fn, void *user_data);

/* Changes the interest, also for events of this round that are not yet delivered. Without a change
 * there is no system call. STDIO_BUS_ENOTFOUND when fd is not registered; STDIO_BUS_EINVAL when an
 * event is unknown; STDIO_BUS_ERR with errno set. After an error the interest is as it was. */
int stdio_bus_event_loop_modify(struct stdio_bus_event_loop *loop, int fd, unsigned events);

/* Forgets fd at once: its callback is not called any more, not even for an event of this round, and
 * the number may be closed, reused and added again in the same callback. To be called before close.
 * STDIO_BUS_ENOTFOUND when fd is not registered. */
int stdio_bus_event_loop_remove(struct stdio_bus_event_loop *loop, int fd);

/* One round. timeout_ms: the longest wait, 0 for none, -1 for no limit; deadlines shorten the wait,
 * a signal (EINTR) ends it. Returns the number of callbacks called for descriptors and timers, or
 * STDIO_BUS_ERR with errno set when the backend fails. */
int stdio_bus_event_loop_run_once(struct stdio_bus_event_loop *loop, int timeout_ms);

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
