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
static int change(struct kqueue_state *state, int fd, unsigned event, unsigned short flags)
{
    struct kevent kevent_change;
    int result;

    /* Not EV_SET: the type of udata differs between the systems. */
    memset(&kevent_change, 0, sizeof(kevent_change));
    kevent_change.ident = (uintptr_t)fd;
    kevent_change.filter = event == STDIO_BUS_EVENT_READ ? EVFILT_READ : EVFILT_WRITE;
    kevent_change.flags = flags;
    do {
        result = kevent(state->fd, &kevent_change, 1, NULL, 0, NULL);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? STDIO_BUS_ERR : STDIO_BUS_OK;
}

/* Deletes what is set in events. It fails only where there is nothing to delete. */
static void unwatch(struct kqueue_state *state, int fd, unsigned events)
{
    if ((events & STDIO_BUS_EVENT_READ) != 0)
        (void)change(state, fd, STDIO_BUS_EVENT_READ, EV_DELETE);
    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        (void)change(state, fd, STDIO_BUS_EVENT_WRITE, EV_DELETE);
}

/* Devices that know no filter (/dev/null) are refused differently from system to system. A terminal
 * is not among them: taking it for always ready would spin. */
static void name_refusal(int fd, int error)
{
    bool refused = error == ENODEV || error == EINVAL || error == EOPNOTSUPP || error == ENOTSUP;

    errno = refused && !isatty(fd) ? EPERM : error;
}

/* There is no filter for a hang-up alone, so that interest has no effect here. */
static int watch(struct kqueue_state *state, int fd, unsigned events)
{
    if ((events & STDIO_BUS_EVENT_READ) != 0 &&
        change(state, fd, STDIO_BUS_EVENT_READ, EV_ADD) != STDIO_BUS_OK) {
        name_refusal(fd, errno);
        return STDIO_BUS_ERR;
    }
    if ((events & STDIO_BUS_EVENT_WRITE) != 0 &&
        change(state, fd, STDIO_BUS_EVENT_WRITE, EV_ADD) != STDIO_BUS_OK) {
        int saved = errno;
        unwatch(state, fd, events & STDIO_BUS_EVENT_READ);
        name_refusal(fd, saved);
        return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

static int add(void *data, int fd, unsigned events)
{
    return watch(data, fd, events);
}

static int modify(void *data, int fd, unsigned before, unsigned events)
{
    if (watch(data, fd, events & ~before) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    unwatch(data, fd, before & ~events);
    return STDIO_BUS_OK;
}

static void remove_fd(void *data, int fd, unsigned before)
{
    unwatch(data, fd, before);
}

static int wait_ready(void *data, struct event_ready *ready, int max, int timeout_ms)
{
    struct kqueue_state *state = data;
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    int count = kevent(state->fd, NULL, 0, state->events, max, timeout_ms < 0 ? NULL : &timeout);

    /* The end (EV_EOF) belongs to one filter, so it needs no translation: the filter tells who can
     * find it, the reader or the writer. */
    for (int i = 0; i < count; i++) {
        ready[i].fd = (int)state->events[i].ident;
        ready[i].events = state->events[i].filter == EVFILT_READ ? STDIO_BUS_EVENT_READ
                                                                 : STDIO_BUS_EVENT_WRITE;
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
