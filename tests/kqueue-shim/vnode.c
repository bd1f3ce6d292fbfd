#include "build_config.h"

#include "vnode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUEUES 1024

struct vnode {
    int fd, watch;
    unsigned notes;   /* that are asked for */
    unsigned pending; /* and have come */
    dev_t device;     /* close removes the kevent: the number may be that of another file by now */
    ino_t inode;
};

static struct vnodes {
    int inotify; /* plus 1; 0: none */
    struct vnode *all;
    size_t count;
} queues[QUEUES];

int vnode_descriptor(int kq)
{
    return kq < QUEUES ? queues[kq].inotify - 1 : -1;
}

void vnode_forget(int kq)
{
    if (kq >= QUEUES)
        return;
    if (queues[kq].inotify > 0)
        (void)close(queues[kq].inotify - 1);
    free(queues[kq].all);
    memset(&queues[kq], 0, sizeof(queues[kq]));
}

int vnode_add(int kq, const struct kevent *change)
{
    const uint32_t mask = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                          IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
    struct vnodes *vnodes = &queues[kq];
    bool is_first = kq < QUEUES && vnodes->inotify == 0;
    struct vnode vnode = {.fd = (int)change->ident, .notes = change->fflags};
    struct stat status;
    void *grown;
    char path[64];

    errno = EINVAL;
    if (kq >= QUEUES || change->flags != (EV_ADD | EV_CLEAR) || fstat(vnode.fd, &status) != 0)
        return -1;
    if (is_first)
        vnodes->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC) + 1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", vnode.fd);
    vnode.watch = vnodes->inotify > 0 ? inotify_add_watch(vnodes->inotify - 1, path, mask) : -1;
    grown = vnode.watch >= 0 ? realloc(vnodes->all, (vnodes->count + 1) * sizeof(vnode)) : NULL;
    if (grown == NULL)
        return -1;
    vnodes->all = grown;
    vnode.device = status.st_dev;
    vnode.inode = status.st_ino;
    vnodes->all[vnodes->count++] = vnode;
    return is_first ? vnodes->inotify - 1 : 0;
}

/* A directory is written when its entries change; what is in them is not its concern. */
static unsigned notes_of(const struct inotify_event *event, const struct stat *status)
{
    unsigned notes = 0;

    if ((event->mask & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) != 0)
        notes |= NOTE_WRITE;
    if (event->len > 0)
        return notes;
    if ((event->mask & IN_MODIFY) != 0)
        notes |= NOTE_WRITE | NOTE_EXTEND;
    if ((event->mask & IN_ATTRIB) != 0)
        notes |= status->st_nlink == 0 ? NOTE_DELETE : NOTE_ATTRIB;
    if ((event->mask & IN_DELETE_SELF) != 0)
        notes |= NOTE_DELETE;
    if ((event->mask & IN_MOVE_SELF) != 0)
        notes |= NOTE_RENAME;
    return notes;
}

/* False: the descriptor was closed. */
static bool is_open(const struct vnode *vnode, struct stat *status)
{
    return fstat(vnode->fd, status) == 0 && status->st_dev == vnode->device &&
           status->st_ino == vnode->inode;
}

static void take(struct vnodes *vnodes, const struct inotify_event *event)
{
    struct stat status;

    for (size_t i = 0; i < vnodes->count; i++) {
        struct vnode *vnode = &vnodes->all[i];

        if (vnode->watch == event->wd && is_open(vnode, &status))
            vnode->pending |= notes_of(event, &status) & vnode->notes;
    }
}

static void take_all(struct vnodes *vnodes)
{
    char bytes[8192];
    struct inotify_event event;
    ssize_t len;

    while ((len = read(vnodes->inotify - 1, bytes, sizeof(bytes))) > 0) {
        for (ssize_t at = 0; at < len; at += (ssize_t)(sizeof(event) + event.len)) {
            memcpy(&event, bytes + at, sizeof(event));
            take(vnodes, &event);
        }
    }
}

int vnode_collect(int kq, struct kevent *events, int max)
{
    struct vnodes *vnodes = &queues[kq];
    int count = 0;

    if (vnode_descriptor(kq) < 0)
        return 0;
    take_all(vnodes);
    for (size_t i = 0; i < vnodes->count && count < max; i++) {
        struct vnode *vnode = &vnodes->all[i];

        if (vnode->pending == 0)
            continue;
        memset(&events[count], 0, sizeof(events[count]));
        events[count].ident = (uintptr_t)vnode->fd;
        events[count].filter = EVFILT_VNODE;
        events[count++].fflags = vnode->pending;
        vnode->pending = 0;
    }
    return count;
}
