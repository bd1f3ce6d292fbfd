/* EVFILT_VNODE over inotify, for kqueue_shim.c. */
#ifndef KQUEUE_SHIM_VNODE_H
#define KQUEUE_SHIM_VNODE_H

#include <sys/event.h>

/* Adds the kevent of a file to the queue. Returns -1 with errno set, 0, or the descriptor, readable
 * when there are events, that the queue is to wait for from now on. */
int vnode_add(int kq, const struct kevent *change);

/* That descriptor, or -1. */
int vnode_descriptor(int kq);

/* Reads the events that have come. Returns how many were stored, at most `max`. */
int vnode_collect(int kq, struct kevent *events, int max);

/* The queue is another one of this number. */
void vnode_forget(int kq);

#endif
