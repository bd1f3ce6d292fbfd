/* The event backend of other POSIX systems. */
#include "build_config.h"

#include "event/backend.h"

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

struct poll_state {
    struct pollfd *fds; /* the watched descriptors, in no order */
    size_t count, capacity;
    size_t *places; /* fd -> its index in fds */
    size_t places_len;
    size_t start; /* index where the next round begins, so that every descriptor gets its turn */
};

static void *create(int *poll_fd)
{
    *poll_fd = -1;
    return calloc(1, sizeof(struct poll_state));
}

static void destroy(void *data)
{
    struct poll_state *state = data;

    free(state->fds);
    free(state->places);
    free(state);
}

static short poll_events(unsigned events)
{
    return (short)(((events & STDIO_BUS_EVENT_READ) != 0 ? POLLIN : 0) |
                   ((events & STDIO_BUS_EVENT_WRITE) != 0 ? POLLOUT : 0));
}

static int add_descriptor(struct poll_state *state, int fd, unsigned events)
{
    struct pollfd *fds = array_grow(state->fds, &state->capacity, state->count + 1, sizeof *fds);
    size_t *places;

    if (fds == NULL)
        return STDIO_BUS_ERR;
    state->fds = fds;
    places = array_grow(state->places, &state->places_len, (size_t)fd + 1, sizeof *places);
    if (places == NULL)
        return STDIO_BUS_ERR;
    state->places = places;
    places[fd] = state->count;
    fds[state->count++] = (struct pollfd){.fd = fd, .events = poll_events(events)};
    return STDIO_BUS_OK;
}

static int change(void *data, int fd, unsigned before, unsigned events)
{
    struct poll_state *state = data;
    size_t place;

    if (before == 0)
        return add_descriptor(state, fd, events);
    place = state->places[fd];
    if (events != 0) {
        state->fds[place].events = poll_events(events);
    } else {
        state->fds[place] = state->fds[--state->count];
        state->places[state->fds[place].fd] = place;
    }
    return STDIO_BUS_OK;
}

/* POLLNVAL too: the owner finds a descriptor that was closed while registered by using it. */
#define GONE (POLLHUP | POLLERR | POLLNVAL)

static unsigned ready_events(short revents)
{
    return ((revents & (POLLIN | GONE)) != 0 ? STDIO_BUS_EVENT_READ : 0) |
           ((revents & (POLLOUT | GONE)) != 0 ? STDIO_BUS_EVENT_WRITE : 0) |
           ((revents & GONE) != 0 ? STDIO_BUS_EVENT_HANGUP : 0);
}

static int wait_ready(void *data, struct event_ready *ready, int max, int timeout_ms)
{
    struct poll_state *state = data;
    int pending = poll(state->fds, (nfds_t)state->count, timeout_ms);
    int count = 0;

    if (pending < 0)
        return -1;
    for (size_t left = state->count; left > 0 && count < pending && count < max; left--) {
        const struct pollfd *found;
        if (state->start >= state->count)
            state->start = 0;
        found = &state->fds[state->start++];
        if (found->revents == 0)
            continue;
        ready[count].fd = found->fd;
        ready[count].events = ready_events(found->revents);
        count++;
    }
    return count;
}

const struct event_backend event_backend_poll = {
    .create = create,
    .destroy = destroy,
    .change = change,
    .wait = wait_ready,
};
