#include "build_config.h"

#include "bus/listeners.h"

#include <limits.h>
#include <stdlib.h>

#include "base/error.h"

#define SPAWN_DESCRIPTORS 6 /* three pipes */
#define RMP_MODE_DEFAULT 0660

/* Clients must not take the descriptors that the restart of a worker needs for a moment. */
static void reserve_descriptors(struct listener *listener)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < (rlim_t)INT_MAX)
        listener->fd_max = (int)now.rlim_cur - SPAWN_DESCRIPTORS - 1;
}

/* --- the kinds --- */

typedef int open_fn(struct bus_listener *listener, listener_fn *accepted);

static int open_unix(struct bus_listener *listener, listener_fn *accepted)
{
    const struct bus_options *options = &listener->bus->options;

    return listener_open_unix(&listener->listener, listener->bus->loop, listener->bus->log,
                              options->unix_path, &options->config->access, accepted, listener);
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

static int open_tcp(struct bus_listener *listener, listener_fn *accepted)
{
    const struct bus_options *options = &listener->bus->options;
    int status = listener_open_tcp(&listener->listener, listener->bus->loop, listener->bus->log,
                                   options->tcp_host, options->tcp_port, accepted, listener);

    if (status == STDIO_BUS_OK)
        warn_outside(listener);
    return status;
}

/* The keys of "listen" hold for this socket too; its mode is wider where they have none. */
static int open_rmp(struct bus_listener *listener, listener_fn *accepted)
{
    const struct bus_options *options = &listener->bus->options;
    struct access access = options->config->access;

    if (!access.has_mode)
        access.mode = RMP_MODE_DEFAULT;
    return listener_open_unix(&listener->listener, listener->bus->loop, listener->bus->log,
                              options->rmp_path, &access, accepted, listener);
}

static open_fn *const open_fns[BUS_LISTENER_KINDS] = {
    [BUS_LISTENER_UNIX] = open_unix,
    [BUS_LISTENER_TCP] = open_tcp,
    [BUS_LISTENER_RMP] = open_rmp,
};

static bool is_asked_for(const struct bus_options *options, enum bus_listener_kind kind)
{
    if (kind == BUS_LISTENER_RMP)
        return options->rmp_path != NULL;
    return options->mode == (kind == BUS_LISTENER_TCP ? BUS_LISTEN_TCP : BUS_LISTEN_UNIX);
}

/* --- opening and closing --- */

static int open_kind(struct stdio_bus *bus, enum bus_listener_kind kind, listener_fn *accepted)
{
    struct bus_listener *listener = calloc(1, sizeof *listener);

    if (listener == NULL) {
        log_error(bus->log, "", "cannot listen: out of memory");
        return STDIO_BUS_ERR;
    }
    listener->bus = bus;
    listener->kind = kind;
    if (open_fns[kind](listener, accepted) != STDIO_BUS_OK) {
        free(listener);
        return STDIO_BUS_ERR;
    }
    reserve_descriptors(&listener->listener);
    list_append(&bus->listeners, &listener->link);
    return STDIO_BUS_OK;
}

int listeners_open(struct stdio_bus *bus, listener_fn *const accepted[BUS_LISTENER_KINDS])
{
    for (int kind = 0; kind < BUS_LISTENER_KINDS; kind++) {
        if (is_asked_for(&bus->options, (enum bus_listener_kind)kind) &&
            open_kind(bus, (enum bus_listener_kind)kind, accepted[kind]) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
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
