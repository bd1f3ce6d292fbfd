/* The event backend of macOS and the BSDs. */
#include "build_config.h"

#include "event/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

struct kqueue_state {
    int fd;
    struct kevent events[EVENT_BACKEND_ROUND_MAX];
};

static void *create(void)
{
    struct kqueue_state *state = malloc(sizeof(*state));
    int saved;

    if (state == NULL)
        return NULL;
    state->fd = kqueue();
    if (state->fd < 0)
        goto fail;
    if (fcntl(state->fd, F_SETFD, FD_CLOEXEC) != 0)
        goto fail;
    return state;

fail:
    saved = errno;
    if (state->fd >= 0)
        (void)close(state->fd);
    free(state);
    errno = saved;
    return NULL;
}

static void destroy(void *data)
{
    struct kqueue_state *state = data;

    (void)close(state->fd);
    free(state);
}

/* Adds or deletes one filter. One change per call: so its error is the call's, which needs neither
 * EV_RECEIPT nor room for events. */
static int change(struct kqueue_state *state, int fd, short filter, unsigned short flags)
{
    struct kevent kevent_change;
    int result;

    /* Not EV_SET: the type of udata differs between the systems. */
    memset(&kevent_change, 0, sizeof(kevent_change));
    kevent_change.ident = (uintptr_t)fd;
    kevent_change.filter = filter;
    kevent_change.flags = flags;
    do {
        result = kevent(state->fd, &kevent_change, 1, NULL, 0, NULL);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? STDIO_BUS_ERR : STDIO_BUS_OK;
}

/* There is no filter for a hang-up alone. The write filter tells it, as the end of writing; with
 * EV_CLEAR it tells only once that there is room, so that is no reason to wake up all the time. */
static unsigned short write_filter(unsigned events)
{
    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        return EV_ADD;
    return (events & STDIO_BUS_EVENT_HANGUP) != 0 ? EV_ADD | EV_CLEAR : 0;
}

/* EV_CLEAR stays as it was when a filter was first added. */
static int change_write(struct kqueue_state *state, int fd, unsigned before, unsigned events)
{
    unsigned short old_flags = write_filter(before), flags = write_filter(events);
    int saved;

    if (flags == old_flags)
        return STDIO_BUS_OK;
    if (old_flags != 0)
        (void)change(state, fd, EVFILT_WRITE, EV_DELETE);
    if (flags == 0 || change(state, fd, EVFILT_WRITE, flags) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    saved = errno;
    if (old_flags != 0)
        (void)change(state, fd, EVFILT_WRITE, old_flags);
    errno = saved;
    return STDIO_BUS_ERR;
}

/* Devices that know no filter (/dev/null) are refused differently from system to system. A terminal
 * is not among them: taking it for always ready would spin. */
static void name_refusal(int fd, int error)
{
    bool refused = error == ENODEV || error == EINVAL || error == EOPNOTSUPP || error == ENOTSUP;

    errno = refused && !isatty(fd) ? EPERM : error;
}

static int modify(void *data, int fd, unsigned before, unsigned events)
{
    struct kqueue_state *state = data;
    bool adds_read = (events & ~before & STDIO_BUS_EVENT_READ) != 0;
    int saved;

    if (adds_read && change(state, fd, EVFILT_READ, EV_ADD) != STDIO_BUS_OK) {
        name_refusal(fd, errno);
        return STDIO_BUS_ERR;
    }
    if (change_write(state, fd, before, events) != STDIO_BUS_OK) {
        saved = errno;
        if (adds_read)
            (void)change(state, fd, EVFILT_READ, EV_DELETE);
        name_refusal(fd, saved);
        return STDIO_BUS_ERR;
    }
    if ((before & ~events & STDIO_BUS_EVENT_READ) != 0)
        (void)change(state, fd, EVFILT_READ, EV_DELETE);
    return STDIO_BUS_OK;
}

static int add(void *data, int fd, unsigned events)
{
    return modify(data, fd, 0, events);
}

static void remove_fd(void *data, int fd, unsigned before)
{
    (void)modify(data, fd, before, 0);
}

static unsigned ready_events(const struct kevent *event)
{
    /* The end of reading is that of the input alone, and found by reading. */
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
    int count = kevent(state->fd, NULL, 0, state->events, max, timeout_ms < 0 ? NULL : &timeout);

    for (int i = 0; i < count; i++) {
        ready[i].fd = (int)state->events[i].ident;
        ready[i].events = ready_events(&state->events[i]);
    }
    return count;
}

static int get_fd(const void *data)
{
    const struct kqueue_state *state = data;

    return state->fd;
}

const struct event_backend event_backend_kqueue = {
    .name = "kqueue",
    .create = create,
    .destroy = destroy,
    .add = add,
    .modify = modify,
    .remove = remove_fd,
    .wait = wait_ready,
    .get_fd = get_fd,
};
