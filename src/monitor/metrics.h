/* The metrics of a bus, read from where they are counted. */
#ifndef STDIO_BUS_MONITOR_METRICS_H
#define STDIO_BUS_MONITOR_METRICS_H

#include "bus/state.h"
#include "endpoint/endpoint.h"
#include "router/outcomes.h"
#include "supervisor/workers.h"
#include "transport/connection_state.h"
#include "json/text.h"

#define METRICS_LIMITS 3 /* of one client */
#define METRICS_TABLES 4 /* that have a limit */

enum metric_unit { METRIC_NUMBER, METRIC_MS, METRIC_US }; /* times are written in seconds */

/* What the struct is: that of the table; struct metrics_pool, one for each pool; struct
 * bus_counters. */
enum metric_of { METRIC_OF_TABLE, METRIC_OF_POOLS, METRIC_OF_COUNTERS };

/* A metric, as a row of a table; the last row has no name. Its values are in the struct of the
 * table: one integer or, for a label, an array of uint64_t. A name that ends with _total is of a
 * counter, any other of a gauge. */
struct metric {
    const char *name, *help;
    const char *label;        /* NULL: there is one value */
    const char *const *words; /* of the label, one for each value */
    size_t size, offset;      /* METRIC_AT */
    enum metric_unit unit;
    enum metric_of of; /* in the table of the bus alone */
    bool always;       /* of a service: 0 where the bus has no state of it, not left out */
    bool may_lack;     /* 0 is unknown, and left out */
    void (*write)(struct json_text *to, const void *values); /* NULL: as the rest says */
};

#define METRIC_AT(type, member)                                                                    \
    .size = sizeof((type *)NULL)->member, .offset = offsetof(type, member)

struct metrics_pool {
    struct slice id;
    struct traffic traffic;         /* of its workers; in: what they sent */
    uint64_t messages[2], bytes[2]; /* the same, by direction */
    struct request_counts asked, asking;
    uint64_t in_flight[2]; /* asked by clients, by workers */
    uint64_t workers[WORKER_FAILED + 1];
    uint64_t drained, starts, restarts, queue;
};

struct metrics {
    const struct stdio_bus *bus;        /* whose services add their metrics, */
    const void *services[SERVICES_MAX]; /* with these values */
    const struct metrics_pool *pools;
    size_t pool_count;
    uint64_t messages[2], bytes[2]; /* of all clients, ever, by direction */
    uint64_t client_count, client_queue;
    uint64_t limited[METRICS_LIMITS];
    uint64_t held_ms[2], held[2]; /* clients, workers */
    uint64_t sessions, entries[METRICS_TABLES], limits[METRICS_TABLES];
    uint64_t rounds, busy_us;
    uint64_t buffers, max_buffers;
    uint64_t cpu_us, started_ms; /* since 1970 */
    uint64_t resident;           /* 0: unknown */
};

/* The text format of Prometheus (version 0.0.4). */
void metrics_write(struct json_text *to, const struct metrics *metrics);

/* From now on the bus measures: outcomes and times of requests, and the loop. */
void metrics_start(struct stdio_bus *bus);

/* For `write` of a metric: the first lines of one with this name and help; a line
 * NAME{LABEL="WORD"} VALUE. */
void metrics_put_head(struct json_text *to, const struct metric *metric);
void metrics_put_of_label(struct json_text *to, const char *name, const char *label_name,
                          struct slice word, uint64_t value, enum metric_unit unit);

/* The memory of the process that is in use, in bytes; 0: unknown. */
uint64_t metrics_resident(void);

/* Adds the text of Prometheus' format. The bus measures. */
void metrics_of_bus(struct stdio_bus *bus, struct json_text *to);

#endif
