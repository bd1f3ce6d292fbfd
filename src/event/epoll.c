/* The event backend of Linux. */
#include "build_config.h"

#include "event/backend.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"

struct epoll_state {
    int fd;
    struct epoll_event events[EVENT_BACKEND_ROUND_MAX];
};

static void *create(void)
{
    struct epoll_state *state = malloc(sizeof(*state));

    if (state == NULL)
        return NULL;
    state->fd = epoll_create1(EPOLL_CLOEXEC);
    if (state->fd < 0) {
        int saved = errno;
        free(state);
        errno = saved;
        return NULL;
    }
    return state;
}

static void destroy(void *data)
{
    struct epoll_state *state = data;

    (void)close(state->fd);
    free(state);
}

static int control(struct epoll_state *state, int operation, int fd, unsigned events)
{
    struct epoll_event event = {0};

    if ((events & STDIO_BUS_EVENT_READ) != 0)
        event.events |= EPOLLIN;
    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        event.events |= EPOLLOUT;
    event.data.fd = fd;
    return epoll_ctl(state->fd, operation, fd, &event) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

static int add(void *data, int fd, unsigned events)
{
    return control(data, EPOLL_CTL_ADD, fd, events);
}

static int modify(void *data, int fd, unsigned before, unsigned events)
{
    (void)before;
    return control(data, EPOLL_CTL_MOD, fd, events);
}

static void remove_fd(void *data, int fd, unsigned before)
{
    (void)before;
    /* Not left to close: a child between fork and exec still holds the description. */
    (void)control(data, EPOLL_CTL_DEL, fd, 0);
}

static int wait_ready(void *data, struct event_ready *ready, int max, int timeout_ms)
{
    struct epoll_state *state = data;
    int count = epoll_wait(state->fd, state->events, max, timeout_ms);

    for (int i = 0; i < count; i++) {
        uint32_t events = state->events[i].events;
        ready[i].fd = state->events[i].data.fd;
        ready[i].events = 0;
        if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            ready[i].events |= STDIO_BUS_EVENT_READ;
        if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
            ready[i].events |= STDIO_BUS_EVENT_WRITE;
        if ((events & (EPOLLHUP | EPOLLERR)) != 0)
            ready[i].events |= STDIO_BUS_EVENT_HANGUP;
    }
    return count;
}

static int get_fd(const void *data)
{
    const struct epoll_state *state = data;

    return state->fd;
}

const struct event_backend event_backend_epoll = {
    .name = "epoll",
    .create = create,
    .destroy = destroy,
    .add = add,
    .modify = modify,
    .remove = remove_fd,
    .wait = wait_ready,
    .get_fd = get_fd,
};
