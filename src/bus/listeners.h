/* The listeners of the bus (spec 4.1). */
#ifndef STDIO_BUS_BUS_LISTENERS_H
#define STDIO_BUS_BUS_LISTENERS_H

#include "bus/state.h"
#include "config/tokens.h"

struct bus_listener;

#define LISTENER_KIND_NAME_MAX 16

/* A kind of listener: where its sockets are, and what gets their connections. */
struct listener_kind {
    const char *name;      /* in the archive of an upgrade in place */
    listener_fn *accepted; /* user_data is the struct bus_listener */
    const struct visitor_kind *visits;

    /* A kind without `option` serves each object in "listen" whose address is of this kind. */
    enum listen_kind of;

    /* With it, one Unix socket that the service brings: --OPTION PATH names it, and the line of
     * `help` says what it is for; NULL: --help has it elsewhere. */
    const char *option, *help;

    /* Finds its path before the bus is created; "": there is none. `asked`: what the option says;
     * NULL: nothing; "": that there is such a socket. Returns EXIT_DONE, or another exit status
     * after the reason was logged. NULL: the path is what was asked for. */
    int (*find)(char path[UNIX_PATH_SIZE], const char *asked, const struct config *config,
                struct log *log);

    /* Who may connect there. NULL: as "listen" has it. */
    struct access (*access)(const struct bus_options *options);

    /* A listener of the configuration was opened. May be NULL. */
    void (*opened)(const struct bus_listener *listener);
};

/* Lives as long as a client refers to it, though its sockets may be closed before: when the bus
 * begins to stop, or a reload has taken it out of the configuration. */
struct bus_listener {
    struct list_node link; /* bus->listeners */
    struct stdio_bus *bus;
    const struct listener_kind *kind;
    void *service; /* the state of the service that accepts its connections; NULL: the core does */
    struct visitors *visitors;          /* that come here */
    const char *path;                   /* of the one that a service brings: */
    const struct listen_config *config; /* then this is NULL */
    struct setup *setup;                /* a reference: config is part of it; or NULL */
    const struct listen_config *next;   /* during a reload: what config will be; NULL: it goes */
    bool is_new;                        /* during a reload: it was opened by it */
    bool is_gone;                       /* it is no part of the configuration any more */
    struct group *pool;                 /* of all its clients; NULL: each names its own */
    struct tokens tokens;               /* if config has a token_file */
    int64_t tokens_looked_ms;           /* when the file was looked at */
    struct listener listener;
};

static inline bool listener_on_tcp(const struct bus_listener *listener)
{
    return listener->config != NULL && !listener->config->address.is_unix;
}

/* Whether its clients show a token. */
static inline bool listener_asks_token(const struct bus_listener *listener)
{
    return listener->config != NULL && listener->config->token_file != NULL;
}

/* Before listeners_open: the bus may have listeners of this kind, which belongs to the service of
 * this state, with the path of its socket; NULL: to the core, or to the configuration. */
void listeners_add_kind(struct stdio_bus *bus, const struct listener_kind *kind, void *service,
                        const char *path);

/* Opens the listeners that the options ask for. STDIO_BUS_ERR after the reason was logged. */
int listeners_open(struct stdio_bus *bus);

/* Opens one of a setup. NULL after the reason was logged. */
struct bus_listener *listeners_add(struct stdio_bus *bus, const struct listen_config *config,
                                   struct setup *setup);

/* The listener is as its configuration says: the rules of its clients, and their pool. */
void listeners_apply(struct bus_listener *listener);

/* Closes the sockets of a listener, and with `now` frees it. */
void listeners_remove(struct bus_listener *listener, bool now);

/* Clients must not take the descriptors that the restart of a worker needs for a moment: to be
 * called when the limit of open files has changed. */
void listeners_reserve(struct bus_listener *listener);

/* Saves the listeners, or loads them into a bus without any. */
void listeners_archive(struct archive *archive, struct stdio_bus *bus);

/* The listener of a client, which may be NULL. A loaded one is one that the bus has. */
void listeners_archive_one(struct archive *archive, const struct stdio_bus *bus,
                           struct bus_listener **listener);

/* A descriptor was freed: listeners that rest for want of one continue. */
void listeners_descriptor_freed(struct stdio_bus *bus);

/* The port of one of TCP, which the system may have picked. */
unsigned listeners_port(const struct bus_listener *listener);

/* Closes the sockets of all of them. */
void listeners_close(struct stdio_bus *bus);

/* Frees all of them. */
void listeners_free(struct stdio_bus *bus);

#endif
