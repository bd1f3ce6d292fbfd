/* Clients: from their connection to their disconnection (spec 4, 7.2). */
#ifndef STDIO_BUS_BUS_CLIENTS_H
#define STDIO_BUS_BUS_CLIENTS_H

#include "bus/visitor.h"
#include "endpoint/stream.h"

struct bus_listener;
struct http_exchange;
struct http_websocket;

#define CLIENT_PROGRAM_MAX 32 /* bytes; Linux has 16 */

struct client {
    struct visitor visitor;
    struct stream stream;
    char program[CLIENT_PROGRAM_MAX]; /* as the system names it; "": not known, or never asked */
    struct bus_listener *listener;    /* that accepted it; NULL: it is on stdin */
    unsigned token;                   /* serial number of the one that it has shown; 0: none */
    struct list_node gated;           /* bus->gated, until it has shown the token */
    struct timer gate;                /* of one that is in that list */
    struct http_exchange *http;       /* NULL: it does not speak HTTP */
    struct http_websocket *websocket; /* NULL: it does not speak WebSocket */
    void (*leaving)(struct client *client); /* called before it departs; NULL: nothing is to do */
    struct peer *speaks_for;                /* what it is sent is for this peer; NULL: its own */
    bool on_stdio;
    bool on_tcp;
};

extern const struct visitor_kind clients_kind;

/* Serves stdin and stdout as a client. STDIO_BUS_ERR after the reason was logged; the descriptors
 * are the caller's then. */
int clients_add_stdio(struct stdio_bus *bus);

/* Makes a client of a connection; one that is refused does not count. It has no share before the
 * router admits it. NULL after the reason was logged; the descriptors are the caller's then. */
struct client *clients_add(struct stdio_bus *bus, const struct stream_options *options,
                           const struct origin *origin, bool refused);

/* visitor_announce. A connection of HTTP is reported with its first request for a pool: one that
 * asks for the metrics or the health is not, and a session reports itself. */
void clients_announce(struct client *client);

/* --- for a client that is loaded from an archive (upgrade/state.h) --- */

/* One that the bus does not know yet. NULL if out of memory. */
struct client *clients_new(struct stdio_bus *bus);

/* The router knows it from now on, and has its visitor's origin. */
void clients_enter(struct client *client, bool may_idle);

/* timer_fn: it has closed its input, and its time is over. */
void clients_half_close_expired(void *user_data);

/* Reports of a client that is served, in the framing of the options. */
extern const struct stream_handler clients_handler;

/* The same for the clients of a bus: with its limit of the rate. */
const struct stream_handler *clients_handler_of(const struct stdio_bus *bus);

/* One of those: the connection of any client has failed. */
void clients_failed(struct connection *connection, enum connection_failure failure, int error);

/* Sends the reason as an error, without an id, and closes the client once that is written (spec
 * 4.3). */
void clients_reject(struct client *client, enum log_level level, int code, const char *problem);

/* The client need not show the token any more. Idempotent. */
void clients_leave_gate(struct client *client);

/* The client is on TCP. */
void clients_set_tcp(struct client *client);

static inline struct client *client_of_visitor(struct visitor *visitor)
{
    return list_entry(visitor, struct client, visitor);
}

static inline struct client *client_at(struct list_node *node)
{
    return list_entry(node, struct client, visitor.link);
}

static inline struct client *client_of_endpoint(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct client, stream.endpoint);
}

/* Ends the clients that have closed their input and for which no request is in flight any more. */
void clients_end_answered(struct stdio_bus *bus);

/* Offers what held clients have sent once more, to a router that is closing: their requests are
 * refused. Then reads from no client any more. */
void clients_stop_input(struct stdio_bus *bus);

/* Disconnects a client at once. The reason is for the log. */
void clients_remove(struct client *client, const char *reason);

/* Disconnects the clients whose queues are full. */
void clients_close_full(struct stdio_bus *bus);

#endif
