/* The publications that a subscription has missed: their numbers. A message that was dropped for a
 * subscription is no duplicate for it when it is published again (RMP 5). */
#ifndef STDIO_BUS_RMP_MISSED_H
#define STDIO_BUS_RMP_MISSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of numbers above 0: open addressing, at most half full. Zeroed: empty. */
struct rmp_missed {
    uint64_t *slots; /* 0: free */
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Adds a number, if it is not there. Those below `oldest` may be forgotten. STDIO_BUS_ERR if out of
 * memory; then nothing has changed. */
int rmp_missed_add(struct rmp_missed *missed, uint64_t number, uint64_t oldest);

/* The bytes that it takes more for one further number; numbers below `oldest` may be forgotten. */
size_t rmp_missed_growth(const struct rmp_missed *missed, uint64_t oldest);

/* The bytes that it takes. */
static inline size_t rmp_missed_bytes(const struct rmp_missed *missed)
{
    return missed->capacity * sizeof *missed->slots;
}

/* Removes the number. Whether it was there. */
bool rmp_missed_take(struct rmp_missed *missed, uint64_t number);

/* Empties the set and frees its memory. */
void rmp_missed_free(struct rmp_missed *missed);

#endif
