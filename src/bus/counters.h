/* What the bus counts for its metrics, beside the counts of its connections and groups. */
#ifndef STDIO_BUS_BUS_COUNTERS_H
#define STDIO_BUS_BUS_COUNTERS_H

#include <stdint.h>

#include "bus/refusal.h"
#include "transport/connection.h"

struct bus_counters {
    uint64_t reloads[2];    /* of the configuration: that failed, that were done */
    uint64_t connected;     /* clients that were connected, ever */
    struct traffic gone;    /* of clients that are gone */
    uint64_t http_sessions; /* that were begun, ever */
    uint64_t refused[REFUSALS];
    uint64_t stored_answers; /* requests that got what another client was answered */
    uint64_t holds[2];       /* of clients, of workers: how often one was held, */
    uint64_t held_ms[2];     /* and how long, but for those that are held now */
};

#endif
