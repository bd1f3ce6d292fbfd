#include "build_config.h"

#include "rmp/missed.h"

#include <stdlib.h>

#include "base/error.h"

#define CAPACITY_MIN 8

/* By multiplication, so that numbers in equal steps do not meet. Publishers do not choose them. */
static size_t home(const struct rmp_missed *missed, uint64_t number)
{
    return (size_t)(number * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (missed->capacity - 1);
}

static void place(struct rmp_missed *missed, uint64_t number)
{
    size_t at = home(missed, number);

    while (missed->slots[at] != 0 && missed->slots[at] != number)
        at = (at + 1) & (missed->capacity - 1);
    missed->count += missed->slots[at] == 0;
    missed->slots[at] = number;
}

/* For the numbers from `oldest` on, and room for at least as many more. */
static size_t grown_capacity(const struct rmp_missed *missed, uint64_t oldest)
{
    size_t capacity = CAPACITY_MIN, kept = 0;

    for (size_t i = 0; i < missed->capacity; i++)
        kept += missed->slots[i] != 0 && missed->slots[i] >= oldest;
    while (capacity < (kept + 1) * 4)
        capacity *= 2;
    return capacity;
}

static bool is_full(const struct rmp_missed *missed)
{
    return (missed->count + 1) * 2 > missed->capacity;
}

size_t rmp_missed_growth(const struct rmp_missed *missed, uint64_t oldest)
{
    size_t capacity = is_full(missed) ? grown_capacity(missed, oldest) : missed->capacity;

    return capacity > missed->capacity ? (capacity - missed->capacity) * sizeof *missed->slots : 0;
}

static int rebuild(struct rmp_missed *missed, uint64_t oldest)
{
    struct rmp_missed fresh = {.capacity = grown_capacity(missed, oldest)};

    fresh.slots = calloc(fresh.capacity, sizeof *fresh.slots);
    if (fresh.slots == NULL)
        return STDIO_BUS_ERR;
    for (size_t i = 0; i < missed->capacity; i++) {
        if (missed->slots[i] != 0 && missed->slots[i] >= oldest)
            place(&fresh, missed->slots[i]);
    }
    free(missed->slots);
    *missed = fresh;
    return STDIO_BUS_OK;
}

int rmp_missed_add(struct rmp_missed *missed, uint64_t number, uint64_t oldest)
{
    if (is_full(missed) && rebuild(missed, oldest) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    place(missed, number);
    return STDIO_BUS_OK;
}

bool rmp_missed_take(struct rmp_missed *missed, uint64_t number)
{
    size_t mask = missed->capacity - 1;
    size_t hole, at;

    if (missed->count == 0)
        return false;
    for (hole = home(missed, number); missed->slots[hole] != number; hole = (hole + 1) & mask) {
        if (missed->slots[hole] == 0)
            return false;
    }
    for (at = (hole + 1) & mask; missed->slots[at] != 0; at = (at + 1) & mask) {
        if (((at - home(missed, missed->slots[at])) & mask) >= ((at - hole) & mask)) {
            missed->slots[hole] = missed->slots[at];
            hole = at;
        }
    }
    missed->slots[hole] = 0;
    if (--missed->count == 0)
        rmp_missed_free(missed);
    return true;
}

void rmp_missed_free(struct rmp_missed *missed)
{
    free(missed->slots);
    *missed = (struct rmp_missed){.slots = NULL};
}
