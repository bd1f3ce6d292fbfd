#include "build_config.h"

#include "bus/listeners.h"

#include <limits.h>
#include <stdlib.h>

#include "base/error.h"

#define SPAWN_DESCRIPTORS 6 /* three pipes */

/* Clients must not take the descriptors that the restart of a worker needs for a moment. */
static void reserve_descriptors(struct listener *listener)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < (rlim_t)INT_MAX)
        listener->fd_max = (int)now.rlim_cur - SPAWN_DESCRIPTORS - 1;
}

static int open_one(struct bus_listener *listener, listener_fn *accepted)
{
    struct stdio_bus *bus = listener->bus;
    const struct bus_options *options = &bus->options;

    if (listener->is_tcp)
        return listener_open_tcp(&listener->listener, bus->loop, bus->log, options->tcp_host,
                                 options->tcp_port, accepted, listener);
    return listener_open_unix(&listener->listener, bus->loop, bus->log, options->unix_path,
                              &options->config->access, accepted, listener);
}

/* Other machines can reach the listener. */
static void warn_outside(const struct bus_listener *listener)
{
    const struct stdio_bus *bus = listener->bus;
    const char *host = bus->options.tcp_host;

    if (!listener->listener.is_outside || bus->options.token != NULL)
        return;
    if (bus->options.open)
        log_warn(bus->log, "", "%s can be reached from other machines, without authentication",
                 host);
    else
        log_warn(bus->log, "",
                 "%s can be reached from other machines, whose connections are refused: there is "
                 "neither listen.token_file nor listen.open",
                 host);
}

int listeners_open(struct stdio_bus *bus, listener_fn *accepted)
{
    struct bus_listener *listener;

    if (bus->options.mode == BUS_LISTEN_STDIO)
        return STDIO_BUS_OK;
    listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        log_error(bus->log, "", "cannot listen: out of memory");
        return STDIO_BUS_ERR;
    }
    listener->bus = bus;
    listener->is_tcp = bus->options.mode == BUS_LISTEN_TCP;
    if (open_one(listener, accepted) != STDIO_BUS_OK) {
        free(listener);
        return STDIO_BUS_ERR;
    }
    warn_outside(listener);
    reserve_descriptors(&listener->listener);
    list_append(&bus->listeners, &listener->link);
    return STDIO_BUS_OK;
}

void listeners_descriptor_freed(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following)
        listener_descriptor_freed(&list_entry(node, struct bus_listener, link)->listener);
}

void listeners_close(struct stdio_bus *bus)
{
    struct list_node *node;

    while ((node = list_take_first(&bus->listeners)) != NULL) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        listener_close(&listener->listener);
        free(listener);
    }
}
