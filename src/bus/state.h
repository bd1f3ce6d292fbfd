/* struct stdio_bus: what the files of this folder and of supervisor/ work on. Callbacks note what
 * has happened; the after-hook of the event loop, in supervisor/bus.c, acts on it. */
#ifndef STDIO_BUS_BUS_STATE_H
#define STDIO_BUS_BUS_STATE_H

#include <sys/resource.h>

#include "base/datagram.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "bus/counters.h"
#include "bus/options.h"
#include "event/event_loop.h"
#include "event/signals.h"
#include "router/router.h"
#include "transport/connection.h"
#include "transport/listener.h"

enum bus_phase {
    BUS_PHASE_STARTING, /* until every worker has been executed: bad commands are found first */
    BUS_PHASE_SERVING,
    BUS_PHASE_ENDING,   /* stdin has ended: requests in flight may finish */
    BUS_PHASE_DRAINING, /* workers were told to stop; what they still send is delivered */
    BUS_PHASE_FLUSHING, /* workers are gone; clients get the rest of their queues */
    BUS_PHASE_STOPPED
};

#define SLOW_CLIENTS_SECONDS 61 /* a minute, and the second that has begun */

#define SLOW_CLIENTS_SOON_MS 1 /* for many held workers one look at the clients */

struct slow_clients {
    struct timer check; /* started while a worker is held for a client */
    int64_t checked_ms; /* the last time */
    int64_t second;     /* of the clock; used_ms has its time and that of the seconds before */
    unsigned used_ms[SLOW_CLIENTS_SECONDS]; /* when clients that did not read were in the way */
};

#define SLOW_ORIGINS_MAX 16

struct slow_origins {
    struct slow_origin {
        struct origin origin;
        int64_t until_ms;
        struct list waiting;   /* its new clients */
    } noted[SLOW_ORIGINS_MAX]; /* a ring */
    unsigned count;            /* ever */
    struct timer turn;         /* started while a client waits */
};

/* What the service manager was told (bus/notifier.h). */
struct notifier {
    struct timer status;   /* started while a report is due */
    struct timer watchdog; /* started while the manager has one */
    struct timer extend;   /* started while the bus stops */
    bool ready, stopping;  /* was reported */
    int64_t reloading_us;  /* the time of a reload that was not reported yet; 0: there is none */
};

/* A kind of listener that the bus has (bus/listeners.h). */
struct bus_listener_kind {
    const struct listener_kind *kind;
    void *service;    /* the state of the service that it is of; NULL: it is of the core */
    const char *path; /* of the socket that the service brings; NULL: it is of the configuration */
};

/* The visitors of one kind (bus/visitor.h). */
struct visitors {
    const struct visitor_kind *kind;
    struct stdio_bus *bus;
    struct list_node link; /* bus->visitors */
    struct list list;
    size_t count;
    unsigned last_number;
};

struct stdio_bus {
    struct bus_options options;
    struct log *log;
    struct stdio_bus_event_loop *loop;
    struct signals signals;
    bool has_signals;
    bool adopts; /* as process 1: it has to reap processes that lost their parents */
    struct transport transport;
    struct router router;
    void *services[SERVICES_MAX]; /* their states; those of options.services (bus/service.h) */
    size_t service_count;
    int64_t started_ms; /* of the event loop's time */
    uint64_t started_epoch_ms;
    unsigned attentive; /* services that act in each round */
    int served;         /* callbacks for descriptors and timers in the last round */
    int carried_out;    /* enum action: of the last message that was not forwarded */
    struct bus_counters counters;
    struct list listeners; /* struct bus_listener */
    struct bus_listener_kind listener_kinds[SERVICES_MAX + 2];
    size_t listener_kind_count;
    struct list pools;         /* struct pool */
    unsigned last_worker;      /* its number */
    unsigned generation;       /* of the configuration: how many reloads were begun */
    struct list visitors;      /* struct visitors */
    struct visitors clients;   /* struct client (bus/clients.h) */
    struct hash_table origins; /* of the clients: struct present_origin (bus/origins.c) */
    struct siphash_key origins_key;
    size_t client_count;  /* that count in max_connections */
    size_t refused_count; /* that get an error line */
    struct list gated;    /* clients that have not shown the token yet, the oldest first */
    size_t gated_count;
    struct list starved; /* peers held for want of memory */
    struct timer starved_retry;
    struct slow_clients slow_clients;
    struct slow_origins slow_origins;
    struct timer requests; /* at the first deadline of a request: */
    int64_t requests_due_ms;
    struct timer drain;
    struct timer idle;         /* at its time the bus stops unless it has a client */
    struct timer log_due;      /* of a summary in the log */
    struct list limited;       /* struct client_limits */
    struct timer idle_clients; /* started while idle_timeout_sec holds for a client */
    uint64_t idle_closed;      /* clients that were disconnected by it, */
    uint64_t rate_waits;       /* and messages that waited by max_message_rate */
    struct notifier notifier;
    enum bus_phase phase;
    bool killed;             /* the drain is over: the workers that were left got SIGKILL */
    enum bus_outcome reason; /* what the outcome will be; the first reason stays */
    bool has_nofile;
    struct rlimit nofile;      /* the descriptor limit that the bus was started with, for workers */
    struct rmp_broker *topics; /* the topic bus, of a service; NULL: there is none */

    /* Noted by callbacks: */
    size_t starting_count; /* workers whose very first exec is not known yet */
    bool started_noted;    /* every worker has been executed */
    bool services_noted;   /* a service has something to do */
    bool stop_noted;       /* a reason to stop */
    bool was_refused; /* --connect: the daemon has refused this client, and not answered since */
    bool end_noted;   /* a worker or a client has ended: the shutdown may continue */
};

/* Notes a reason to stop. */
static inline void bus_note_stop(struct stdio_bus *bus, enum bus_outcome reason)
{
    if (bus->reason == BUS_RUNNING)
        bus->reason = reason;
    bus->stop_noted = true;
}

/* Before the router gives requests up, and before its decisions if it has deadlines. */
static inline void bus_read_clock(struct stdio_bus *bus)
{
    bus->router.now_ms = stdio_bus_event_loop_now_ms(bus->loop);
}

/* A worker is held, perhaps for a client that does not read: looks at the clients soon. */
static inline void bus_watch_slow_clients(struct stdio_bus *bus, int64_t delay_ms)
{
    struct timer *check = &bus->slow_clients.check;

    if (!timer_started(check) ||
        timer_deadline_ms(check) > stdio_bus_event_loop_now_ms(bus->loop) + delay_ms)
        stdio_bus_event_loop_start_timer(bus->loop, check, delay_ms);
}

/* Starts the time without a client after which the bus stops. */
static inline void bus_start_idle(struct stdio_bus *bus)
{
    if (bus->options.idle_exit_sec > 0)
        stdio_bus_event_loop_start_timer(bus->loop, &bus->idle,
                                         (int64_t)bus->options.idle_exit_sec * 1000);
}

/* Starts the time of drain_timeout_sec. */
static inline void bus_start_drain(struct stdio_bus *bus)
{
    stdio_bus_event_loop_start_timer(bus->loop, &bus->drain,
                                     (int64_t)bus->options.config->limits.drain_timeout_sec * 1000);
}

#endif
