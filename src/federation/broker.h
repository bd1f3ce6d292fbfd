/* The connection to a NATS server: one of several, and another one when it ends. Subscriptions and
 * what could not be sent outlive a connection. */
#ifndef STDIO_BUS_FEDERATION_BROKER_H
#define STDIO_BUS_FEDERATION_BROKER_H

#include <netinet/in.h>

#include "base/hash_table.h"
#include "bus/state.h"
#include "endpoint/endpoint.h"
#include "nats/protocol.h"

#define BROKER_SERVERS_MAX 32
#define BROKER_REASON_MAX 200

/* Answers that are kept without a connection, or wait for a server that does not read, in bytes. An
 * answer beyond that is lost, and counted. */
#define BROKER_KEPT_MAX ((size_t)16 << 20)

struct broker;

/* Lives in its owner. The subject and the queue group are the owner's. */
struct nats_subscription {
    const char *subject, *queue;
    uint64_t sid; /* 0: it is not subscribed */
    void (*message)(struct nats_subscription *of, const struct nats_frame *frame);
};

/* An owner that acts on the connection. Lives there; each function may be NULL. */
struct broker_watcher {
    struct list_node link; /* broker->watchers */
    /* The connection is ready: all is subscribed again, and what was kept is on its way. What was
     * on its way when the connection before ended may be lost. */
    void (*ready)(struct broker_watcher *watcher);
    /* It was ready, and has ended. */
    void (*lost)(struct broker_watcher *watcher);
    /* The queue of the connection was full, and is no more. */
    void (*drained)(struct broker_watcher *watcher);
};

struct broker_server {
    struct sockaddr_storage address;
    socklen_t address_len;
    char name[ADDRESS_TEXT_MAX]; /* its address, for the log */
    bool was_named;              /* by INFO: it goes with the next one that does not name it */
};

enum broker_state {
    BROKER_WAITING,    /* until it tries again */
    BROKER_CONNECTING, /* a descriptor is being connected */
    BROKER_GREETING,   /* until INFO, and the PONG after CONNECT */
    BROKER_READY,
    BROKER_CLOSED
};

struct broker_counters {
    uint64_t connections; /* that became ready, ever */
    uint64_t connected;   /* 1 or 0 */
    uint64_t lost;        /* answers for which there was no room */
};

struct broker {
    struct stdio_bus *bus;
    const struct nats_config *config;
    struct peer_origin *origin; /* that of all requests, and of the connection */
    struct connection connection;
    enum broker_state state;
    struct broker_server servers[BROKER_SERVERS_MAX];
    size_t server_count, at;         /* the next one to try */
    size_t tried;                    /* servers since one was ready */
    unsigned failures;               /* rounds of all servers since then */
    int fd;                          /* BROKER_CONNECTING; else -1 */
    struct timer timer;              /* of the state: the next attempt, its end, the next ping */
    unsigned unanswered;             /* pings */
    struct hash_table subscriptions; /* struct nats_subscription, by sid */
    struct list watchers;            /* struct broker_watcher */
    uint64_t last_sid;
    struct nats_info info;
    struct json_text kept;            /* what is sent when the connection is ready */
    char reported[BROKER_REASON_MAX]; /* the last problem in the log: it is not repeated */
    struct broker_counters counters;
    struct siphash_key random;
};

/* Resolves the names of the servers, which may take time, and begins to connect. The struct is
 * zeroed but for the members above `connection`, the watchers and `random`. */
void broker_start(struct broker *broker);

/* Closes the connection for good, and forgets what is kept. Idempotent. */
void broker_stop(struct broker *broker);

static inline bool broker_is_ready(const struct broker *broker)
{
    return broker->state == BROKER_READY;
}

/* Whether the server takes more now than what is queued for it. */
static inline bool broker_has_room(const struct broker *broker)
{
    return broker->state == BROKER_READY && !broker->connection.full;
}

/* Adds a watcher; `ready` is not called for a connection that is ready. list_remove ends it. */
static inline void broker_watch(struct broker *broker, struct broker_watcher *watcher)
{
    list_append(&broker->watchers, &watcher->link);
}

/* Subscribes, now and with each later connection. STDIO_BUS_ERR if out of memory; then it is not
 * subscribed. */
int broker_subscribe(struct broker *broker, struct nats_subscription *subscription);

/* Idempotent. */
void broker_unsubscribe(struct broker *broker, struct nats_subscription *subscription);

/* Publishes a message, or keeps it until there is a connection. One that is longer than the server
 * takes is STDIO_BUS_EINVAL, and then nothing was sent; nor if out of memory
 * (STDIO_BUS_ERR). A message for which there is no room is lost, and counted. */
int broker_publish(struct broker *broker, struct slice subject, const struct delivery *delivery);
int broker_publish_text(struct broker *broker, struct slice subject, struct slice text);

/* The same with a reply's subject and headers, for bytes as they are. The headers count in what the
 * server takes. */
int broker_send(struct broker *broker, const struct nats_head *head, struct slice payload);

/* Writes now what is queued. */
void broker_flush(struct broker *broker);

#endif
