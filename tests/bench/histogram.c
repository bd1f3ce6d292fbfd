#include "build_config.h"

#include "histogram.h"

#include <stddef.h>

/* Values below 2 * HISTOGRAM_STEPS have a slot each; larger ones lose their `shift` low bits. */
static unsigned shift_of(uint64_t value)
{
    unsigned shift = 0;

    while (value >> shift >= 2 * HISTOGRAM_STEPS)
        shift++;
    return shift;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    unsigned shift = shift_of(value);
    size_t slot = shift * HISTOGRAM_STEPS + (size_t)(value >> shift);

    histogram->slots[slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1]++;
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->count), seen = 0;

    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        seen += histogram->slots[slot];
        if (seen > wanted) {
            size_t shift = slot < 2 * HISTOGRAM_STEPS ? 0 : slot / HISTOGRAM_STEPS - 1;

            return (uint64_t)(slot - shift * HISTOGRAM_STEPS) << shift;
        }
    }
    return histogram->max;
}
