#include "build_config.h"

#include "upgrade/service.h"

#include <signal.h>

#include "upgrade/upgrade.h"

static void *create(struct stdio_bus *bus)
{
    return upgrade_create(bus);
}

static void detach(void *state)
{
    upgrade_stop(state);
}

static void destroy(void *state)
{
    upgrade_destroy(state);
}

static void caught(void *state)
{
    (void)upgrade_request(state);
}

static void after_writing(void *state)
{
    upgrade_go_on(state);
}

static const char *run(void *state, const char *by)
{
    (void)by;
    return upgrade_request(state);
}

const struct service upgrade_service = {
    .create = create,
    .detach = detach,
    .destroy = destroy,
    .signal = SIGUSR2,
    .caught = caught,
    .after_writing = after_writing,
    .command = "upgrade",
    .run = run,
};
