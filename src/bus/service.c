#include "build_config.h"

#include "bus/service.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"

/* Goes through the services of the bus that have the operation. */
#define each_service(bus, i, operation)                                                            \
    for (size_t i = 0; i < (bus)->service_count; i++)                                              \
        if ((bus)->services[i] != NULL && (bus)->options.services[i]->operation != NULL)

static const struct service *service_at(const struct stdio_bus *bus, size_t i)
{
    return bus->options.services[i];
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
        if (service->accepted != NULL)
            bus->accepts[service->listener] = (struct bus_accept){service->accepted, *state};
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
    each_service(bus, i, start)
        service_at(bus, i)->start(bus->services[i]);
}

void services_detach(struct stdio_bus *bus)
{
    each_service(bus, i, detach)
        service_at(bus, i)->detach(bus->services[i]);
}

void services_destroy(struct stdio_bus *bus)
{
    each_service(bus, i, destroy)
        service_at(bus, i)->destroy(bus->services[i]);
    bus->service_count = 0;
}

/* --- a round of the event loop --- */

void services_act(struct stdio_bus *bus)
{
    bus->services_noted = false;
    each_service(bus, i, act)
        service_at(bus, i)->act(bus->services[i]);
}

void services_after_reading(struct stdio_bus *bus)
{
    each_service(bus, i, after_reading)
        service_at(bus, i)->after_reading(bus->services[i]);
}

void services_before_writing(struct stdio_bus *bus)
{
    each_service(bus, i, before_writing)
        service_at(bus, i)->before_writing(bus->services[i]);
}

void services_after_writing(struct stdio_bus *bus)
{
    each_service(bus, i, after_writing)
        service_at(bus, i)->after_writing(bus->services[i]);
}

bool services_caught(struct stdio_bus *bus, int signo)
{
    bool taken = false;

    each_service(bus, i, caught) {
        if (service_at(bus, i)->signal == signo) {
            service_at(bus, i)->caught(bus->services[i]);
            taken = true;
        }
    }
    return taken;
}

const char *services_run(struct stdio_bus *bus, const char *command, const char *by)
{
    each_service(bus, i, run) {
        if (strcmp(service_at(bus, i)->command, command) == 0)
            return service_at(bus, i)->run(bus->services[i], by);
    }
    return "this daemon was built without that";
}

/* --- the shutdown --- */

void services_stop_input(struct stdio_bus *bus)
{
    each_service(bus, i, stop_input)
        service_at(bus, i)->stop_input(bus->services[i]);
}

void services_end_sessions(struct stdio_bus *bus)
{
    each_service(bus, i, end_sessions)
        service_at(bus, i)->end_sessions(bus->services[i]);
}

void services_close(struct stdio_bus *bus, bool now)
{
    each_service(bus, i, close)
        service_at(bus, i)->close(bus->services[i], now);
}

size_t services_client_count(const struct stdio_bus *bus)
{
    size_t count = 0;

    each_service(bus, i, client_count)
        count += service_at(bus, i)->client_count(bus->services[i]);
    return count;
}

bool services_keep_awake(const struct stdio_bus *bus)
{
    size_t count = 0;

    each_service(bus, i, client_count)
        count += service_at(bus, i)->keeps_awake
                     ? service_at(bus, i)->client_count(bus->services[i])
                     : 0;
    return count > 0;
}

void services_remove_idle(struct stdio_bus *bus, const char *reason)
{
    each_service(bus, i, remove_idle)
        service_at(bus, i)->remove_idle(bus->services[i], reason);
}

/* --- clients that are no connections of the core --- */

struct endpoint *services_newest(const struct stdio_bus *bus, const struct peer_origin *origin,
                                 const struct group *pool)
{
    struct endpoint *newest = NULL;

    each_service(bus, i, newest)
        newest = newest != NULL ? newest
                                : service_at(bus, i)->newest(bus->services[i], origin, pool);
    return newest;
}

void services_yield(struct stdio_bus *bus)
{
    each_service(bus, i, yield)
        service_at(bus, i)->yield(bus->services[i]);
}

void services_each_report(struct stdio_bus *bus, client_report_fn *fn, void *user_data)
{
    each_service(bus, i, each_report)
        service_at(bus, i)->each_report(bus->services[i], fn, user_data);
}

bool services_disconnect(struct stdio_bus *bus, int64_t number, const char *by)
{
    bool done = false;

    each_service(bus, i, disconnect)
        done = done || service_at(bus, i)->disconnect(bus->services[i], number, by);
    return done;
}

void services_each_holder(struct stdio_bus *bus, pool_holder_fn *fn, void *user_data)
{
    each_service(bus, i, each_holder)
        service_at(bus, i)->each_holder(bus->services[i], fn, user_data);
}

bool services_use_listener(const struct stdio_bus *bus, const struct bus_listener *listener)
{
    bool is_used = false;

    each_service(bus, i, uses_listener)
        is_used |= service_at(bus, i)->uses_listener(bus->services[i], listener);
    return is_used;
}

void services_end_revoked(struct stdio_bus *bus, const struct bus_listener *listener)
{
    each_service(bus, i, end_revoked)
        service_at(bus, i)->end_revoked(bus->services[i], listener);
}

/* --- reports, reloads and upgrades --- */

unsigned services_descriptors(const struct stdio_bus *bus)
{
    unsigned count = 0;

    each_service(bus, i, descriptors)
        count += service_at(bus, i)->descriptors(bus->services[i]);
    return count;
}

void services_report(struct stdio_bus *bus, const struct bus_report *report)
{
    each_service(bus, i, report)
        service_at(bus, i)->report(bus->services[i], report);
}

void services_upgraded(struct stdio_bus *bus, const char *before, const char *problem)
{
    each_service(bus, i, upgraded)
        service_at(bus, i)->upgraded(bus->services[i], before, problem);
}

void services_measure(const struct stdio_bus *bus, struct metrics *metrics)
{
    each_service(bus, i, measure)
        service_at(bus, i)->measure(bus->services[i], metrics);
}

void services_describe(const struct stdio_bus *bus, struct json_text *to)
{
    each_service(bus, i, describe)
        service_at(bus, i)->describe(bus->services[i], to);
}

void services_limit(struct stdio_bus *bus, const struct limits *limits)
{
    each_service(bus, i, limit)
        service_at(bus, i)->limit(bus->services[i], limits);
}

void services_archive_sessions(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, i, archive_sessions)
        service_at(bus, i)->archive_sessions(bus->services[i], archive);
}

void services_archive_waiting(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, i, archive_waiting)
        service_at(bus, i)->archive_waiting(bus->services[i], archive);
}

void services_archive(struct stdio_bus *bus, struct router_archive *archive)
{
    each_service(bus, i, archive)
        service_at(bus, i)->archive(bus->services[i], archive);
}

void services_archive_client(struct stdio_bus *bus, struct router_archive *archive,
                             struct client *client)
{
    each_service(bus, i, archive_client)
        service_at(bus, i)->archive_client(bus->services[i], archive, client);
}

const char *services_unsaved(const struct stdio_bus *bus)
{
    const char *reason = NULL;

    each_service(bus, i, unsaved)
        reason = reason != NULL ? reason : service_at(bus, i)->unsaved(bus->services[i]);
    return reason;
}

void services_each_connection(struct stdio_bus *bus, void (*fn)(struct connection *connection))
{
    each_service(bus, i, each_connection)
        service_at(bus, i)->each_connection(bus->services[i], fn);
}
