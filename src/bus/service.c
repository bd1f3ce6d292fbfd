#include "build_config.h"

#include "bus/service.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "bus/listeners.h"
#include "bus/visitor.h"

/* Goes through the services of the bus that have the operation; `at` is the place of each. */
#define each_service(bus, operation)                                                               \
    for (size_t at = 0; at < (bus)->service_count; at++)                                           \
        if ((bus)->services[at] != NULL && (bus)->options.services[at]->operation != NULL)

static const struct service *service_at(const struct stdio_bus *bus, size_t at)
{
    return bus->options.services[at];
}

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

    each_service(bus, listener)
        listens |= bus->options.sockets[at] != NULL &&
                   service_at(bus, at)->listener->visits->judge == NULL;
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

void services_start(struct stdio_bus *bus)
{
    each_service(bus, start)
        service_at(bus, at)->start(bus->services[at]);
}

void services_detach(struct stdio_bus *bus)
{
    each_service(bus, detach)
        service_at(bus, at)->detach(bus->services[at]);
}

void services_destroy(struct stdio_bus *bus)
{
    each_service(bus, destroy)
        service_at(bus, at)->destroy(bus->services[at]);
    bus->service_count = 0;
}

/* --- a round of the event loop --- */

void services_act(struct stdio_bus *bus)
{
    bus->services_noted = false;
    each_service(bus, act)
        service_at(bus, at)->act(bus->services[at]);
}

void services_after_reading(struct stdio_bus *bus)
{
    each_service(bus, after_reading)
        service_at(bus, at)->after_reading(bus->services[at]);
}

void services_before_writing(struct stdio_bus *bus)
{
    each_service(bus, before_writing)
        service_at(bus, at)->before_writing(bus->services[at]);
}

void services_after_writing(struct stdio_bus *bus)
{
    each_service(bus, after_writing)
        service_at(bus, at)->after_writing(bus->services[at]);
}

bool services_caught(struct stdio_bus *bus, int signo)
{
    bool taken = false;

    each_service(bus, caught) {
        if (service_at(bus, at)->signal == signo) {
            service_at(bus, at)->caught(bus->services[at]);
            taken = true;
        }
    }
    return taken;
}

const char *services_run(struct stdio_bus *bus, const char *command, const char *by)
{
    each_service(bus, run) {
        if (strcmp(service_at(bus, at)->command, command) == 0)
            return service_at(bus, at)->run(bus->services[at], by);
    }
    return "this daemon was built without that";
}

/* --- the shutdown --- */

void services_stop_input(struct stdio_bus *bus)
{
    each_service(bus, stop_input)
        service_at(bus, at)->stop_input(bus->services[at]);
}

void services_before_close(struct stdio_bus *bus)
{
    each_service(bus, before_close)
        service_at(bus, at)->before_close(bus->services[at]);
}

/* --- clients that are no connections of the core --- */

struct endpoint *services_newest(const struct stdio_bus *bus, const struct peer_origin *origin,
                                 const struct group *pool)
{
    struct endpoint *newest = NULL;

    each_service(bus, newest)
        newest = newest != NULL ? newest
                                : service_at(bus, at)->newest(bus->services[at], origin, pool);
    return newest;
}

void services_yield(struct stdio_bus *bus)
{
    each_service(bus, yield)
        service_at(bus, at)->yield(bus->services[at]);
}

void services_each_report(struct stdio_bus *bus, client_report_fn *fn, void *user_data)
{
    each_service(bus, each_report)
        service_at(bus, at)->each_report(bus->services[at], fn, user_data);
}

bool services_disconnect(struct stdio_bus *bus, int64_t number, const char *by)
{
    bool done = false;

    each_service(bus, disconnect)
        done = done || service_at(bus, at)->disconnect(bus->services[at], number, by);
    return done;
}

void services_each_holder(struct stdio_bus *bus, pool_holder_fn *fn, void *user_data)
{
    each_service(bus, each_holder)
        service_at(bus, at)->each_holder(bus->services[at], fn, user_data);
}

bool services_use_listener(const struct stdio_bus *bus, const struct bus_listener *listener)
{
    bool is_used = false;

    each_service(bus, uses_listener)
        is_used |= service_at(bus, at)->uses_listener(bus->services[at], listener);
    return is_used;
}

void services_end_revoked(struct stdio_bus *bus, const struct bus_listener *listener)
{
    each_service(bus, end_revoked)
        service_at(bus, at)->end_revoked(bus->services[at], listener);
}

/* --- reports, reloads and upgrades --- */

unsigned services_descriptors(const struct stdio_bus *bus)
{
    unsigned count = 0;

    each_service(bus, descriptors)
        count += service_at(bus, at)->descriptors(bus->services[at]);
    return count;
}

void services_report(struct stdio_bus *bus, const struct bus_report *report)
{
    each_service(bus, report)
        service_at(bus, at)->report(bus->services[at], report);
}

void services_upgraded(struct stdio_bus *bus, const char *before, const char *problem)
{
    each_service(bus, upgraded)
        service_at(bus, at)->upgraded(bus->services[at], before, problem);
}

void services_describe(const struct stdio_bus *bus, struct json_text *to)
{
    each_service(bus, describe)
        service_at(bus, at)->describe(bus->services[at], to);
}

void services_limit(struct stdio_bus *bus, const struct limits *limits)
{
    each_service(bus, limit)
        service_at(bus, at)->limit(bus->services[at], limits);
}

void services_archive_sessions(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, archive_sessions)
        service_at(bus, at)->archive_sessions(bus->services[at], archive);
}

void services_archive_waiting(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, archive_waiting)
        service_at(bus, at)->archive_waiting(bus->services[at], archive);
}

void services_archive(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, archive)
        service_at(bus, at)->archive(bus->services[at], archive);
}

void services_archive_client(struct stdio_bus *bus, struct router_archive *archive,
                             struct client *client)
{
    each_service(bus, archive_client)
        service_at(bus, at)->archive_client(bus->services[at], archive, client);
}

const char *services_unsaved(const struct stdio_bus *bus)
{
    const char *reason = NULL;

    each_service(bus, unsaved)
        reason = reason != NULL ? reason : service_at(bus, at)->unsaved(bus->services[at]);
    return reason;
}
