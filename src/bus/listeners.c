#include "build_config.h"

#include "bus/listeners.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/error.h"
#include "config/setup.h"

#define SPAWN_DESCRIPTORS 6 /* three pipes */

void listeners_reserve(struct bus_listener *listener)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < (rlim_t)INT_MAX)
        listener->listener.fd_max = (int)now.rlim_cur - SPAWN_DESCRIPTORS - 1;
}

/* --- the sockets --- */

/* Other machines can reach the listener. */
static void warn_outside(const struct bus_listener *listener)
{
    const struct listen_config *config = listener->config;
    struct log *log = listener->bus->log;

    if (!listener->listener.is_outside || listener_asks_token(listener))
        return;
    if (config->open)
        log_warn(log, "", "%s can be reached from other machines, without authentication",
                 config->address.host);
    else
        log_warn(log, "",
                 "%s can be reached from other machines, whose connections are refused: there is "
                 "neither listen.token_file nor listen.open",
                 config->address.host);
}

static int open_tcp(struct bus_listener *listener)
{
    const struct listen_address *address = &listener->config->address;
    int status = listener_open_tcp(&listener->listener, listener->bus->loop, listener->bus->log,
                                   address->host, address->port, listener->kind->accepted,
                                   listener);

    if (status == STDIO_BUS_OK)
        warn_outside(listener);
    return status;
}

static int open_unix(struct bus_listener *listener, const char *path, const struct access *access)
{
    return listener_open_unix(&listener->listener, listener->bus->loop, listener->bus->log, path,
                              access, listener->kind->accepted, listener);
}

/* The one that the service brings. */
static int open_own(struct bus_listener *listener)
{
    const struct bus_options *options = &listener->bus->options;
    const struct access access = listener->kind->access != NULL ? listener->kind->access(options)
                                                                : options->config->listen.access;

    return open_unix(listener, listener->path, &access);
}

/* A socket of the service manager's. */
static int adopt(struct bus_listener *listener)
{
    const struct listen_address *address = &listener->config->address;
    struct stdio_bus *bus = listener->bus;
    int status = listener_adopt(&listener->listener, bus->loop, bus->log, address->fd,
                                address->is_unix ? address->path : address->fd_name,
                                listener->kind->accepted, listener);

    if (status == STDIO_BUS_OK)
        warn_outside(listener);
    return status;
}

static int open_listener(struct bus_listener *listener)
{
    const struct listen_config *config = listener->config;

    if (config == NULL)
        return open_own(listener);
    if (config->address.fd > 0)
        return adopt(listener);
    if (config->address.is_unix)
        return open_unix(listener, config->address.path, &config->access);
    return open_tcp(listener);
}

/* --- what its clients get --- */

void listeners_apply(struct bus_listener *listener)
{
    const struct listen_config *config = listener->config;
    struct group *pool = NULL;

    if (config->pool != NULL)
        pool = router_pool_named(&listener->bus->router, slice_of_text(config->pool));
    /* The clients of one that is gone may be those of a pool that is gone too, and of no other. */
    if (pool != NULL || !listener->is_gone)
        listener->pool = pool;
}

/* STDIO_BUS_ERR after the reason was logged. */
static int set_up(struct bus_listener *listener)
{
    struct stdio_bus *bus = listener->bus;
    const struct listen_config *config = listener->config;
    char reason[TOKEN_REASON_MAX];

    if (config == NULL)
        return STDIO_BUS_OK;
    listeners_apply(listener);
    if (!listener_asks_token(listener) ||
        tokens_read(&listener->tokens, config->token_file, reason) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    log_error(bus->log, "", "cannot use the token file %s: %s", config->token_file, reason);
    return STDIO_BUS_ERR;
}

/* --- opening and closing --- */

void listeners_add_kind(struct stdio_bus *bus, const struct listener_kind *kind, void *service,
                        const char *path)
{
    ASSERT(bus->listener_kind_count < sizeof bus->listener_kinds / sizeof bus->listener_kinds[0]);
    bus->listener_kinds[bus->listener_kind_count++] = (struct bus_listener_kind){kind, service,
                                                                                 path};
}

static struct visitors *visitors_of(const struct stdio_bus *bus, const struct visitor_kind *kind)
{
    struct list_node *node = bus->visitors.head.next;

    while (list_entry(node, struct visitors, link)->kind != kind)
        node = node->next;
    return list_entry(node, struct visitors, link);
}

/* NULL if out of memory. */
static struct bus_listener *new_listener(struct stdio_bus *bus,
                                         const struct bus_listener_kind *kind,
                                         const struct listen_config *config, struct setup *setup)
{
    struct bus_listener *listener = calloc(1, sizeof *listener);

    if (listener == NULL)
        return NULL;
    listener->bus = bus;
    listener->kind = kind->kind;
    listener->service = kind->service;
    listener->path = config == NULL ? kind->path : NULL;
    listener->visitors = visitors_of(bus, kind->kind->visits);
    listener->config = config;
    listener->setup = setup_hold(setup);
    list_append(&bus->listeners, &listener->link);
    return listener;
}

static struct bus_listener *add_listener(struct stdio_bus *bus,
                                         const struct bus_listener_kind *kind,
                                         const struct listen_config *config, struct setup *setup)
{
    struct bus_listener *listener = new_listener(bus, kind, config, setup);

    if (listener == NULL) {
        log_error(bus->log, "", "cannot listen: out of memory");
        return NULL;
    }
    if (set_up(listener) != STDIO_BUS_OK || open_listener(listener) != STDIO_BUS_OK) {
        listeners_remove(listener, true);
        return NULL;
    }
    listeners_reserve(listener);
    if (kind->kind->opened != NULL)
        kind->kind->opened(listener);
    return listener;
}

struct bus_listener *listeners_add(struct stdio_bus *bus, const struct listen_config *config,
                                   struct setup *setup)
{
    const struct bus_listener_kind *kind = bus->listener_kinds;

    while (kind->kind->option != NULL || kind->kind->of != config->address.kind)
        kind++;
    return add_listener(bus, kind, config, setup);
}

int listeners_open(struct stdio_bus *bus)
{
    const struct bus_options *options = &bus->options;

    for (size_t i = 0; i < options->listen_count; i++) {
        if (listeners_add(bus, &options->listens[i], options->setup) == NULL)
            return STDIO_BUS_ERR;
    }
    for (size_t i = 0; i < bus->listener_kind_count; i++) {
        const struct bus_listener_kind *kind = &bus->listener_kinds[i];

        if (kind->path != NULL && add_listener(bus, kind, NULL, NULL) == NULL)
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

unsigned listeners_port(const struct bus_listener *listener)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t len = sizeof bound;

    if (listener->listener.count == 0 ||
        getsockname(listener->listener.sockets[0].fd, &bound.any, &len) != 0)
        return listener->config->address.port;
    return ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
}

void listeners_close(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following)
        listener_close(&list_entry(node, struct bus_listener, link)->listener);
}

static void destroy(struct bus_listener *listener)
{
    listener_close(&listener->listener);
    tokens_free(&listener->tokens);
    setup_release(listener->setup);
    free(listener);
}

void listeners_remove(struct bus_listener *listener, bool now)
{
    listener_close(&listener->listener);
    listener->is_gone = true;
    if (!now)
        return;
    list_remove(&listener->link);
    destroy(listener);
}

void listeners_free(struct stdio_bus *bus)
{
    struct list_node *node;

    while ((node = list_take_first(&bus->listeners)) != NULL)
        destroy(list_entry(node, struct bus_listener, link));
}

/* --- the archive --- */

/* Of its Unix socket; NULL: it has none. */
static const char *path_of(const struct bus_listener *listener)
{
    if (listener->config == NULL)
        return listener->path;
    return listener->config->address.is_unix ? listener->config->address.path : NULL;
}

/* NULL: the bus has no listeners of such a kind. */
static const struct bus_listener_kind *kind_named(const struct stdio_bus *bus, const char *name)
{
    for (size_t i = 0; i < bus->listener_kind_count; i++) {
        if (strcmp(bus->listener_kinds[i].kind->name, name) == 0)
            return &bus->listener_kinds[i];
    }
    return NULL;
}

/* A listener by its kind and by its index in the configuration plus 1 (0: it is not of it). */
static struct bus_listener *archive_identity(struct archive *archive, struct stdio_bus *bus,
                                             struct bus_listener *listener)
{
    const struct bus_options *options = &bus->options;
    const struct bus_listener_kind *kind;
    char name[LISTENER_KIND_NAME_MAX] = "";
    size_t place = 0;

    if (listener != NULL)
        snprintf(name, sizeof name, "%s", listener->kind->name);
    if (listener != NULL && listener->config != NULL)
        place = (size_t)(listener->config - options->listens) + 1;
    archive_text(archive, name, sizeof name);
    ARCHIVE_ENUM(archive, place, options->listen_count);
    kind = kind_named(bus, name);
    archive_expect(archive, kind != NULL && (place > 0 || kind->path != NULL),
                   "a listener has no configuration");
    if (kind == NULL || !archive_loads(archive))
        return listener;
    listener = new_listener(bus, kind, place > 0 ? &options->listens[place - 1] : NULL,
                            place > 0 ? options->setup : NULL);
    if (listener != NULL && listener->config != NULL)
        listeners_apply(listener);
    return listener;
}

static void archive_one(struct archive *archive, void *owner, void *item)
{
    struct stdio_bus *bus = owner;
    struct bus_listener *listener = archive_identity(archive, bus, item);

    if (!archive_made(archive, listener != NULL))
        return;
    tokens_archive(archive, &listener->tokens);
    listener_archive(archive, &listener->listener, bus->loop, bus->log, path_of(listener),
                     listener->kind->accepted, listener);
    if (!archive->saves)
        listeners_reserve(listener);
}

void listeners_archive(struct archive *archive, struct stdio_bus *bus)
{
    ARCHIVE_LIST(archive, &bus->listeners, struct bus_listener, link, archive_one, bus);
}

/* Its place in the list, from 1 on; 0: it has none. */
static size_t place_of(const struct stdio_bus *bus, const struct bus_listener *listener)
{
    const struct list_node *node;
    size_t place = 1;

    if (listener == NULL)
        return 0;
    for (node = bus->listeners.head.next; node != &listener->link; node = node->next)
        place++;
    return place;
}

static struct bus_listener *listener_at(const struct stdio_bus *bus, size_t place)
{
    const struct list_node *node = &bus->listeners.head;

    for (; place > 0; place--)
        node = node->next;
    return node != &bus->listeners.head ? list_entry(node, struct bus_listener, link) : NULL;
}

void listeners_archive_one(struct archive *archive, const struct stdio_bus *bus,
                           struct bus_listener **listener)
{
    size_t place = place_of(bus, *listener);

    ARCHIVE_ENUM(archive, place, list_count(&bus->listeners));
    if (!archive->saves && archive_ok(archive))
        *listener = listener_at(bus, place);
}
