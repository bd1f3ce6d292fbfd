/* kqueue over epoll. Two filters of one descriptor are one registration there, so the shim keeps
 * which filters are set; as a queue is nothing but a descriptor, this has to be static.
 *
 * Unlike a kernel's queue it does not forget a closed descriptor that has duplicates. */
#include "build_config.h"

#include <sys/event.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUND_MAX 64

#define FILTER_READ 1u
#define FILTER_WRITE 2u
#define FILTER_END 4u /* EVFILT_WRITE with EV_CLEAR */

struct queue {
    unsigned char *filters; /* by descriptor */
    size_t len;
};

static struct queue *queues; /* by the queue's descriptor */
static size_t queues_len;

/* Makes room for element `index`, zeroed. */
static int grow(void **array, size_t *len, size_t index, size_t element_size)
{
    size_t new_len = index + 16;
    void *grown;

    if (index < *len)
        return 0;
    grown = realloc(*array, new_len * element_size);
    if (grown == NULL)
        return -1;
    memset((char *)grown + *len * element_size, 0, (new_len - *len) * element_size);
    *array = grown;
    *len = new_len;
    return 0;
}

int kqueue(void)
{
    int kq = epoll_create1(EPOLL_CLOEXEC);
    void *array = queues;

    if (kq < 0)
        return -1;
    if (grow(&array, &queues_len, (size_t)kq, sizeof(*queues)) != 0) {
        (void)close(kq);
        errno = ENOMEM;
        return -1;
    }
    queues = array;
    /* What a closed queue of this number has left behind. */
    free(queues[kq].filters);
    queues[kq].filters = NULL;
    queues[kq].len = 0;
    return kq;
}

/* Registers exactly `filters` for fd. 0, or -1 with errno set as a kqueue would. */
static int set_filters(int kq, int fd, unsigned filters)
{
    struct epoll_event event = {0};
    int result;

    event.data.fd = fd;
    if ((filters & FILTER_READ) != 0)
        event.events |= EPOLLIN;
    if ((filters & FILTER_WRITE) != 0)
        event.events |= EPOLLOUT;
    if (filters == 0)
        return epoll_ctl(kq, EPOLL_CTL_DEL, fd, &event);
    result = epoll_ctl(kq, EPOLL_CTL_MOD, fd, &event);
    if (result != 0 && errno == ENOENT)
        result = epoll_ctl(kq, EPOLL_CTL_ADD, fd, &event);
    if (result != 0 && errno == EPERM)
        errno = ENODEV; /* what a device without filters answers */
    return result;
}

/* Makes the change; false if there is nothing to delete. */
static bool changed(const struct kevent *change, unsigned *filters)
{
    unsigned which = change->filter == EVFILT_READ ? FILTER_READ : FILTER_WRITE | FILTER_END;

    if ((change->flags & EV_DELETE) != 0) {
        bool found = (*filters & which) != 0;
        *filters &= ~which;
        return found;
    }
    if ((*filters & which) == 0)
        *filters |= which & ((change->flags & EV_CLEAR) != 0 ? FILTER_END : ~FILTER_END);
    return true;
}

static int apply(int kq, const struct kevent *change)
{
    struct queue *queue = &queues[kq];
    int fd = (int)change->ident;
    struct epoll_event probe = {0};
    void *array = queue->filters;
    unsigned filters;

    if (fcntl(fd, F_GETFD) < 0)
        return -1;
    if (grow(&array, &queue->len, (size_t)fd, 1) != 0)
        return -1;
    queue->filters = array;
    /* A descriptor that was closed has no filters any more, though its number was used again. */
    probe.data.fd = fd;
    if (epoll_ctl(kq, EPOLL_CTL_MOD, fd, &probe) != 0)
        queue->filters[fd] = 0;
    filters = queue->filters[fd];
    if (!changed(change, &filters)) {
        (void)set_filters(kq, fd, filters);
        errno = ENOENT;
        return -1;
    }
    if (set_filters(kq, fd, filters) != 0)
        return -1;
    queue->filters[fd] = (unsigned char)filters;
    return 0;
}

/* The events of one descriptor: none to two. Returns how many. */
static int split(int kq, const struct epoll_event *event, struct kevent *events)
{
    const uint32_t end = EPOLLHUP | EPOLLERR;
    unsigned filters = queues[kq].filters[event->data.fd];
    unsigned short flags = (event->events & end) != 0 ? EV_EOF : 0;
    int count = 0;

    memset(events, 0, 2 * sizeof(*events));
    events[0].ident = events[1].ident = (uintptr_t)event->data.fd;
    events[0].flags = events[1].flags = flags;
    if ((filters & FILTER_READ) != 0 && (event->events & (EPOLLIN | end)) != 0)
        events[count++].filter = EVFILT_READ;
    if ((filters & FILTER_WRITE) != 0 && (event->events & (EPOLLOUT | end)) != 0)
        events[count++].filter = EVFILT_WRITE;
    if ((filters & FILTER_END) != 0 && (event->events & end) != 0)
        events[count++].filter = EVFILT_WRITE;
    return count;
}

static int timeout_to_ms(const struct timespec *timeout)
{
    if (timeout == NULL)
        return -1;
    if (timeout->tv_sec >= INT_MAX / 1000)
        return INT_MAX;
    return (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
}

int kevent(int kq, const struct kevent *changes, int nchanges, struct kevent *events, int nevents,
           const struct timespec *timeout)
{
    struct epoll_event found[ROUND_MAX];
    int max = nevents / 2 < ROUND_MAX ? nevents / 2 : ROUND_MAX;
    int ready, count = 0;

    for (int i = 0; i < nchanges; i++) {
        if (apply(kq, &changes[i]) != 0)
            return -1;
    }
    if (nevents == 0)
        return 0;
    /* Each descriptor may need room for two. */
    ready = epoll_wait(kq, found, max, timeout_to_ms(timeout));
    for (int i = 0; i < ready; i++)
        count += split(kq, &found[i], &events[count]);
    return ready < 0 ? -1 : count;
}
