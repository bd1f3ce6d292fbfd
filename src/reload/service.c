#include "build_config.h"

#include "reload/service.h"

#include <signal.h>
#include <stdlib.h>

#include "reload/reload.h"

static void *create(struct stdio_bus *bus)
{
    return reload_create(bus);
}

static void detach(void *state)
{
    struct reload *reload = state;

    renewals_stop(&reload->renewals);
}

static void caught(void *state)
{
    reload_note(state);
}

static void after_reading(void *state)
{
    reload_go_on(state);
}

static const char *run(void *state, const char *by)
{
    return reload_run(state, by);
}

static const char *unsaved(const void *state)
{
    return reload_unsaved(state);
}

const struct service reload_service = {
    .create = create,
    .detach = detach,
    .destroy = free,
    .signal = SIGHUP,
    .caught = caught,
    .after_reading = after_reading,
    .command = "reload",
    .run = run,
    .unsaved = unsaved,
};
