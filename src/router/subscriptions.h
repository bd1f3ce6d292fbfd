/* MCP resources/subscribe: the URIs that the clients of one process have subscribed to. The server
 * knows one client, and hears of each URI once. */
#ifndef STDIO_BUS_ROUTER_SUBSCRIPTIONS_H
#define STDIO_BUS_ROUTER_SUBSCRIPTIONS_H

#include "base/list.h"
#include "base/slice.h"

#define SUBSCRIPTIONS_MAX 256 /* of a client */
#define SUBSCRIPTION_URI_MAX 2048

struct subscription {
    struct list_node node; /* of the process */
    struct slice uri;
    size_t holders; /* clients */
    bool sent;      /* the server knows it */
};

/* One client's subscription. */
struct holding {
    struct list_node node; /* of the client */
    struct subscription *subscription;
};

/* A client of the process. */
struct subscriber {
    struct list held; /* struct holding */
    size_t count;
};

static inline void subscriber_init(struct subscriber *subscriber)
{
    list_init(&subscriber->held);
    subscriber->count = 0;
}

/* NULL: the process has none of this URI. */
struct subscription *subscriptions_find(const struct list *all, struct slice uri);

/* NULL: the client has none of this URI. */
struct holding *subscriptions_held(const struct subscriber *subscriber, struct slice uri);

/* The client has subscribed, and the server knows the URI. STDIO_BUS_ERR when memory is out. */
int subscriptions_begin(struct list *all, struct subscriber *subscriber, struct slice uri);

/* The client is no subscriber any more. A subscription without holders stays for the daemon, which
 * has to end it. */
void subscriptions_end(struct subscriber *subscriber, struct holding *holding);
void subscriptions_end_all(struct subscriber *subscriber);

/* The server may have been sent this URI although no client subscribes to it. */
void subscriptions_add_stale(struct list *all, struct slice uri);

/* Whether the client has subscribed to this resource, or to one that it is a part of. */
bool subscriptions_cover(const struct subscriber *subscriber, struct slice uri);

/* The first subscription of which the server knows too much or too little. One that no client holds
 * and that the server does not know is forgotten. NULL: there is none. */
struct subscription *subscriptions_next(struct list *all);

void subscriptions_remove(struct subscription *subscription);

/* A new process knows of none. */
void subscriptions_restart(struct list *all);

/* Forgets all; no client holds one. */
void subscriptions_clear(struct list *all);

#endif
