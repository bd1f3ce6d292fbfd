#include "build_config.h"

#include "router/request_counts.h"

#include <stddef.h>

const int64_t outcome_bucket_ms[OUTCOME_BUCKETS] = {
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000};

void request_counts_add_time(struct request_counts *counts, int64_t ms)
{
    size_t i;

    counts->total_ms += (uint64_t)ms;
    for (i = 0; i < OUTCOME_BUCKETS && ms > outcome_bucket_ms[i]; i++)
        ;
    if (i < OUTCOME_BUCKETS)
        counts->buckets[i]++;
}

void request_counts_add(struct request_counts *to, const struct request_counts *counts)
{
    size_t i;

    for (i = 0; i < OUTCOMES; i++)
        to->outcomes[i] += counts->outcomes[i];
    for (i = 0; i < OUTCOME_BUCKETS; i++)
        to->buckets[i] += counts->buckets[i];
    to->total_ms += counts->total_ms;
}
