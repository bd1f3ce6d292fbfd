/* As much of <sys/event.h> as src/event/kqueue.c and src/share/watch_kqueue.c use, to compile and
 * test them on Linux. The rules that it keeps are a table in kqueue_shim.c. */
#ifndef KQUEUE_SHIM_SYS_EVENT_H
#define KQUEUE_SHIM_SYS_EVENT_H

#include <stdint.h>
#include <time.h>

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_VNODE (-4)

#define NOTE_DELETE 0x0001
#define NOTE_WRITE 0x0002
#define NOTE_EXTEND 0x0004
#define NOTE_ATTRIB 0x0008
#define NOTE_RENAME 0x0020

#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_CLEAR 0x0020
#define EV_RECEIPT 0x0040
#define EV_ERROR 0x4000
#define EV_EOF 0x8000

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    intptr_t data;
    void *udata;
};

/* A new queue: a close-on-exec descriptor that poll sees readable when events wait. To be closed
 * with close. -1 with errno set. */
int kqueue(void);

/* Applies the changes, then, if nevents > 0, waits for events. timeout NULL: without end. Returns
 * the number of events, or -1 with errno set. */
int kevent(int kq, const struct kevent *changes, int nchanges, struct kevent *events, int nevents,
           const struct timespec *timeout);

#endif
