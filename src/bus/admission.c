#include "build_config.h"

#include "bus/admission.h"

#include <stdio.h>

#include "bus/origins.h"
#include "router/shares.h"

/* A user that the system does not report is not one of those that are allowed. */
static bool is_allowed(const struct access *access, const struct origin *origin)
{
    return access->uid_count == 0 ||
           (origin->has_credentials && access_allows(access, origin->uid));
}

enum admission admission_judge(const struct bus_listener *listener, const struct origin *origin,
                               char *text, size_t size)
{
    const struct stdio_bus *bus = listener->bus;
    const struct config *config = bus->options.config;
    const struct listen_config *of = listener->config != NULL ? listener->config : &config->listen;
    bool on_tcp = listener_on_tcp(listener);

    if (!on_tcp && !is_allowed(&of->access, origin)) {
        snprintf(text, size, "this user may not connect (listen.allow_uids)");
        return ADMISSION_DENIED;
    }
    if (on_tcp && of->token_file == NULL && !of->open && !origin->is_local) {
        snprintf(text, size,
                 "other machines are not served: neither listen.token_file nor listen.open is set");
        return ADMISSION_DENIED;
    }
    if (shares_left_of_connections(&bus->router, bus->client_count, origins_find(bus, origin)))
        return ADMISSION_GRANTED;
    snprintf(text, size, "too many connections (max_connections %zu)",
             config->limits.max_connections);
    return ADMISSION_FULL;
}
