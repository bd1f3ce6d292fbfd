/* What bus.c, bus_clients.c and bus_workers.c share. */
#ifndef STDIO_BUS_BUS_INTERNAL_H
#define STDIO_BUS_BUS_INTERNAL_H

#include "bus.h"

#include <sys/resource.h>

#include "base/list.h"
#include "event/event_loop.h"
#include "event/signals.h"
#include "process/worker.h"
#include "router/router.h"
#include "transport/connection.h"
#include "transport/endpoint.h"
#include "transport/listener.h"

enum bus_phase {
    BUS_PHASE_STARTING, /* until every worker has been executed: bad commands are found first */
    BUS_PHASE_SERVING,
    BUS_PHASE_ENDING,   /* stdin has ended: what is in flight may finish */
    BUS_PHASE_DRAINING, /* workers were told to stop; what they still say is delivered */
    BUS_PHASE_FLUSHING, /* workers are gone; clients get the rest of their queues */
    BUS_PHASE_STOPPED
};

struct client {
    struct endpoint endpoint;
    struct stdio_bus *bus;
    struct list_node link; /* bus->clients */
    bool on_stdio;
    bool refused; /* over max_connections: gets an error line and is closed */
    struct stdio_bus_event_deferred deferred;
};

struct stdio_bus {
    struct bus_options options;
    struct log *log;
    struct stdio_bus_event_loop *loop;
    struct signals signals;
    bool has_signals;
    struct transport transport;
    struct router router;
    struct listener listener;
    struct worker *workers;
    size_t worker_count;
    size_t starting_count; /* workers whose very first exec has not been heard of */
    struct list clients;
    size_t client_count;
    size_t refused_count;
    unsigned next_client; /* number for the log */
    struct list starved; /* peers held for want of memory */
    struct timer starved_retry;
    struct timer drain;
    bool sharing; /* some pool has keys of its own */
    struct timer requests_timer; /* at the first deadline of a request */
    int64_t requests_deadline_ms;
    enum bus_phase phase;
    bool killed; /* the drain is over: what was left got SIGKILL */
    enum bus_outcome reason; /* what the outcome will be */
    bool has_nofile;
    struct rlimit nofile;    /* the descriptor limit that we were started with, for the workers */
};

/* --- bus.c --- */

/* Every worker has been executed: serves stdin, or those who connect. */
void bus_serve(struct stdio_bus *bus);

/* Begins the shutdown for this reason; the first reason stays. */
void bus_begin_stop(struct stdio_bus *bus, enum bus_outcome reason);

/* Something ended: goes on with the shutdown where it waited for that. */
void bus_check_stopped(struct stdio_bus *bus);

/* --- bus_messages.c --- */

/* Carries out what the router decided about a message of `from`. */
enum connection_verdict bus_carry_out(struct stdio_bus *bus, struct endpoint *from,
                                      const struct message *message, const struct route *route);

/* After a message was offered to its destination's queue, with this result. */
enum connection_verdict bus_end_forward(struct stdio_bus *bus, struct endpoint *from,
                                        const struct route *route, int status);

/* Says in the log what becomes of a message. */
void bus_log_forwarding(struct stdio_bus *bus, const struct endpoint *from,
                        const struct message *message, const struct route *route);
void bus_log_discarded(struct stdio_bus *bus, enum log_level level, const struct endpoint *from,
                       const struct message *message, const char *text);

/* Offers a released peer's message again. */
void bus_resume(struct stdio_bus *bus, struct peer *peer);

/* Holds an endpoint until there may be memory again. */
void bus_starve(struct stdio_bus *bus, struct endpoint *endpoint);

/* Sends an error reply, unless the configuration is strict. */
void bus_send_error(struct stdio_bus *bus, struct endpoint *to, struct message_id id, int code,
                    const char *text);

/* Whether the endpoint goes on asking for errors that it does not read: it is held then until it
 * has read some. */
bool bus_hold_debtor(struct stdio_bus *bus, struct endpoint *endpoint);

/* --- bus_sharing.c --- */

/* A message of a client, where some pool has keys of its own. */
enum connection_verdict bus_sharing_client_message(struct client *client,
                                                   const struct message *message);

/* A message of a worker in a pool with keys of its own; *route is what became of it. */
enum connection_verdict bus_sharing_worker_message(struct worker *worker,
                                                   const struct message *message,
                                                   struct route *route);

/* The client leaves: what it waits for is cancelled where the worker goes on, and the workers that
 * it had alone are done. */
void bus_cancel_requests_of(struct client *client);
void bus_retire_workers_of(struct client *client);

/* timer_fn: requests whose time is over get an error. */
void bus_expire_requests(void *user_data);

/* When the router's demand may have changed: starts the processes that exclusive pools need now,
 * and ends those that nobody needs any more. */
void bus_supply_workers(struct stdio_bus *bus);

/* --- bus_clients.c --- */

/* Serves the descriptors as a new client; `peer` is for the log. STDIO_BUS_ERR when it could not,
 * after saying so; the descriptors are then the caller's. */
int bus_add_client(struct stdio_bus *bus, int fd_in, int fd_out, bool on_stdio, const char *peer);

/* listener_fn. */
void bus_accepted(void *user_data, int fd, const char *peer);

/* bus_check_client_done for all. */
void bus_check_clients_done(struct stdio_bus *bus);

/* The client has sent everything: ends it when nothing is in flight for it any more. */
void bus_check_client_done(struct client *client);

/* Stops listening to every client. */
void bus_stop_client_input(struct stdio_bus *bus);

/* Closes every client once its queue is written; at once when `now`. */
void bus_close_clients(struct stdio_bus *bus, bool now);

/* --- bus_workers.c --- */

int bus_create_workers(struct stdio_bus *bus);
int bus_start_workers(struct stdio_bus *bus);

/* Lets the running workers take messages, now that all have been started. */
void bus_serve_workers(struct stdio_bus *bus);

void bus_reap_workers(struct stdio_bus *bus);
void bus_stop_workers(struct stdio_bus *bus);
void bus_kill_workers(struct stdio_bus *bus);
bool bus_workers_finished(const struct stdio_bus *bus);
void bus_destroy_workers(struct stdio_bus *bus);

#endif
