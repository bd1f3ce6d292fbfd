/* For the tests of tables: an allocator that fails on demand, for a table that is compiled into the
 * test; the length of a list; random numbers. */
#ifndef CHECK_TABLE_FIXTURE_H
#define CHECK_TABLE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/list.h"

static long allocations_left = -1; /* negative: no limit */

static inline bool may_allocate(void)
{
    if (allocations_left == 0)
        return false;
    if (allocations_left > 0)
        allocations_left--;
    return true;
}

static inline void *failing_malloc(size_t size)
{
    return may_allocate() ? malloc(size) : NULL;
}

static inline void *failing_calloc(size_t count, size_t size)
{
    return may_allocate() ? calloc(count, size) : NULL;
}

static inline void *failing_realloc(void *memory, size_t size)
{
    return may_allocate() ? realloc(memory, size) : NULL;
}

static inline size_t length(const struct list *list)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = list->head.next; node != &list->head; node = node->next)
        count++;
    return count;
}

static uint64_t random_state;

static inline unsigned next_random(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % below);
}

#endif
