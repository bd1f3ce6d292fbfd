#include "build_config.h"

#include "bus/rmp_clients.h"

#include <unistd.h>

#include "bus/listeners.h"

void rmp_clients_accepted(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;

    log_debug(listener->bus->log, "", "connected: %s", origin->text);
    close(fd);
}
