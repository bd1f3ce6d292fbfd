/* kqueue over epoll, by the rules of the systems' own manuals: kqueue(2) of FreeBSD, NetBSD and
 * macOS (xnu). All three have a rule unless its row names one. tests/unit/check_kqueue.c has a test
 * of each, which runs over a system's own kqueue too.
 *
 *  rule       the manual's section     what it says                        epoll, where it differs
 *  ---------  -----------------------  ----------------------------------  -----------------------
 *  pair       DESCRIPTION              ident and filter name a kevent:     one registration for
 *                                      two of one descriptor are           both
 *                                      independent
 *  found      DESCRIPTION              what is ready before it is added
 *                                      is found; what is over is not
 *                                      returned
 *  readd      EV_ADD                   adding again changes the kevent
 *                                      and makes no second one
 *  missing    ERRORS, ENOENT           what is not there cannot be
 *                                      deleted
 *  closed     DESCRIPTION; EV_DELETE   close removes the kevents of the    only the last
 *                                      descriptor, and a duplicate is      duplicate's close does
 *                                      another descriptor
 *  forked     DESCRIPTION              a child of fork has no queue        a child shares it
 *  read-end   EVFILT_READ, Sockets,    EV_EOF once the other side writes   EPOLLRDHUP; a pipe has
 *             Fifos and Pipes          no more, while data is left too     EPOLLHUP
 *  write-end  EVFILT_WRITE             EV_EOF when the reader              EPOLLHUP or EPOLLERR
 *                                      disconnects; that the other side
 *                                      writes no more is none
 *  clear      EV_CLEAR                 reported once, then when it         EPOLLET, for both
 *                                      changes (here: room once, and the   filters at once
 *                                      end once)
 *  receipt    RETURN VALUES            a change that fails is an event     each change is a call
 *                                      with EV_ERROR, errno in data;
 *                                      without room for it: -1
 *  success    EV_RECEIPT               the same with 0 for a change that   no such thing
 *                                      does not fail
 *  no-room    DESCRIPTION, nevents     0: returns at once, whatever the    EINVAL
 *             (NetBSD)                 timeout
 *  device     EVFILT_READ, Device      a device that cannot count its      EPERM
 *             nodes (macOS)            bytes is refused
 *  vnode      EVFILT_VNODE             the changes of an open file or      none: inotify (vnode.c),
 *                                      directory, once each (EV_CLEAR)     which is waited for
 *  unknown    ERRORS, EINVAL           another filter, or a time that is
 *                                      none, is refused
 *
 * Not here, since src/event does not use them, and refused: EVFILT_PROC (children are reaped after
 * SIGCHLD, which a pipe of the process reports), EVFILT_TIMER (the next timer is the timeout),
 * EVFILT_SIGNAL, EV_ONESHOT, EV_DISPATCH, EV_DISABLE, NOTE_LOWAT. Regular files,
 * which a kqueue does not report at their end, never come here: the event loop takes them for
 * always ready. */
#include "build_config.h"

#include <sys/event.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vnode.h"

#define ROUND_MAX 64
#define VNODES UINT64_MAX /* the registration of what reports changes of files */

#define FILTER_READ 1u
#define FILTER_WRITE 2u
#define FILTER_CLEAR 4u /* EVFILT_WRITE was added with EV_CLEAR, */
#define SEEN_ROOM 8u    /* has reported room, */
#define SEEN_END 16u    /* and EV_EOF */

/* The kevents of a descriptor. */
struct watch {
    unsigned filters;
    uint32_t generation; /* in the registration: what a closed descriptor left has an older one */
};

/* A queue is nothing but a descriptor, so this has to be static. */
struct queue {
    struct watch *watches; /* by descriptor */
    size_t len;
    pid_t owner;
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
    free(queues[kq].watches); /* what a closed queue of this number has left behind */
    vnode_forget(kq);
    queues[kq] = (struct queue){.owner = getpid()};
    return kq;
}

/* --- registrations --- */

/* Rules pair, clear: what the filters of one descriptor need. Alone, one with EV_CLEAR is edge-
 * triggered; beside EVFILT_READ it asks for room until that was reported. */
static uint32_t wanted(unsigned filters)
{
    uint32_t events = 0;

    if ((filters & FILTER_READ) != 0)
        events |= EPOLLIN | EPOLLRDHUP;
    if ((filters & FILTER_WRITE) != 0 && (filters & (FILTER_CLEAR | FILTER_READ)) == FILTER_CLEAR)
        return EPOLLOUT | (uint32_t)EPOLLET;
    if ((filters & FILTER_WRITE) != 0 && (filters & SEEN_ROOM) == 0)
        events |= EPOLLOUT;
    return events;
}

static int control(int kq, int operation, int fd, const struct watch *watch)
{
    struct epoll_event event = {.events = wanted(watch->filters)};

    event.data.u64 = (uint64_t)watch->generation << 32 | (uint32_t)fd;
    return epoll_ctl(kq, operation, fd, &event);
}

/* Registers exactly these filters. 0, or -1 with errno set as a kqueue would. */
static int set_filters(int kq, int fd, struct watch *watch, unsigned filters)
{
    struct watch changed = {filters, watch->generation};
    int result;

    if ((filters & (FILTER_READ | FILTER_WRITE)) == 0) {
        watch->filters = 0;
        return control(kq, EPOLL_CTL_DEL, fd, &changed);
    }
    if (watch->filters != 0) {
        result = control(kq, EPOLL_CTL_MOD, fd, &changed);
    } else {
        changed.generation++;
        result = control(kq, EPOLL_CTL_ADD, fd, &changed);
    }
    if (result == 0)
        *watch = changed;
    else if (errno == EPERM)
        errno = ENODEV; /* rule device */
    return result;
}

/* Whether the registration is still of this descriptor: its number may be that of another file by
 * now. A change of it would report an edge again. */
static bool is_live(int kq, int fd, const struct watch *watch)
{
    if (control(kq, EPOLL_CTL_ADD, fd, watch) != 0)
        return errno == EEXIST;
    (void)control(kq, EPOLL_CTL_DEL, fd, watch);
    return false;
}

/* Rule vnode. */
static int wait_for_vnodes(int kq)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = vnode_descriptor(kq);

    event.data.u64 = VNODES;
    return fd < 0 ? 0 : epoll_ctl(kq, EPOLL_CTL_ADD, fd, &event);
}

static int add_vnode(int kq, const struct kevent *change)
{
    int added = vnode_add(kq, change);

    return added > 0 ? wait_for_vnodes(kq) : added;
}

/* Rule closed: an epoll has no way to forget a file whose descriptor was closed while it has
 * duplicates, so the queue gets another one. */
static void forget_closed(int kq)
{
    struct queue *queue = &queues[kq];
    int fresh = epoll_create1(EPOLL_CLOEXEC);

    for (size_t fd = 0; fresh >= 0 && fd < queue->len; fd++) {
        struct watch *watch = &queue->watches[fd];

        if (watch->filters != 0 && !is_live(kq, (int)fd, watch))
            watch->filters = 0;
        if (watch->filters != 0)
            (void)control(fresh, EPOLL_CTL_ADD, (int)fd, watch);
    }
    if (fresh < 0 || dup3(fresh, kq, O_CLOEXEC) < 0 || wait_for_vnodes(kq) != 0)
        abort(); /* a test cannot continue with events of a descriptor that is closed */
    (void)close(fresh);
}

/* --- changes --- */

static int apply(int kq, const struct kevent *change)
{
    struct queue *queue = &queues[kq];
    int fd = (int)change->ident;
    bool is_read = change->filter == EVFILT_READ, adds = (change->flags & EV_ADD) != 0;
    unsigned which = is_read ? FILTER_READ : FILTER_WRITE | FILTER_CLEAR | SEEN_ROOM | SEEN_END;
    void *array = queue->watches;
    struct watch *watch;

    if (change->filter == EVFILT_VNODE)
        return add_vnode(kq, change);
    errno = EINVAL; /* rule unknown */
    if ((!is_read && change->filter != EVFILT_WRITE) ||
        (change->flags & ~(EV_ADD | EV_DELETE | EV_CLEAR | EV_RECEIPT)) != 0)
        return -1;
    if (fcntl(fd, F_GETFD) < 0 ||
        grow(&array, &queue->len, (size_t)fd, sizeof(*queue->watches)) != 0)
        return -1;
    queue->watches = array;
    watch = &queue->watches[fd];
    if (watch->filters != 0 && !is_live(kq, fd, watch))
        watch->filters = 0; /* rule closed */
    if ((watch->filters & which) == 0 && !adds) {
        errno = ENOENT; /* rule missing */
        return -1;
    }
    if (!adds)
        return set_filters(kq, fd, watch, watch->filters & ~which);
    if ((watch->filters & which) != 0)
        return 0; /* rule readd: EV_CLEAR stays as it was */
    if ((change->flags & EV_CLEAR) == 0)
        which &= FILTER_READ | FILTER_WRITE;
    return set_filters(kq, fd, watch, watch->filters | (which & ~(SEEN_ROOM | SEEN_END)));
}

/* Rules receipt, success. Returns how many events there are, or -1. */
static int apply_all(int kq, const struct kevent *changes, int nchanges, struct kevent *events,
                     int nevents)
{
    int count = 0;

    for (int i = 0; i < nchanges; i++) {
        struct kevent change = changes[i];
        int error = apply(kq, &change) != 0 ? errno : 0;

        if (error == 0 && (change.flags & EV_RECEIPT) == 0)
            continue;
        if (count == nevents) {
            errno = error;
            return error != 0 ? -1 : count;
        }
        change.flags = EV_ERROR;
        change.data = error;
        events[count++] = change;
    }
    return count;
}

/* --- events --- */

/* Rule clear: whether the write filter has this to report. */
static bool reports_write(struct watch *watch, uint32_t found)
{
    bool room = (found & EPOLLOUT) != 0, end = (found & (EPOLLHUP | EPOLLERR)) != 0;

    if ((watch->filters & FILTER_WRITE) == 0)
        return false;
    if ((watch->filters & FILTER_CLEAR) == 0)
        return room || end;
    room = room && (watch->filters & SEEN_ROOM) == 0;
    end = end && (watch->filters & SEEN_END) == 0;
    watch->filters |= (room ? SEEN_ROOM : 0) | (end ? SEEN_END : 0);
    return room || end;
}

/* The events of one descriptor: none to two. Returns how many. */
static int split(int kq, const struct epoll_event *event, struct kevent *events)
{
    const uint32_t end = EPOLLHUP | EPOLLERR;
    int fd = (int)(uint32_t)event->data.u64, count = 0, bytes = 0;
    struct watch *watch = &queues[kq].watches[fd];

    memset(events, 0, 2 * sizeof(*events));
    if ((watch->filters & FILTER_READ) != 0 &&
        (event->events & (EPOLLIN | EPOLLRDHUP | end)) != 0) {
        (void)ioctl(fd, FIONREAD, &bytes);
        events[count].ident = (uintptr_t)fd;
        events[count].filter = EVFILT_READ;
        events[count].data = bytes;
        if ((event->events & (EPOLLRDHUP | end)) != 0)
            events[count].flags = EV_EOF; /* rule read-end */
        count++;
    }
    if (reports_write(watch, event->events)) {
        events[count].ident = (uintptr_t)fd;
        events[count].filter = EVFILT_WRITE;
        if ((event->events & end) != 0)
            events[count].flags = EV_EOF; /* rule write-end */
        count++;
        if ((watch->filters & FILTER_READ) != 0)
            (void)control(kq, EPOLL_CTL_MOD, fd, watch); /* asks for room no more */
    }
    return count;
}

/* -1: without end; -2: it is none. */
static int timeout_to_ms(const struct timespec *timeout)
{
    if (timeout == NULL)
        return -1;
    if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999)
        return -2;
    if (timeout->tv_sec >= INT_MAX / 1000)
        return INT_MAX;
    return (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
}

/* Waits once. Returns the number of events; *again: what came was nothing to report. */
static int collect(int kq, struct kevent *events, int nevents, int timeout_ms, bool *again)
{
    struct epoll_event found[ROUND_MAX];
    int max = nevents / 2 < ROUND_MAX ? nevents / 2 : ROUND_MAX; /* each may need room for two */
    int ready, count = vnode_collect(kq, events, nevents);
    bool has_closed = false;

    *again = false;
    if (count > 0)
        return count;
    ready = epoll_wait(kq, found, max, timeout_ms);

    for (int i = 0; i < ready; i++) {
        int fd = (int)(uint32_t)found[i].data.u64;
        const struct watch *watch;

        if (found[i].data.u64 == VNODES)
            continue; /* the next round collects it */
        watch = &queues[kq].watches[fd];
        if (found[i].data.u64 >> 32 != watch->generation || watch->filters == 0 ||
            fcntl(fd, F_GETFD) < 0 || !is_live(kq, fd, watch))
            has_closed = true; /* rule closed */
        else
            count += split(kq, &found[i], &events[count]);
    }
    if (has_closed)
        forget_closed(kq);
    *again = ready > 0 && count == 0;
    return ready < 0 ? -1 : count;
}

int kevent(int kq, const struct kevent *changes, int nchanges, struct kevent *events, int nevents,
           const struct timespec *timeout)
{
    int timeout_ms = timeout_to_ms(timeout), count;
    bool again = false;

    if ((size_t)kq >= queues_len || queues[kq].owner != getpid() || timeout_ms == -2) {
        errno = timeout_ms == -2 ? EINVAL : EBADF; /* rules unknown, forked */
        return -1;
    }
    count = apply_all(kq, changes, nchanges, events, nevents);
    if (count != 0 || nevents == 0) /* rule no-room */
        return count;
    do
        count = collect(kq, events, nevents, timeout_ms, &again);
    while (again && timeout_ms != 0);
    return count;
}
