/* The backend of --watch on macOS and the BSDs: each file and directory is open while it is
 * watched. */
#include "build_config.h"

#include "share/watch_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/event.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/descriptor.h"
#include "base/error.h"

#ifdef O_EVTONLY
#define FLAGS (O_EVTONLY | O_NONBLOCK) /* macOS: the volume can be unmounted all the same */
#else
#define FLAGS (O_RDONLY | O_NONBLOCK)
#endif
#define CHANGES (NOTE_DELETE | NOTE_WRITE | NOTE_EXTEND | NOTE_ATTRIB | NOTE_RENAME)
#define PART_OF_LIMIT 4 /* of the descriptors that this process may have */

struct kqueue_state {
    int fd;
    int *files;
    size_t count, room, max;
};

static void *kqueue_create(int *fd)
{
    struct kqueue_state *state = calloc(1, sizeof *state);
    struct rlimit limit;

    if (state == NULL)
        return NULL;
    state->max = WATCHED_FILES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        (uintmax_t)limit.rlim_cur / PART_OF_LIMIT < state->max)
        state->max = (size_t)(limit.rlim_cur / PART_OF_LIMIT);
    state->fd = *fd = kqueue();
    if (state->fd >= 0 && fcntl(state->fd, F_SETFD, FD_CLOEXEC) == 0)
        return state;
    if (state->fd >= 0)
        descriptor_close(state->fd);
    free(state);
    return NULL;
}

static void kqueue_destroy(void *data)
{
    struct kqueue_state *state = data;

    for (size_t i = 0; i < state->count; i++)
        descriptor_close(state->files[i]);
    descriptor_close(state->fd);
    free(state->files);
    free(state);
}

static int lengthen(struct kqueue_state *state)
{
    int *files = array_grow(state->files, &state->room, state->count + 1, sizeof *files);

    if (files == NULL)
        return STDIO_BUS_ERR;
    state->files = files;
    return STDIO_BUS_OK;
}

static int watch_file(const struct kqueue_state *state, int file)
{
    struct kevent one;
    int result;

    memset(&one, 0, sizeof one); /* not EV_SET: the type of udata differs between the systems */
    one.ident = (uintptr_t)file;
    one.filter = EVFILT_VNODE;
    one.flags = EV_ADD | EV_CLEAR;
    one.fflags = CHANGES;
    do
        result = kevent(state->fd, &one, 1, NULL, 0, NULL);
    while (result < 0 && errno == EINTR);
    return result < 0 ? STDIO_BUS_ERR : STDIO_BUS_OK;
}

static bool is_limit(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int kqueue_add(void *data, enum watched_place place, const char *path, struct slice name)
{
    struct kqueue_state *state = data;
    int file, error;

    (void)place;
    (void)name;
    errno = EMFILE;
    if (state->count >= state->max || lengthen(state) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    file = open(path, FLAGS);
    if (file < 0)
        return is_limit(errno) ? STDIO_BUS_ERR : STDIO_BUS_ENOTFOUND;
    if (fcntl(file, F_SETFD, FD_CLOEXEC) == 0 && watch_file(state, file) == STDIO_BUS_OK) {
        state->files[state->count++] = file;
        return STDIO_BUS_OK;
    }
    error = errno;
    descriptor_close(file);
    errno = error;
    return STDIO_BUS_ERR;
}

static bool kqueue_read(void *data)
{
    const struct kqueue_state *state = data;
    const struct timespec now = {0, 0};
    struct kevent events[16];
    int count, changes = 0;

    while ((count = kevent(state->fd, NULL, 0, events, 16, &now)) > 0)
        changes += count;
    return changes > 0 || (count < 0 && errno != EINTR);
}

const struct watch_backend watch_backend_kqueue = {
    .name = "kqueue",
    .create = kqueue_create,
    .destroy = kqueue_destroy,
    .add = kqueue_add,
    .read = kqueue_read,
};
