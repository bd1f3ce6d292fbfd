#include "build_config.h"

#include "base/slice.h"

#include <stdlib.h>

char *slice_copy(struct slice slice)
{
    char *copy = malloc(slice.len + 1);

    if (copy == NULL)
        return NULL;
    if (slice.len > 0)
        memcpy(copy, slice.data, slice.len);
    copy[slice.len] = '\0';
    return copy;
}
