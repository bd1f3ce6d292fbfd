#include "build_config.h"

#include "reload/listeners.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/token_reload.h"
#include "config/config.h"

/* The control socket and that of the topic bus stay. */
static bool is_configured(const struct bus_listener *listener)
{
    return listener->config != NULL && !listener->is_gone;
}

/* The listener that listens there already, and is not the place of another one of the setup. */
static struct bus_listener *find_listener(struct stdio_bus *bus, const struct listen_config *config)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        if (is_configured(listener) && listener->next == NULL &&
            listen_address_same(&listener->config->address, &config->address))
            return listener;
    }
    return NULL;
}

static int prepare(struct stdio_bus *bus, struct setup *setup, struct listen_config *config)
{
    struct bus_listener *listener = find_listener(bus, config);

    if (listener != NULL) {
        config->address.fd = listener->config->address.fd;
        listener->next = config;
        return STDIO_BUS_OK;
    }
    if (config->address.fd > 0) {
        log_error(bus->log, "", "cannot listen on %s: the socket that was passed on is closed",
                  config->address.fd_name);
        return STDIO_BUS_ERR;
    }
    listener = listeners_add(bus, config, setup);
    if (listener == NULL)
        return STDIO_BUS_ERR;
    listener->is_new = true;
    listener->next = config;
    return STDIO_BUS_OK;
}

int reload_listeners_prepare(struct stdio_bus *bus, struct setup *setup)
{
    for (size_t i = 0; i < setup->listen_count; i++) {
        if (prepare(bus, setup, &setup->listens[i]) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

void reload_listeners_undo(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        listener->next = NULL;
        if (listener->is_new)
            listeners_remove(listener, true);
    }
}

/* --- taking the new configuration --- */

/* A connection that has not shown its token is no client of the daemon yet. */
static void end_gated(const struct bus_listener *listener)
{
    struct list_node *node, *following;

    list_each(&listener->bus->gated, node, following) {
        struct client *client = list_entry(node, struct client, gated);

        if (client->listener == listener)
            clients_remove(client, "its listener was removed from the configuration");
    }
}

static void close_listener(struct renewals *renewals, struct bus_listener *listener)
{
    const struct listen_address *address = &listener->config->address;

    if (address->is_unix)
        log_info(listener->bus->log, "", "no longer listening on %s", address->path);
    else
        log_info(listener->bus->log, "", "no longer listening on %s:%u", address->host,
                 (unsigned)address->port);
    end_gated(listener);
    listeners_remove(listener, false);
    renewals_depart(renewals);
}

static void change_access(struct bus_listener *listener, const struct listen_config *before)
{
    const struct listen_config *config = listener->config;
    bool differs = config->address.is_unix && access_differs(&before->access, &config->access);

    if (listener_change_access(&listener->listener, config->address.path,
                               differs ? &config->access : NULL) != STDIO_BUS_OK)
        log_error(listener->bus->log, "", "cannot change the mode and group of %s: %s",
                  config->address.path, strerror(errno));
}

static void change(struct bus_listener *listener, struct setup *setup)
{
    struct setup *setup_before = listener->setup;
    const struct listen_config *before = listener->config;

    listener->config = listener->next;
    listener->setup = setup_hold(setup);
    change_access(listener, before);
    if (listener_asks_token(listener))
        token_reload_file(listener,
                          key_texts_differ(before->token_file, listener->config->token_file));
    setup_release(setup_before);
}

void reload_listeners_commit(struct renewals *renewals, struct setup *setup)
{
    struct list_node *node, *following;

    list_each(&renewals->bus->listeners, node, following) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        if (is_configured(listener) && listener->next == NULL)
            close_listener(renewals, listener);
        else if (is_configured(listener) && !listener->is_new)
            change(listener, setup);
        listener->next = NULL;
        listener->is_new = false;
        if (listener->config != NULL)
            listeners_apply(listener);
        if (!listener->is_gone)
            listeners_reserve(listener);
    }
}
