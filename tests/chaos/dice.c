#include "build_config.h"

#include "dice.h"

/* SplitMix64 (Steele, Lea, Flood 2014): any seed is as good as any other. */
static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void dice_seed(struct dice *dice, uint64_t seed)
{
    dice->state = mixed(seed + 1);
}

uint64_t dice_throw(struct dice *dice)
{
    dice->state += UINT64_C(0x9e3779b97f4a7c15);
    return mixed(dice->state);
}

uint32_t dice_below(struct dice *dice, uint32_t count)
{
    return (uint32_t)(((dice_throw(dice) >> 32) * count) >> 32);
}

uint32_t dice_between(struct dice *dice, uint32_t low, uint32_t high)
{
    return low + dice_below(dice, high - low + 1);
}

bool dice_chance(struct dice *dice, unsigned per_thousand)
{
    return dice_below(dice, 1000) < per_thousand;
}
