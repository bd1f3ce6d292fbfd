/* The event loop of libstdio_bus, for a host with descriptors and timers of its own. See
 * libstdio_bus(3). A bus joins such a loop by its poll_fd:
 *
 *     static void step(void *user_data, unsigned events)
 *     {
 *         (void)events;
 *         stdio_bus_step(user_data, 0);
 *     }
 *
 *     stdio_bus_event_loop_add(loop, stdio_bus_get_poll_fd(bus), STDIO_BUS_EVENT_READ, step, bus);
 *     while (stdio_bus_get_state(bus) != STDIO_BUS_STATE_STOPPED)
 *         stdio_bus_event_loop_run_once(loop, -1);
 *
 * One thread at a time calls the functions of one loop; several loops need no lock between them.
 * One round (run_once) waits for ready descriptors or the next deadline, and calls the callbacks of
 * the descriptors, then those of the due timers. A callback may call every function here but
 * run_once and destroy of its own loop. */
#ifndef STDIO_BUS_EVENT_LOOP_H
#define STDIO_BUS_EVENT_LOOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef STDIO_BUS_OK
#define STDIO_BUS_OK 0
#define STDIO_BUS_ERR (-1)
#define STDIO_BUS_EAGAIN (-2)
#define STDIO_BUS_EOF (-3)
#define STDIO_BUS_EFULL (-4)
#define STDIO_BUS_ENOTFOUND (-5)
#define STDIO_BUS_EINVAL (-6)
#endif

/* --- what a descriptor can be watched for, and be ready for: a set of these bits --- */

/* Hang-up and errors arrive as each event that was asked for, so the owner finds them by reading or
 * writing. A descriptor without interest gets no event: a peer that hung up waits until the owner
 * wants to read or write again. A wakeup may be spurious. */
#define STDIO_BUS_EVENT_READ 1u
#define STDIO_BUS_EVENT_WRITE 2u
/* The peer's end alone: both directions of a socket are closed, or it broke. For an owner that has
 * read the end of input already (READ would be ready for ever). Best effort: a backend that cannot
 * see it (kqueue) never delivers it; an always-ready descriptor has no peer. */
#define STDIO_BUS_EVENT_HANGUP 4u

typedef struct stdio_bus_event_loop stdio_bus_event_loop_t;

typedef void stdio_bus_event_fn(void *user_data, unsigned events);

/* --- the loop --- */

/* A new loop, or NULL with errno set. */
stdio_bus_event_loop_t *stdio_bus_event_loop_create(void);

/* Frees the loop. Descriptors stay open. Its timers must be gone before. Accepts NULL. */
void stdio_bus_event_loop_destroy(stdio_bus_event_loop_t *loop);

/* Registers `fd` for `events`, level-triggered; 0: nothing is delivered until modify asks for more.
 * A descriptor that the system cannot watch (regular file, /dev/null) counts as always ready.
 * STDIO_BUS_EINVAL when fd is negative or registered already, fn is NULL, or an event is unknown;
 * STDIO_BUS_ERR with errno set (EBADF, ENOMEM, ENOSPC). After an error nothing is registered. */
int stdio_bus_event_loop_add(stdio_bus_event_loop_t *loop, int fd, unsigned events,
                             stdio_bus_event_fn *fn, void *user_data);

/* Changes the interest, also for events of this round that are not yet delivered. Without a change
 * there is no system call. STDIO_BUS_ENOTFOUND when fd is not registered; STDIO_BUS_EINVAL when an
 * event is unknown; STDIO_BUS_ERR with errno set. After an error the interest is as it was. */
int stdio_bus_event_loop_modify(stdio_bus_event_loop_t *loop, int fd, unsigned events);

/* Forgets fd at once: its callback is not called any more, not even for an event of this round, and
 * the number may be closed, reused and added again in the same callback. To be called before close,
 * and before stdio_bus_destroy for the poll_fd of a bus. STDIO_BUS_ENOTFOUND when fd is not
 * registered. */
int stdio_bus_event_loop_remove(stdio_bus_event_loop_t *loop, int fd);

/* One round. timeout_ms: the longest wait, 0 for none, -1 for no limit; deadlines shorten the wait,
 * a signal (EINTR) ends it. Returns the number of callbacks called for descriptors and timers, or
 * STDIO_BUS_ERR with errno set when the system cannot wait. */
int stdio_bus_event_loop_run_once(stdio_bus_event_loop_t *loop, int timeout_ms);

/* --- timers: each fires once for each start --- */

typedef struct stdio_bus_event_timer stdio_bus_event_timer_t;

typedef void stdio_bus_event_timer_fn(void *user_data);

/* A stopped timer of this loop, or NULL if out of memory. */
stdio_bus_event_timer_t *stdio_bus_event_timer_create(stdio_bus_event_loop_t *loop,
                                                      stdio_bus_event_timer_fn *fn,
                                                      void *user_data);

/* Makes the timer due in delay_ms, also if it is started already. A timer that a timer's callback
 * starts is due in a later round at the earliest. */
void stdio_bus_event_timer_start(stdio_bus_event_timer_t *timer, int64_t delay_ms);

/* Makes the timer due no more; nothing if it is stopped. */
void stdio_bus_event_timer_stop(stdio_bus_event_timer_t *timer);

/* Stops and frees the timer, before its loop is destroyed; the timer's own callback may call it.
 * Accepts NULL. */
void stdio_bus_event_timer_destroy(stdio_bus_event_timer_t *timer);

#ifdef __cplusplus
}
#endif

#endif
