/* What a bus has beside its core: HTTP, NATS, the topic bus, the control socket, the page, reloads,
 * upgrades. The program hands the services over (options.services); the core calls them through
 * this table and knows none by name.
 *
 * Every operation but create may be NULL. The operations of a service that the options do not ask
 * for are not called: it has no state. */
#ifndef STDIO_BUS_BUS_SERVICE_H
#define STDIO_BUS_BUS_SERVICE_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

struct archive;
struct bus_listener;
struct client;
struct json_text;
struct metric;
struct pool;
struct router_archive;

/* A place that names the pool of messages: a listener's, a client's or a session's. */
struct pool_holder {
    struct group **at;
    struct peer *peer; /* whose messages go there; NULL: a listener */
    bool opens;        /* it is peer->opened */
};

typedef void pool_holder_fn(void *user_data, struct pool_holder holder);

/* How long a peer has been held, and for what. */
struct hold_report {
    bool is_held;
    int64_t ms;
    enum peer_hold what;
};

/* A client, for a list. Strings are borrowed. */
struct client_report {
    unsigned number;
    const char *kind, *peer, *program; /* the last may be "": null */
    struct slice pool;                 /* of its opening line; data NULL: none */
    int64_t since_ms;
    size_t requests, sessions, queue;
    struct traffic traffic;
    struct hold_report hold;
};

typedef void client_report_fn(void *user_data, const struct client_report *report);

/* An event of the bus, for those who watch it. Any of the texts may be NULL but the name and, for
 * most, `of`: the context of a client or worker. */
struct bus_report {
    const char *name, *of, *pool, *text;
    unsigned number; /* of the client or worker; 0: it is about none, or a session */
    bool restarts;   /* the worker will be started again */
};

/* A GET or HEAD of HTTP at a path that is no pool's. Strings are borrowed. */
struct web_look {
    const struct bus_listener *listener;
    struct slice path, query, host; /* data NULL: none */
    bool takes_html;                /* Accept names text/html */
    bool is_near;                   /* the peer is on this machine, and no proxy passes it on */
    bool is_own;                    /* no page of another origin reads the answer */
    bool is_linked;                 /* a page of another origin has led the browser there */
    bool has_token;                 /* that of the listener was shown */
};

struct web_view {
    int status;
    const char *type, *fields; /* whole fields, each with its CRLF */
    struct slice body;         /* borrowed until the next call, or in `owned` */
    char *owned;               /* to be freed; NULL: nothing */
};

struct service {
    /* --- from creation to destruction --- */

    /* Whether the options ask for the service. NULL: they always do. */
    bool (*is_wanted)(const struct bus_options *options);

    /* The state that the other operations get. NULL with errno. */
    void *(*create)(struct stdio_bus *bus);

    /* Before the listeners are opened. */
    void (*start)(void *state);

    /* The pools and the event loop are about to go: nothing may be left in them. */
    void (*detach)(void *state);

    /* Frees the state: the event loop has gone. */
    void (*destroy)(void *state);

    /* --- its listener --- */

    const struct listener_kind *listener; /* NULL: none */

    /* --- a round of the event loop --- */

    /* Acts on what callbacks have noted, after bus->services_noted was set. */
    void (*act)(void *state);

    /* In each round while bus->attentive counts the service, or another one: after the connections
     * were read; before their queues are written; after that. */
    void (*after_reading)(void *state);
    void (*before_writing)(void *state);
    void (*after_writing)(void *state);

    /* A signal other than those that end the daemon; 0: none. */
    int signal;
    void (*caught)(void *state);

    /* What others may ask for, by its name: NULL, or the reason why not, which was logged and lives
     * until the next call. `by`: who has asked, for the log. */
    const char *command;
    const char *(*run)(void *state, const char *by);

    /* --- the shutdown (spec 10.2) --- */

    /* No message is taken any more. */
    void (*stop_input)(void *state);

    /* All clients are about to be closed. */
    void (*before_close)(void *state);

    /* --- pools --- */

    /* What the workers of the pool are dialled by, for as long as the state lives. NULL if out of
     * memory. */
    const struct dialer *(*dialer)(void *state, const struct pool_config *config);

    /* `count` clients wait for a worker of the pool, which has "overflow": all are taken. */
    void (*overflow)(void *state, struct pool *pool, size_t count);

    /* --- clients that are no connections of the core --- */

    /* The newest client of the origin that is bound to a worker of the pool, or NULL. */
    struct endpoint *(*newest)(const void *state, const struct peer_origin *origin,
                               const struct group *pool);

    /* Ends idle clients whose processes others wait for. */
    void (*yield)(void *state);

    /* Calls fn for each, for a list; disconnects the one of this number. */
    void (*each_report)(const void *state, client_report_fn *fn, void *user_data);
    bool (*disconnect)(void *state, int64_t number, const char *by);

    /* Calls fn for each place that names a pool. */
    void (*each_holder)(void *state, pool_holder_fn *fn, void *user_data);

    /* Whether a client came by the listener; the end of those whose token it has no more. */
    bool (*uses_listener)(const void *state, const struct bus_listener *listener);
    void (*end_revoked)(void *state, const struct bus_listener *listener);

    /* --- reports, reloads and upgrades --- */

    /* Descriptors that it may need beside those of max_connections. */
    unsigned (*descriptors)(const void *state);

    void (*report)(void *state, const struct bus_report *report);

    /* What the page shows, as JSON that lives until the next call; data NULL: out of memory. */
    struct slice (*figures)(void *state);

    /* Answers a look that is for it. False: it is not. */
    bool (*show)(void *state, const struct web_look *look, struct web_view *view);

    /* Its metrics (monitor/metrics.h), and the struct of their values, which lives until the next
     * call; without the operation it is the state. */
    const struct metric *metrics;
    const void *(*measure)(void *state);

    /* Writes an object with the list of other daemons that are reached, at most `limit`. */
    void (*list_nodes)(void *state, struct json_text *to, size_t limit);

    /* Adds members to the status of the bus, which is a JSON object. */
    void (*describe)(const void *state, struct json_text *to);

    /* An upgrade in place is over: `before` is the version of the program before; or the problem in
     * words. */
    void (*upgraded)(void *state, const char *before, const char *problem);

    /* The configuration has changed: other limits, or other listeners. */
    void (*limit)(void *state, const struct limits *limits);

    /* The state in the archive of an upgrade in place: what clients refer to; a client that the
     * service serves over a connection of the core; what refers to clients; the rest, before the
     * router's tables. */
    void (*archive_sessions)(void *state, struct router_archive *archive);
    void (*archive_client)(void *state, struct router_archive *archive, struct client *client);
    void (*archive_waiting)(void *state, struct router_archive *archive);
    void (*archive)(void *state, struct router_archive *archive);

    /* Why the bus cannot be saved now; NULL: nothing is in the way. */
    const char *(*unsaved)(const void *state);
};

/* The path of the socket that the service brings; NULL: there is none. */
const char *services_socket(const struct bus_options *options, const struct service *service);

/* Whether one brings a socket whose connections count in max_connections. */
bool services_listen(const struct stdio_bus *bus);

/* Creates the states of the services that the options ask for. STDIO_BUS_ERR with errno. */
int services_create(struct stdio_bus *bus);

void services_destroy(struct stdio_bus *bus);

/* The state of a service; NULL: the bus has none. */
void *services_state(const struct stdio_bus *bus, const struct service *service);

/* Goes through the services of the bus that have the operation:
 *     each_service(bus, at, act)
 *         at.service->act(at.state); */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration and a member */
#define each_service(bus, at, operation)                                                           \
    for (struct service_at at = {.next = 0}; services_next(bus, &at);)                             \
        if (at.service->operation != NULL)
/* NOLINTEND(bugprone-macro-parentheses) */

struct service_at {
    const struct service *service;
    void *state;
    size_t next;
};

static inline bool services_next(const struct stdio_bus *bus, struct service_at *at)
{
    while (at->next < bus->service_count && bus->services[at->next] == NULL)
        at->next++;
    if (at->next == bus->service_count)
        return false;
    at->service = bus->options.services[at->next];
    at->state = bus->services[at->next++];
    return true;
}

/* Runs the command of a service. NULL, or the reason why not. */
const char *services_run(struct stdio_bus *bus, const char *command, const char *by);

#endif
