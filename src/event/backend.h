/* The platform seam of the event loop: one const struct of operations per system, a file each.
 * configure decides which files are compiled and which struct EVENT_BACKEND_DEFAULT names.
 *
 * A backend watches only descriptors with an interest; everything above that (callbacks, interest
 * 0, always-ready descriptors, reuse of a number within a round) is event_loop.c's. */
#ifndef STDIO_BUS_EVENT_BACKEND_H
#define STDIO_BUS_EVENT_BACKEND_H

#include "event/event_loop.h"

/* Descriptors that a backend reports per round, at most. */
#define EVENT_BACKEND_ROUND_MAX 128

struct event_ready {
    int fd;
    unsigned events; /* STDIO_BUS_EVENT_*; hang-up and errors are all; may be more than asked for */
};

struct event_backend {
    const char *name;

    /* The backend's state, which every other operation takes, or NULL with errno set. */
    void *(*create)(void);
    void (*destroy)(void *state);

    /* Watches fd, level-triggered; `events` is not 0. STDIO_BUS_OK, or STDIO_BUS_ERR with errno set
     * and nothing changed. EPERM: a descriptor of this kind cannot be watched. */
    int (*add)(void *state, int fd, unsigned events);

    /* Changes what is watched from `before` to `events`, neither 0 nor the same. As add. */
    int (*modify)(void *state, int fd, unsigned before, unsigned events);

    /* Stops watching. Never fails: afterwards fd is not watched. */
    void (*remove)(void *state, int fd, unsigned before);

    /* Fills ready with at most `max` (no more than EVENT_BACKEND_ROUND_MAX) entries; an fd may have
     * two. timeout_ms: -1 without end. Returns how many, 0 when the time has passed, or -1 with
     * errno set (EINTR: a signal). */
    int (*wait)(void *state, struct event_ready *ready, int max, int timeout_ms);

    /* A descriptor that is readable when wait has something to report, or -1. */
    int (*get_fd)(const void *state);
};

extern const struct event_backend event_backend_epoll;
extern const struct event_backend event_backend_kqueue;
extern const struct event_backend event_backend_poll;

/* stdio_bus_event_loop_create over a backend of the caller's choice (for tests). */
struct stdio_bus_event_loop *event_loop_create_with(const struct event_backend *backend);

#endif
