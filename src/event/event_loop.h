/* The event loop: one thread, non-blocking I/O, no tick (spec 3.1.5; architecture, "Event Loop").
 *
 * One round (run_once): wait for ready descriptors or the next deadline, call their callbacks, run
 * due timers, call the after-hook, free what was deferred. A callback may call everything here but
 * run_once and destroy. */
#ifndef STDIO_BUS_EVENT_EVENT_LOOP_H
#define STDIO_BUS_EVENT_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "event/timers.h"

struct stdio_bus_event_loop;

/* Interest and readiness. Hang-up and errors arrive as whatever was asked for, so the owner finds
 * them by reading or writing; who asked for nothing is told nothing, and a hung-up peer waits until
 * the owner wants to read or write again. A wakeup may be spurious. */
#define STDIO_BUS_EVENT_READ 1u
#define STDIO_BUS_EVENT_WRITE 2u
/* Interest in nothing but the peer's end: both directions of a socket are closed, or it broke. To
 * be asked for when the end of input has been read already (READ would be ready for ever). Best
 * effort: a backend that cannot tell (kqueue) never delivers it; always-ready ones have no peer. */
#define STDIO_BUS_EVENT_HANGUP 4u

typedef void stdio_bus_event_fn(void *user_data, unsigned events);

/* Called once per round after all ready descriptors and timers were served. True: there is more to
 * do, so the next round must not wait. */
typedef bool stdio_bus_event_after_fn(void *user_data);

/* Memory whose release waits for the end of the round; lives inside what it frees. */
struct stdio_bus_event_deferred {
    struct stdio_bus_event_deferred *next;
    void (*fn)(void *user_data);
    void *user_data;
};

/* A new loop, or NULL with errno set. */
struct stdio_bus_event_loop *stdio_bus_event_loop_create(void);

/* Frees the loop; runs what is still deferred. Descriptors stay open; timers are forgotten. NULL is
 * fine. */
void stdio_bus_event_loop_destroy(struct stdio_bus_event_loop *loop);

/* Registers `fd` for `events` (0 is allowed: nothing is delivered until modify asks for more).
 * Level-triggered. A descriptor that the system cannot watch (regular file, /dev/null) counts as
 * always ready. Returns STDIO_BUS_OK; STDIO_BUS_EINVAL when fd is negative or already registered,
 * or an event is unknown; STDIO_BUS_ERR with errno set otherwise (EBADF, ENOMEM, ENOSPC), and then
 * nothing is registered. */
int stdio_bus_event_loop_add(struct stdio_bus_event_loop *loop, int fd, unsigned events,
                             stdio_bus_event_fn *fn, void *user_data);

/* Changes the interest, also for an event of this round that is not yet delivered. No system call
 * when it does not change. STDIO_BUS_ENOTFOUND when fd is not registered; STDIO_BUS_EINVAL when an
 * event is unknown; STDIO_BUS_ERR with errno set, and then the interest is as it was. */
int stdio_bus_event_loop_modify(struct stdio_bus_event_loop *loop, int fd, unsigned events);

/* Forgets fd, at once: no callback of it is called any more, not even for an event of this round;
 * its number may be closed, reused and added again in the same callback. To be called before close.
 * Returns STDIO_BUS_ENOTFOUND when fd is not registered. */
int stdio_bus_event_loop_remove(struct stdio_bus_event_loop *loop, int fd);

/* One round. timeout_ms: longest wait (0 none, -1 until something happens); deadlines shorten it.
 * A signal (EINTR) ends the wait. Returns the number of callbacks called (descriptors and timers),
 * or STDIO_BUS_ERR with errno set when the backend fails. */
int stdio_bus_event_loop_run_once(struct stdio_bus_event_loop *loop, int timeout_ms);

/* Monotonic time, read once per round, by the first who asks after the wait (and by create): rounds
 * that only pass messages on do without. */
int64_t stdio_bus_event_loop_now_ms(struct stdio_bus_event_loop *loop);

/* The loop's timers, for timers_start and timers_stop. Deadlines are in now_ms's time. */
struct timers *stdio_bus_event_loop_timers(struct stdio_bus_event_loop *loop);

/* Sets the one after-hook (NULL: none). */
void stdio_bus_event_loop_set_after(struct stdio_bus_event_loop *loop,
                                    stdio_bus_event_after_fn *fn, void *user_data);

/* Calls fn(user_data) at the end of this round (or of the next, outside of one), in the order of
 * the calls. The record must stay until then, and may be freed by fn; each may be deferred once. */
void stdio_bus_event_loop_defer(struct stdio_bus_event_loop *loop,
                                struct stdio_bus_event_deferred *deferred,
                                void (*fn)(void *user_data), void *user_data);

/* A descriptor that is readable when run_once has descriptors to serve, or -1 where the backend has
 * none (poll). Deadlines, always-ready descriptors and the after-hook's wish do not show on it. */
int stdio_bus_event_loop_get_poll_fd(const struct stdio_bus_event_loop *loop);

/* "epoll", "kqueue" or "poll". */
const char *stdio_bus_event_loop_backend_name(const struct stdio_bus_event_loop *loop);

#endif
