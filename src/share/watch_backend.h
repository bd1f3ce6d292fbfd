/* The platform seam of --watch: what reports that files may have changed. configure decides which
 * files are compiled, and which struct WATCH_BACKEND_DEFAULT names; where it is NULL, files are
 * looked at every second.
 *
 * A backend only reports that a look is due: what has changed is found by the look
 * (share/watched_files.h), after which the state is made again. So it forgets nothing and follows
 * nothing. */
#ifndef STDIO_BUS_SHARE_WATCH_BACKEND_H
#define STDIO_BUS_SHARE_WATCH_BACKEND_H

#include <stdbool.h>

#include "share/watched_files.h"

struct watch_backend {
    const char *name;

    /* The state, first argument of all other operations, or NULL with errno set. *fd: readable when
     * there is something to read. */
    void *(*create)(int *fd);
    void (*destroy)(void *state);

    /* Watches a place. STDIO_BUS_ENOTFOUND: it is not there, or cannot be read. STDIO_BUS_ERR with
     * errno set: a limit of the system was met. The name is borrowed until `destroy`. */
    int (*add)(void *state, enum watched_place place, const char *path, struct slice name);

    /* Reads all there is. Returns whether a file may have changed. */
    bool (*read)(void *state);
};

extern const struct watch_backend watch_backend_inotify;
extern const struct watch_backend watch_backend_kqueue;

#endif
