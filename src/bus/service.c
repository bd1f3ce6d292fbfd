#include "build_config.h"

#include "bus/service.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"

/* Makes the call for each service of the bus that has the operation, with `service` and `state`. */
#define EACH(bus, operation, call)                                                                 \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < (bus)->service_count; i_++) {                                     \
            const struct service *service = (bus)->options.services[i_];                           \
            void *state = (bus)->services[i_];                                                     \
                                                                                                   \
            if (state != NULL && service->operation != NULL)                                       \
                call;                                                                              \
        }                                                                                          \
    } while (0)

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
    EACH(bus, start, service->start(state));
}

void services_detach(struct stdio_bus *bus)
{
    EACH(bus, detach, service->detach(state));
}

void services_destroy(struct stdio_bus *bus)
{
    EACH(bus, destroy, service->destroy(state));
    bus->service_count = 0;
}

/* --- a round of the event loop --- */

void services_act(struct stdio_bus *bus)
{
    bus->services_noted = false;
    EACH(bus, act, service->act(state));
}

void services_after_reading(struct stdio_bus *bus)
{
    EACH(bus, after_reading, service->after_reading(state));
}

void services_before_writing(struct stdio_bus *bus)
{
    EACH(bus, before_writing, service->before_writing(state));
}

void services_after_writing(struct stdio_bus *bus)
{
    EACH(bus, after_writing, service->after_writing(state));
}

bool services_caught(struct stdio_bus *bus, int signo)
{
    bool taken = false;

    EACH(bus, caught, {
        if (service->signal == signo) {
            service->caught(state);
            taken = true;
        }
    });
    return taken;
}

const char *services_run(struct stdio_bus *bus, const char *command, const char *by)
{
    EACH(bus, run, {
        if (strcmp(service->command, command) == 0)
            return service->run(state, by);
    });
    return "this daemon was built without that";
}

/* --- the shutdown --- */

void services_stop_input(struct stdio_bus *bus)
{
    EACH(bus, stop_input, service->stop_input(state));
}

void services_end_sessions(struct stdio_bus *bus)
{
    EACH(bus, end_sessions, service->end_sessions(state));
}

void services_close(struct stdio_bus *bus, bool now)
{
    EACH(bus, close, service->close(state, now));
}

size_t services_client_count(const struct stdio_bus *bus)
{
    size_t count = 0;

    EACH(bus, client_count, count += service->client_count(state));
    return count;
}

bool services_keep_awake(const struct stdio_bus *bus)
{
    size_t count = 0;

    EACH(bus, client_count, count += service->keeps_awake ? service->client_count(state) : 0);
    return count > 0;
}

void services_remove_idle(struct stdio_bus *bus, const char *reason)
{
    EACH(bus, remove_idle, service->remove_idle(state, reason));
}

/* --- clients that are no connections of the core --- */

struct endpoint *services_newest(const struct stdio_bus *bus, const struct peer_origin *origin,
                                 const struct group *pool)
{
    struct endpoint *newest = NULL;

    EACH(bus, newest, newest = newest != NULL ? newest : service->newest(state, origin, pool));
    return newest;
}

void services_yield(struct stdio_bus *bus)
{
    EACH(bus, yield, service->yield(state));
}

void services_each_report(struct stdio_bus *bus, client_report_fn *fn, void *user_data)
{
    EACH(bus, each_report, service->each_report(state, fn, user_data));
}

bool services_disconnect(struct stdio_bus *bus, int64_t number, const char *by)
{
    bool done = false;

    EACH(bus, disconnect, done = done || service->disconnect(state, number, by));
    return done;
}

void services_each_holder(struct stdio_bus *bus, pool_holder_fn *fn, void *user_data)
{
    EACH(bus, each_holder, service->each_holder(state, fn, user_data));
}

bool services_use_listener(const struct stdio_bus *bus, const struct bus_listener *listener)
{
    bool is_used = false;

    EACH(bus, uses_listener, is_used |= service->uses_listener(state, listener));
    return is_used;
}

void services_end_revoked(struct stdio_bus *bus, const struct bus_listener *listener)
{
    EACH(bus, end_revoked, service->end_revoked(state, listener));
}

/* --- reports, reloads and upgrades --- */

unsigned services_descriptors(const struct stdio_bus *bus)
{
    unsigned count = 0;

    EACH(bus, descriptors, count += service->descriptors(state));
    return count;
}

void services_report(struct stdio_bus *bus, const struct bus_report *report)
{
    EACH(bus, report, service->report(state, report));
}

void services_upgraded(struct stdio_bus *bus, const char *before, const char *problem)
{
    EACH(bus, upgraded, service->upgraded(state, before, problem));
}

void services_measure(const struct stdio_bus *bus, struct metrics *metrics)
{
    EACH(bus, measure, service->measure(state, metrics));
}

void services_describe(const struct stdio_bus *bus, struct json_text *to)
{
    EACH(bus, describe, service->describe(state, to));
}

void services_limit(struct stdio_bus *bus, const struct limits *limits)
{
    EACH(bus, limit, service->limit(state, limits));
}

void services_archive_sessions(struct stdio_bus *bus, struct router_archive *archive)
{
    EACH(bus, archive_sessions, service->archive_sessions(state, archive));
}

void services_archive_waiting(struct stdio_bus *bus, struct router_archive *archive)
{
    EACH(bus, archive_waiting, service->archive_waiting(state, archive));
}

void services_archive(struct stdio_bus *bus, struct router_archive *archive)
{
    EACH(bus, archive, service->archive(state, archive));
}

void services_archive_client(struct stdio_bus *bus, struct router_archive *archive,
                             struct client *client)
{
    EACH(bus, archive_client, service->archive_client(state, archive, client));
}

const char *services_unsaved(const struct stdio_bus *bus)
{
    const char *reason = NULL;

    EACH(bus, unsaved, reason = reason != NULL ? reason : service->unsaved(state));
    return reason;
}

void services_each_connection(struct stdio_bus *bus, void (*fn)(struct connection *connection))
{
    EACH(bus, each_connection, service->each_connection(state, fn));
}
