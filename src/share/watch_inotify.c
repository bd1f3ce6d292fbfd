/* The backend of --watch on Linux. */
#include "build_config.h"

#include "share/watch_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/descriptor.h"
#include "base/error.h"

#define CHANGES                                                                                    \
    (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |              \
     IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* A directory in which one name is watched. */
struct watched_name {
    int watch;
    struct slice name;
    bool whole; /* so are all others */
};

struct inotify_state {
    int fd;
    struct watched_name names[WATCHED_PATHS_MAX];
    size_t count;
};

static void *inotify_create(int *fd)
{
    struct inotify_state *state = calloc(1, sizeof *state);

    if (state == NULL)
        return NULL;
    state->fd = *fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (state->fd >= 0)
        return state;
    free(state);
    return NULL;
}

static void inotify_destroy(void *data)
{
    struct inotify_state *state = data;

    descriptor_close(state->fd);
    free(state);
}

static bool is_limit(int error)
{
    return error == ENOSPC || error == ENOMEM;
}

static void note(struct inotify_state *state, int watch, enum watched_place place,
                 struct slice name)
{
    if (place == WATCHED_NAME) {
        ASSERT(state->count < WATCHED_PATHS_MAX);
        state->names[state->count++] = (struct watched_name){watch, name, false};
        return;
    }
    for (size_t i = 0; i < state->count; i++)
        state->names[i].whole |= state->names[i].watch == watch;
}

/* A file in a directory is watched with that. */
static int inotify_add(void *data, enum watched_place place, const char *path, struct slice name)
{
    struct inotify_state *state = data;
    int watch;

    if (place == WATCHED_PART)
        return STDIO_BUS_OK;
    watch = inotify_add_watch(state->fd, path, CHANGES);
    if (watch < 0)
        return is_limit(errno) ? STDIO_BUS_ERR : STDIO_BUS_ENOTFOUND;
    note(state, watch, place, name);
    return STDIO_BUS_OK;
}

/* --- events --- */

/* Whether the file of this name is one that the look would see, or leads to one. Without a name,
 * the event is about what is watched itself, or events were lost. */
static bool concerns(const struct inotify_state *state, int watch, struct slice name)
{
    bool is_whole = true;

    if (name.len == 0)
        return true;
    for (size_t i = 0; i < state->count; i++) {
        const struct watched_name *known = &state->names[i];

        if (known->watch != watch)
            continue;
        if (slice_equal(known->name, name))
            return true;
        is_whole = known->whole;
    }
    return is_whole && !watched_files_skip(name);
}

static bool read_events(const struct inotify_state *state, const char *bytes, size_t len)
{
    struct inotify_event event;
    bool changed = false;

    for (size_t at = 0; at < len; at += sizeof event + event.len) {
        const char *name = bytes + at + sizeof event;

        memcpy(&event, bytes + at, sizeof event);
        changed |= concerns(state, event.wd, slice_of(name, strnlen(name, event.len)));
    }
    return changed;
}

static bool inotify_read(void *data)
{
    const struct inotify_state *state = data;
    char bytes[8192];
    bool changed = false;
    ssize_t len;

    while ((len = read(state->fd, bytes, sizeof bytes)) > 0)
        changed |= read_events(state, bytes, (size_t)len);
    return changed || (len < 0 && errno != EAGAIN && errno != EINTR);
}

const struct watch_backend watch_backend_inotify = {
    .name = "inotify",
    .create = inotify_create,
    .destroy = inotify_destroy,
    .add = inotify_add,
    .read = inotify_read,
};
