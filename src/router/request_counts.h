/* What became of the requests of a group: their outcomes, and the times to their answers. */
#ifndef STDIO_BUS_ROUTER_REQUEST_COUNTS_H
#define STDIO_BUS_ROUTER_REQUEST_COUNTS_H

#include <stdint.h>

enum request_outcome {
    OUTCOME_RESULT,        /* answered with a result */
    OUTCOME_ERROR,         /* answered with an error */
    OUTCOME_LOST,          /* the answer could not be delivered: the daemon's error went instead */
    OUTCOME_ANSWERER_LEFT, /* the worker exited, or the client that was asked disconnected */
    OUTCOME_ASKER_LEFT,    /* the asker is gone */
    OUTCOME_CANCELLED,     /* given up by the asker */
    OUTCOME_TIMED_OUT,     /* request_timeout_sec is over */
    OUTCOMES
};

#define OUTCOME_BUCKETS 16

/* The longest time of each bucket; longer ones are in none. */
extern const int64_t outcome_bucket_ms[OUTCOME_BUCKETS];

struct request_counts {
    uint64_t outcomes[OUTCOMES];
    uint64_t buckets[OUTCOME_BUCKETS]; /* answers within that time, and over that of the one before:
                                        * results and errors */
    uint64_t total_ms;                 /* of all answers */
};

/* An answer came after so long. */
void request_counts_add_time(struct request_counts *counts, int64_t ms);

/* Adds all of them. */
void request_counts_add(struct request_counts *to, const struct request_counts *counts);

#endif
