/* MCP resources/subscribe: the URIs that the clients of one process have subscribed to. The server
 * knows one client, and hears of each URI once. */
#ifndef STDIO_BUS_ROUTER_SUBSCRIPTIONS_H
#define STDIO_BUS_ROUTER_SUBSCRIPTIONS_H

#include "base/archive.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "router/peer.h"

#define SUBSCRIPTIONS_MAX 256 /* of a client at a process */
#define SUBSCRIPTION_URI_MAX 2048

/* The bytes that count for one subscription of a client: its structs, its places in the tables and
 * its URI. Clients with the same URI share a part of them. */
#define SUBSCRIPTION_BYTES(uri_len) ((size_t)256 + (uri_len))

/* The subscriptions of all clients at all processes. */
struct subscriptions {
    struct hash_table by_uri;    /* struct subscription, by process and URI */
    struct hash_table by_client; /* struct holding, by subscription and client */
    struct siphash_key key;
    size_t bytes;       /* of all, those without a client included */
    size_t stale_bytes; /* of those without a client */
    size_t max_bytes;   /* with this number they are full (router/shares.h) */
    size_t *account;    /* of the memory that they take from max_memory; NULL: of none */
};

/* Those of one process. Each is on one list. */
struct process_subscriptions {
    struct subscriptions *all;
    uint64_t number;    /* the worker's, when the process got its first client */
    struct list known;  /* the server knows those that clients have */
    struct list asked;  /* the request of a client is in flight; no other one has the URI */
    struct list wanted; /* the server does not know what clients have (again) */
    struct list stale;  /* the server knows what no client has any more */
    uint64_t notices;   /* counts subscriptions_mark */
};

struct subscription {
    struct list_node node;
    struct process_subscriptions *process;
    struct list holders;   /* struct holding */
    struct holding *asked; /* of the client whose request to subscribe is in flight, or NULL */
    struct list waiting;   /* peers held until that request is answered */
    bool sent;             /* the server knows it */
    bool is_stale;
    uint64_t hash;
    size_t uri_len;
    char uri[];
};

/* One client's subscription. */
struct holding {
    struct list_node in_subscription, in_subscriber;
    struct subscription *subscription;
    struct subscriber *subscriber;
    struct holding **request; /* where the request in flight refers to it; NULL: none is */
    uint64_t hash;
};

/* A client of the process. */
struct subscriber {
    struct peer *client;
    struct list held; /* struct holding, those included that are asked for */
    size_t count;
    uint64_t notice; /* the last one that it is to get */
};

static inline void subscriber_init(struct subscriber *subscriber, struct peer *client)
{
    list_init(&subscriber->held);
    subscriber->client = client;
    subscriber->count = 0;
    subscriber->notice = 0;
}

static inline struct slice subscription_uri(const struct subscription *subscription)
{
    return slice_of(subscription->uri, subscription->uri_len);
}

void subscriptions_init(struct subscriptions *all, const struct siphash_key *key, size_t max_bytes);

/* Frees the tables; every process has cleared its own. */
void subscriptions_free(struct subscriptions *all);

void process_subscriptions_init(struct process_subscriptions *process, struct subscriptions *all,
                                uint64_t number);

/* Whether the server knows, or is to know, of any. */
static inline bool subscriptions_any(const struct process_subscriptions *process)
{
    return !list_empty(&process->known) || !list_empty(&process->asked) ||
           !list_empty(&process->wanted) || !list_empty(&process->stale);
}

/* NULL: the process has none of this URI. */
struct subscription *subscriptions_find(const struct process_subscriptions *process,
                                        struct slice uri);

/* NULL: the client neither has it nor asks for it. */
struct holding *subscriptions_held(const struct subscriber *subscriber,
                                   const struct subscription *subscription);

/* The client, which has none of this URI, has subscribed, and the server knows the URI.
 * STDIO_BUS_ERR if out of memory; then nothing has changed. */
int subscriptions_begin(struct process_subscriptions *process, struct subscriber *subscriber,
                        struct slice uri);

/* The client's request to subscribe goes to the server; no other one for the URI is in flight.
 * *request is the holding until subscriptions_answered, or until the client is gone (NULL).
 * STDIO_BUS_ERR as above. */
int subscriptions_ask(struct process_subscriptions *process, struct subscriber *subscriber,
                      struct slice uri, struct holding **request);

/* What happened to the request in flight. UNCERTAIN: it was given up, so that the server may have
 * subscribed in vain. */
enum subscription_answer { SUBSCRIPTION_REFUSED, SUBSCRIPTION_DONE, SUBSCRIPTION_UNCERTAIN };

/* Sets *request to NULL, which it may be already. The waiting peers were released. */
void subscriptions_answered(struct holding **request, enum subscription_answer answer);

/* The client is no subscriber any more. A subscription without holders is stale, unless `told`: the
 * server hears of its end by the client's own message. */
void subscriptions_end(struct holding *holding, bool told);
void subscriptions_end_all(struct subscriber *subscriber);

/* The server is told by a client that nobody subscribes to a stale one. */
void subscriptions_forget(struct subscription *subscription);

/* Marks the clients that have subscribed to this resource, or to one that it is a part of. */
void subscriptions_mark(struct process_subscriptions *process, struct slice uri);

static inline bool subscriber_marked(const struct subscriber *subscriber,
                                     const struct process_subscriptions *process)
{
    return subscriber->notice == process->notices;
}

/* A subscription of which the server knows too much (`sent`) or too little. NULL: there is none. */
struct subscription *subscriptions_next(const struct process_subscriptions *process);

/* The server is sent what it did not know of this one, which may be freed. */
void subscriptions_sent(struct subscription *subscription);

/* A new process knows of none. */
void subscriptions_restart(struct process_subscriptions *process);

/* Forgets all; no client has one or asks for one. */
void subscriptions_clear(struct process_subscriptions *process);

/* Whether the server knows each of them, after what the clients have. */
void subscriptions_archive(struct process_subscriptions *process, struct archive *archive);

#endif
