/* Seeded dice: the same seed gives the same throws. */
#ifndef TESTS_CHAOS_DICE_H
#define TESTS_CHAOS_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

void dice_seed(struct dice *dice, uint64_t seed);
uint64_t dice_throw(struct dice *dice);

/* 0 to count - 1; 0 when count is 0. */
uint32_t dice_below(struct dice *dice, uint32_t count);

/* low to high, both included. */
uint32_t dice_between(struct dice *dice, uint32_t low, uint32_t high);

/* True in this many of a thousand throws. */
bool dice_chance(struct dice *dice, unsigned per_thousand);

#endif
