/* The event backend of a build with --with-event-backend=any, for tests: the variable
 * STDIO_BUS_EVENT_BACKEND of the environment names the one that a loop uses, epoll without it. One
 * build is tested over all three this way. */
#include "build_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event/backend.h"

struct any {
    const struct event_backend *backend;
    void *state; /* the backend's */
};

static const struct {
    const char *name;
    const struct event_backend *backend;
} backends[] = {
    {"epoll", &event_backend_epoll},
    {"kqueue", &event_backend_kqueue},
    {"poll", &event_backend_poll},
};

/* NULL with errno set if there is no backend of that name. */
static const struct event_backend *chosen_backend(void)
{
    const char *name = getenv("STDIO_BUS_EVENT_BACKEND");

    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backends[i].name, name != NULL ? name : "epoll") == 0)
            return backends[i].backend;
    }
    errno = EINVAL;
    return NULL;
}

static void *any_create(int *poll_fd)
{
    const struct event_backend *backend = chosen_backend();
    struct any *any = backend != NULL ? malloc(sizeof *any) : NULL;
    int error;

    if (any == NULL)
        return NULL;
    any->backend = backend;
    any->state = backend->create(poll_fd);
    if (any->state != NULL)
        return any;
    error = errno;
    free(any);
    errno = error;
    return NULL;
}

static void any_destroy(void *state)
{
    struct any *any = state;

    any->backend->destroy(any->state);
    free(any);
}

static int any_change(void *state, int fd, unsigned before, unsigned events)
{
    struct any *any = state;

    return any->backend->change(any->state, fd, before, events);
}

static int any_wait(void *state, struct event_ready *ready, int max, int timeout_ms)
{
    struct any *any = state;

    return any->backend->wait(any->state, ready, max, timeout_ms);
}

const struct event_backend event_backend_any = {
    .create = any_create,
    .destroy = any_destroy,
    .change = any_change,
    .wait = any_wait,
};
