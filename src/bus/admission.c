#include "build_config.h"

#include "bus/admission.h"

#include <stdio.h>

bool admission_refuses(const struct bus_listener *listener, const struct origin *origin, char *text,
                       size_t size)
{
    const struct stdio_bus *bus = listener->bus;
    size_t max = bus->options.config->limits.max_connections;

    (void)origin;
    if (bus->client_count < max)
        return false;
    snprintf(text, size, "too many connections (max_connections %zu)", max);
    return true;
}
