/* Arrays that grow by doubling. */
#ifndef STDIO_BUS_BASE_ARRAY_H
#define STDIO_BUS_BASE_ARRAY_H

#include <stddef.h>

/* The array with room for `needed` items (at least 1) of item_size bytes: as it is, or moved, with
 * *capacity grown and the new items zeroed. NULL with errno set if out of memory; then nothing has
 * changed. A NULL array has the capacity 0. */
void *array_grow(void *array, size_t *capacity, size_t needed, size_t item_size);

#endif
