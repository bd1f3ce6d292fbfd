#include "build_config.h"

#include "share/watch.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/* --- the backend --- */

static void close_backend(struct watch *watch)
{
    if (watch->state == NULL)
        return;
    (void)stdio_bus_event_loop_remove(watch->loop, watch->fd);
    watch->backend->destroy(watch->state);
    watch->state = NULL;
}

/* Says so once, and looks from now on. */
static void give_up(struct watch *watch)
{
    log_warn(watch->log, "", "--watch: %s: %s: looking at the files every second",
             watch->backend->name, strerror(errno));
    close_backend(watch);
    watch->backend = NULL;
}

static void look_after_silence(struct watch *watch)
{
    stdio_bus_event_loop_start_timer(watch->loop, &watch->timer, watch->silence_ms);
}

/* stdio_bus_event_fn */
static void readable(void *user_data, unsigned events)
{
    struct watch *watch = user_data;

    (void)events;
    if (watch->backend->read(watch->state))
        look_after_silence(watch);
}

static void open_backend(struct watch *watch)
{
    close_backend(watch);
    if (watch->backend == NULL)
        return;
    watch->state = watch->backend->create(&watch->fd);
    if (watch->state == NULL) {
        give_up(watch);
        return;
    }
    if (stdio_bus_event_loop_add(watch->loop, watch->fd, STDIO_BUS_EVENT_READ, readable, watch) ==
        STDIO_BUS_OK)
        return;
    give_up(watch);
}

/* watched_visit */
static bool watch_place(void *user_data, enum watched_place place, const char *path,
                        struct slice name)
{
    struct watch *watch = user_data;
    int status;

    if (watch->state == NULL)
        return true;
    status = watch->backend->add(watch->state, place, path, name);
    if (status == STDIO_BUS_ERR)
        give_up(watch);
    return status != STDIO_BUS_ENOTFOUND;
}

/* --- looks --- */

/* Whether the files are others than at the last look. */
static bool look(struct watch *watch)
{
    struct watched_files *files = &watch->files;
    uint64_t before = watch->seen;
    bool is_cut;

    open_backend(watch);
    watched_files_look(files, watch->paths, watch->count, watch_place, watch);
    is_cut = files->count >= WATCHED_FILES_MAX;
    if (is_cut && !watch->is_cut)
        log_warn(watch->log, "", "--watch: there are more than %d files: the rest is not seen",
                 WATCHED_FILES_MAX);
    watch->is_cut = is_cut;
    watch->seen = files->hash;
    return watch->seen != before;
}

static void report(struct watch *watch)
{
    watch->is_changed = false;
    log_info(watch->log, "", "--watch: files have changed%s%s",
             watch->files.newest[0] != '\0' ? "; the newest is " : "", watch->files.newest);
    watch->changed(watch->user_data);
}

/* timer_fn. Without a backend, two looks make the silence. */
static void look_due(void *user_data)
{
    struct watch *watch = user_data;
    bool differs = look(watch);

    watch->is_changed |= differs;
    if (differs && watch->backend == NULL) {
        look_after_silence(watch);
        return;
    }
    if (watch->is_changed)
        report(watch);
    if (watch->backend == NULL)
        stdio_bus_event_loop_start_timer(watch->loop, &watch->timer, watch->look_ms);
}

void watch_begin(struct watch *watch)
{
    timer_init(&watch->timer, look_due, watch);
    watch->state = NULL;
    watch->seen = 0;
    watch->is_changed = watch->is_cut = false;
    if (watch->count == 0)
        return;
    (void)look(watch);
    if (watch->backend == NULL)
        stdio_bus_event_loop_start_timer(watch->loop, &watch->timer, watch->look_ms);
}

void watch_end(struct watch *watch)
{
    if (watch->count == 0)
        return;
    stdio_bus_event_loop_stop_timer(watch->loop, &watch->timer);
    close_backend(watch);
}
