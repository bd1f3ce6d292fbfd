#include "build_config.h"

#include "bus/upgrade_request.h"

const char *upgrade_obstacle(const struct stdio_bus *bus)
{
    if (bus->phase == BUS_PHASE_STARTING)
        return "the daemon is still starting";
    if (bus->phase >= BUS_PHASE_DRAINING || bus->stop_noted)
        return "the daemon is shutting down";
    if (bus->options.dialer != NULL || bus->options.greeter != NULL)
        return "a shared server of --share is not upgraded in place";
    if (bus->reload_noted || bus->departs || !list_empty(&bus->renewals))
        return "a reload has left workers or clients to wait for";
    return NULL;
}

const char *upgrade_request(struct stdio_bus *bus)
{
    const char *problem = upgrade_obstacle(bus);

    if (bus->options.argv == NULL)
        problem = "this daemon cannot be upgraded in place";
    if (bus->upgrade_asked)
        problem = "an upgrade is under way";
    if (problem != NULL)
        log_error(bus->log, "", UPGRADE_REFUSED "%s", problem);
    else
        bus->upgrade_asked = true;
    return problem;
}
