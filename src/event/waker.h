/* A waker: a descriptor in an event loop that becomes readable at a deadline. With it the loop's
 * poll_fd shows all that the loop waits for, to a program that waits for the poll_fd alone. */
#ifndef STDIO_BUS_EVENT_WAKER_H
#define STDIO_BUS_EVENT_WAKER_H

#include "event/event_loop.h"

/* All members are private to waker.c. */
struct waker {
    struct stdio_bus_event_loop *loop;
    int fd;         /* -1: there is none */
    int64_t due_ms; /* when it becomes readable */
};

/* Adds a waker to the loop, not armed. Where the loop has no poll_fd, or the system no such
 * descriptor, it does nothing. STDIO_BUS_ERR with errno set; then there is none. */
int waker_open(struct waker *waker, struct stdio_bus_event_loop *loop);

/* Before the loop is destroyed. A second call does nothing. */
void waker_close(struct waker *waker);

/* The poll_fd becomes readable at this time of the loop (EVENT_LOOP_NOW, EVENT_LOOP_NEVER), or
 * earlier if that was asked for before. The next round makes it unreadable. */
void waker_arm(struct waker *waker, int64_t due_ms);

#endif
