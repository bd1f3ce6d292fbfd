/* Latencies: counted in steps of at most 0.4 percent of the value. */
#ifndef TESTS_BENCH_HISTOGRAM_H
#define TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 256 /* for each power of two */
#define HISTOGRAM_SLOTS (48 * HISTOGRAM_STEPS)

/* A zeroed one is empty. */
struct histogram {
    uint64_t count, max;
    uint32_t slots[HISTOGRAM_SLOTS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* The value that this share of all values (0 to 1) does not exceed. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
