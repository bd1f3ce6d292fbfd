/* The metrics of a bus, read from where they are counted. */
#ifndef STDIO_BUS_BUS_METRICS_H
#define STDIO_BUS_BUS_METRICS_H

#include "bus/refusal.h"
#include "bus/state.h"
#include "endpoint/endpoint.h"
#include "rmp/broker_options.h"
#include "router/outcomes.h"
#include "transport/connection_state.h"
#include "json/text.h"

#define METRICS_STATES 5 /* of a worker */
#define METRICS_LIMITS 3 /* of one client */

struct metrics_pool {
    struct slice id;
    struct traffic traffic; /* of its workers; in: what they sent */
    struct request_counts asked, asking;
    uint64_t in_flight[2]; /* asked by clients, by workers */
    uint64_t workers[METRICS_STATES];
    uint64_t drained, starts, restarts, queue;
};

struct metrics {
    const char *version;
    const struct metrics_pool *pools;
    size_t pool_count;
    const char *const *states; /* the names of METRICS_STATES */
    struct traffic clients;    /* of all clients, ever */
    uint64_t client_count, connected, client_queue, rmp_clients, control_clients;
    uint64_t http_sessions, http_connected; /* now, ever */
    bool has_topics;                        /* there is a topic bus: */
    struct rmp_counters topics;             /* what it has counted */
    struct rmp_gauges topics_now;
    uint64_t history_runs, history_events, history_bytes, history_failures;
    uint64_t limited[METRICS_LIMITS];
    uint64_t refused[REFUSALS];
    uint64_t stored_answers;
    uint64_t holds[2], held_ms[2], held[2]; /* of clients, of workers */
    uint64_t sessions, max_sessions, requests, abandoned, max_requests, max_clients;
    uint64_t reloads[2]; /* that failed, that were done */
    uint64_t rounds, busy_us;
    uint64_t buffers, max_buffers;
    uint64_t cpu_us, resident; /* 0: unknown, as with the next */
    double started;            /* seconds since 1970 */
};

/* The text format of Prometheus (version 0.0.4). */
void metrics_write(struct json_text *to, const struct metrics *metrics);

/* Adds the text of Prometheus' format. The bus measures (control/control.h). */
void metrics_of_bus(struct stdio_bus *bus, struct json_text *to);

/* Adds the time that the endpoint has been held for. */
void metrics_add_hold(struct metrics *metrics, const struct endpoint *endpoint);

#endif
