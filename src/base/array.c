#include "build_config.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void *array_grow(void *array, size_t *capacity, size_t needed, size_t item_size)
{
    size_t larger = *capacity > 0 ? *capacity : 16;
    char *grown;

    ASSERT(needed > 0);
    if (needed <= *capacity)
        return array;
    while (larger < needed)
        larger *= 2;
    grown = realloc(array, larger * item_size);
    if (grown == NULL)
        return NULL;
    memset(grown + *capacity * item_size, 0, (larger - *capacity) * item_size);
    *capacity = larger;
    return grown;
}
