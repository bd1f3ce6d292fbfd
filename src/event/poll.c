/* The event backend of every other POSIX system. */
#include "build_config.h"

#include "event/backend.h"

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"

struct poll_state {
    struct pollfd *fds; /* the watched descriptors, in no order */
    size_t count, capacity;
    size_t *places; /* fd -> its index in fds */
    size_t places_len;
    size_t start; /* where the next round begins to look: every descriptor gets its turn */
};

static void *create(void)
{
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

/* Room for one more descriptor. */
static int grow_fds(struct poll_state *state)
{
    size_t capacity = state->capacity == 0 ? 16 : state->capacity * 2;
    struct pollfd *fds;

    if (state->count < state->capacity)
        return STDIO_BUS_OK;
    fds = realloc(state->fds, capacity * sizeof(*fds));
    if (fds == NULL)
        return STDIO_BUS_ERR;
    state->fds = fds;
    state->capacity = capacity;
    return STDIO_BUS_OK;
}

/* Room for the place of fd. */
static int grow_places(struct poll_state *state, size_t fd)
{
    size_t len = state->places_len == 0 ? 16 : state->places_len;
    size_t *places;

    if (fd < state->places_len)
        return STDIO_BUS_OK;
    while (len <= fd)
        len *= 2;
    places = realloc(state->places, len * sizeof(*places));
    if (places == NULL)
        return STDIO_BUS_ERR;
    state->places = places;
    state->places_len = len;
    return STDIO_BUS_OK;
}

static int add(void *data, int fd, unsigned events)
{
    struct poll_state *state = data;

    if (grow_fds(state) != STDIO_BUS_OK || grow_places(state, (size_t)fd) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    state->places[fd] = state->count;
    state->fds[state->count].fd = fd;
    state->fds[state->count].events = poll_events(events);
    state->fds[state->count].revents = 0;
    state->count++;
    return STDIO_BUS_OK;
}

static int modify(void *data, int fd, unsigned before, unsigned events)
{
    struct poll_state *state = data;

    (void)before;
    state->fds[state->places[fd]].events = poll_events(events);
    return STDIO_BUS_OK;
}

static void remove_fd(void *data, int fd, unsigned before)
{
    struct poll_state *state = data;
    size_t place = state->places[fd];

    (void)before;
    state->count--;
    state->fds[place] = state->fds[state->count];
    state->places[state->fds[place].fd] = place;
}

static unsigned ready_events(short revents)
{
    /* POLLNVAL too: a descriptor that was closed while registered is found by using it. */
    const short both = POLLHUP | POLLERR | POLLNVAL;
    unsigned events = 0;

    if ((revents & (POLLIN | both)) != 0)
        events |= STDIO_BUS_EVENT_READ;
    if ((revents & (POLLOUT | both)) != 0)
        events |= STDIO_BUS_EVENT_WRITE;
    if ((revents & both) != 0)
        events |= STDIO_BUS_EVENT_HANGUP;
    return events;
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

static int get_fd(const void *data)
{
    (void)data;
    return -1;
}

const struct event_backend event_backend_poll = {
    .name = "poll",
    .create = create,
    .destroy = destroy,
    .add = add,
    .modify = modify,
    .remove = remove_fd,
    .wait = wait_ready,
    .get_fd = get_fd,
};
