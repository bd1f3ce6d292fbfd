/* The event backend of macOS and the BSDs. */
#include "build_config.h"

#include "event/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/event.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

/* The fields of struct kevent have other types on NetBSD. */
#ifdef __NetBSD__
typedef uint32_t kevent_filter;
typedef uint32_t kevent_flags;
typedef size_t kevent_count;
#else
typedef short kevent_filter;
typedef unsigned short kevent_flags;
typedef int kevent_count;
#endif

struct kqueue_state {
    int fd;
    struct kevent events[EVENT_BACKEND_ROUND_MAX];
};

static void *create(int *poll_fd)
{
    struct kqueue_state *state = NULL;
    int fd = kqueue();

    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        state = malloc(sizeof *state);
    if (state != NULL)
        state->fd = *poll_fd = fd;
    else if (fd >= 0)
        descriptor_close(fd);
    return state;
}

static void destroy(void *data)
{
    struct kqueue_state *state = data;

    (void)close(state->fd);
    free(state);
}

/* Adds or deletes one filter: a call with one change returns its error, without EV_RECEIPT. */
static int change_filter(struct kqueue_state *state, int fd, kevent_filter filter,
                         kevent_flags flags)
{
    struct kevent one;
    int result;

    /* Not EV_SET: the type of udata differs between the systems. */
    memset(&one, 0, sizeof one);
    one.ident = (uintptr_t)fd;
    one.filter = filter;
    one.flags = flags;
    do
        result = kevent(state->fd, &one, 1, NULL, 0, NULL);
    while (result < 0 && errno == EINTR);
    return result < 0 ? STDIO_BUS_ERR : STDIO_BUS_OK;
}

/* No filter reports a hang-up alone. The write filter reports it as the end of writing; with
 * EV_CLEAR it reports room only once, so that room does not wake the loop all the time. */
static kevent_flags write_filter(unsigned events)
{
    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        return EV_ADD;
    return (events & STDIO_BUS_EVENT_HANGUP) != 0 ? EV_ADD | EV_CLEAR : 0;
}

/* A filter keeps the EV_CLEAR that it was added with, so a change deletes it first. */
static int change_write(struct kqueue_state *state, int fd, unsigned before, unsigned events)
{
    kevent_flags old_flags = write_filter(before), flags = write_filter(events);
    int saved;

    if (flags == old_flags)
        return STDIO_BUS_OK;
    if (old_flags != 0)
        (void)change_filter(state, fd, EVFILT_WRITE, EV_DELETE);
    if (flags == 0 || change_filter(state, fd, EVFILT_WRITE, flags) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    saved = errno;
    if (old_flags != 0)
        (void)change_filter(state, fd, EVFILT_WRITE, old_flags);
    errno = saved;
    return STDIO_BUS_ERR;
}

/* The systems refuse devices without a filter (/dev/null) with different errors. A terminal is
 * never taken for one: as always ready, it would spin. */
static void name_refusal(int fd, int error)
{
    bool refused = error == ENODEV || error == EINVAL || error == EOPNOTSUPP || error == ENOTSUP;

    errno = refused && !isatty(fd) ? EPERM : error;
}

static int change(void *data, int fd, unsigned before, unsigned events)
{
    struct kqueue_state *state = data;
    bool adds_read = (events & ~before & STDIO_BUS_EVENT_READ) != 0;
    int saved;

    if (adds_read && change_filter(state, fd, EVFILT_READ, EV_ADD) != STDIO_BUS_OK) {
        name_refusal(fd, errno);
        return STDIO_BUS_ERR;
    }
    if (change_write(state, fd, before, events) != STDIO_BUS_OK) {
        saved = errno;
        if (adds_read)
            (void)change_filter(state, fd, EVFILT_READ, EV_DELETE);
        name_refusal(fd, saved);
        return STDIO_BUS_ERR;
    }
    if ((before & ~events & STDIO_BUS_EVENT_READ) != 0)
        (void)change_filter(state, fd, EVFILT_READ, EV_DELETE);
    return STDIO_BUS_OK;
}

static unsigned ready_events(const struct kevent *event)
{
    /* EV_EOF is the end of input here, which the owner finds by reading. */
    if (event->filter == EVFILT_READ)
        return STDIO_BUS_EVENT_READ;
    if ((event->flags & EV_EOF) != 0)
        return STDIO_BUS_EVENT_WRITE | STDIO_BUS_EVENT_HANGUP;
    return STDIO_BUS_EVENT_WRITE;
}

static int wait_ready(void *data, struct event_ready *ready, int max, int timeout_ms)
{
    struct kqueue_state *state = data;
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    int count = kevent(state->fd, NULL, 0, state->events, (kevent_count)max,
                       timeout_ms < 0 ? NULL : &timeout);

    for (int i = 0; i < count; i++) {
        ready[i].fd = (int)state->events[i].ident;
        ready[i].events = ready_events(&state->events[i]);
    }
    return count;
}

const struct event_backend event_backend_kqueue = {
    .create = create,
    .destroy = destroy,
    .change = change,
    .wait = wait_ready,
};
