#include "build_config.h"

#include "bus/service.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "bus/listeners.h"
#include "bus/visitor.h"

/* --- sockets --- */

const char *services_socket(const struct bus_options *options, const struct service *service)
{
    for (size_t i = 0; options->services != NULL && options->services[i] != NULL; i++) {
        if (options->services[i] == service)
            return options->sockets[i];
    }
    return NULL;
}

bool services_listen(const struct stdio_bus *bus)
{
    bool listens = false;

    each_service(bus, at, listener)
        listens |= services_socket(&bus->options, at.service) != NULL &&
                   at.service->listener->visits->judge == NULL;
    return listens;
}

/* --- from creation to destruction --- */

int services_create(struct stdio_bus *bus)
{
    const struct service *const *list = bus->options.services;

    for (; list != NULL && list[bus->service_count] != NULL; bus->service_count++) {
        const struct service *service = list[bus->service_count];
        void **state = &bus->services[bus->service_count];

        ASSERT(bus->service_count < SERVICES_MAX);
        if (service->is_wanted != NULL && !service->is_wanted(&bus->options))
            continue;
        *state = service->create(bus);
        if (*state == NULL)
            return STDIO_BUS_ERR;
        if (service->listener != NULL)
            listeners_add_kind(bus, service->listener, *state,
                               bus->options.sockets[bus->service_count]);
    }
    return STDIO_BUS_OK;
}

void *services_state(const struct stdio_bus *bus, const struct service *service)
{
    for (size_t i = 0; i < bus->service_count; i++) {
        if (bus->options.services[i] == service)
            return bus->services[i];
    }
    return NULL;
}

void services_destroy(struct stdio_bus *bus)
{
    each_service(bus, at, destroy)
        at.service->destroy(at.state);
    bus->service_count = 0;
}

const char *services_run(struct stdio_bus *bus, const char *command, const char *by)
{
    each_service(bus, at, run) {
        if (strcmp(at.service->command, command) == 0)
            return at.service->run(at.state, by);
    }
    return "this daemon was built without that";
}
