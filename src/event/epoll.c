/* The event backend of Linux. */
#include "build_config.h"

#include "event/backend.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

struct epoll_state {
    int fd;
    struct epoll_event events[EVENT_BACKEND_ROUND_MAX];
};

static void *create(int *poll_fd)
{
    struct epoll_state *state;
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return NULL;
    state = malloc(sizeof *state);
    if (state == NULL) {
        descriptor_close(fd);
        return NULL;
    }
    state->fd = *poll_fd = fd;
    return state;
}

static void destroy(void *data)
{
    struct epoll_state *state = data;

    (void)close(state->fd);
    free(state);
}

static int change(void *data, int fd, unsigned before, unsigned events)
{
    const struct epoll_state *state = data;
    struct epoll_event event = {.data.fd = fd};
    int operation = before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (events == 0) /* closing is not enough: a child may hold the description until its exec */
        operation = EPOLL_CTL_DEL;
    if ((events & STDIO_BUS_EVENT_READ) != 0)
        event.events |= EPOLLIN;
    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        event.events |= EPOLLOUT;
    return epoll_ctl(state->fd, operation, fd, &event) == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
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

const struct event_backend event_backend_epoll = {
    .create = create,
    .destroy = destroy,
    .change = change,
    .wait = wait_ready,
};
