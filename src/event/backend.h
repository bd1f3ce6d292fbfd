/* The platform seam of the event loop: one const struct of operations per system, a file each.
 * configure decides which files are compiled and which struct EVENT_BACKEND_DEFAULT names.
 *
 * A backend watches descriptors with an interest, nothing else: callbacks, always-ready descriptors
 * and reuse of a number within a round are the work of event_loop.c. */
#ifndef STDIO_BUS_EVENT_BACKEND_H
#define STDIO_BUS_EVENT_BACKEND_H

#include "base/error.h"
#include "event/stdio_bus_event_loop.h"

/* The most entries that a backend reports per round. */
#define EVENT_BACKEND_ROUND_MAX 128

struct event_ready {
    int fd;
    unsigned events; /* hang-up and errors set all; may be more than asked for */
};

struct event_backend {
    /* The state, first argument of all other operations, or NULL with errno set. *poll_fd: a
     * descriptor that is readable when wait has something to report, or -1. */
    void *(*create)(int *poll_fd);
    void (*destroy)(void *state);

    /* Changes the events that fd is watched for, level-triggered, from `before` to `events`; 0: fd
     * is not watched. They differ. STDIO_BUS_ERR with errno set; then nothing has changed. EPERM: a
     * descriptor of this kind cannot be watched. A change to 0 never fails. */
    int (*change)(void *state, int fd, unsigned before, unsigned events);

    /* Fills `ready` with at most `max` (up to EVENT_BACKEND_ROUND_MAX) entries; an fd may have two.
     * timeout_ms: -1 without end. Returns the number of entries, 0 when the time has passed, or -1
     * with errno set (EINTR: a signal). */
    int (*wait)(void *state, struct event_ready *ready, int max, int timeout_ms);
};

extern const struct event_backend event_backend_any; /* a build for tests */
extern const struct event_backend event_backend_epoll;
extern const struct event_backend event_backend_kqueue;
extern const struct event_backend event_backend_poll;

#endif
