/* --watch: a look is due when a backend reports that files may have changed, and were left alone
 * for silence_ms since. Without a backend, or when it meets a limit of the system, there is a look
 * every look_ms. */
#ifndef STDIO_BUS_SHARE_WATCH_H
#define STDIO_BUS_SHARE_WATCH_H

#include "base/log.h"
#include "event/event_loop.h"
#include "share/watch_backend.h"

#define WATCH_SILENCE_MS 200
#define WATCH_LOOK_MS 1000

struct watch {
    const struct watch_backend *backend; /* NULL: none, or no longer */
    char *const *paths;
    size_t count;
    void (*changed)(void *user_data); /* called after the silence */
    void *user_data;
    struct stdio_bus_event_loop *loop;
    struct log *log;
    int64_t silence_ms, look_ms;
    /* private */
    void *state; /* of the backend */
    int fd;
    uint64_t seen; /* at the last look */
    bool is_changed, is_cut;
    struct timer timer;
    struct watched_files files;
};

/* Watches from now on, if there is a path. The caller has set the fields that are not private; the
 * paths, absolute, are borrowed until the end. */
void watch_begin(struct watch *watch);

/* To be called before the loop is destroyed. */
void watch_end(struct watch *watch);

#endif
