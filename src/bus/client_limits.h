/* Limits of each client: the rate of its messages, and how long it may be silent. Where the
 * configuration sets neither, nothing of this is in the road of a message. (The number of its
 * requests is the router's: max_requests of struct peer.) */
#ifndef STDIO_BUS_BUS_CLIENT_LIMITS_H
#define STDIO_BUS_BUS_CLIENT_LIMITS_H

#include "base/archive.h"
#include "bus/state.h"
#include "endpoint/endpoint.h"

struct client_limits {
    struct endpoint *endpoint;
    struct list_node link; /* bus->limited */
    bool may_idle;         /* idle_timeout_sec is for it */
    struct timer due;      /* started while a message waits for its turn: */
    struct list waiting;   /* then the client */
    int64_t credit;        /* thousandths of a message; at credited_ms */
    int64_t credited_ms;   /* grows by max_message_rate in a millisecond, up to that of a second */
    bool is_paid;          /* the message that the router holds has had its turn */
    uint64_t frames;       /* in both directions, when that was looked at */
    int64_t silent_ms;     /* the time from which on there was no other */
};

/* The bytes that a client has for them: 0 or a struct client_limits. */
size_t client_limits_size(const struct stdio_bus *bus);

/* The configuration has other limits. Clients that came before there was a limit are not held to
 * it. */
void client_limits_changed(struct stdio_bus *bus);

/* Prepares those of a new client, if it has any: endpoint->limits. */
void client_limits_start(struct endpoint *endpoint, bool may_idle);

/* Whether the client, whose endpoint is a stream, has idle_timeout_sec from now on. */
void client_limits_set_idle(struct endpoint *endpoint, bool may_idle);

/* Saves those of a client, or loads them after client_limits_start. */
void client_limits_archive(struct archive *archive, struct endpoint *endpoint);

/* Idempotent. */
void client_limits_stop(struct endpoint *endpoint);

/* Messages of a client with a limited rate, for its handler: each waits for its turn. */
void client_limits_message(struct endpoint *from, const struct message *message);
void client_limits_long_message(struct endpoint *from, const struct message *message);

/* Offers a message of any client of HTTP to the router, if it has its turn. Otherwise the client is
 * held like one that the router holds. */
void client_limits_offer(struct endpoint *from, const struct message *message);

/* A timer's: disconnects the clients that were silent for idle_timeout_sec. */
void client_limits_check_idle(void *user_data);

#endif
