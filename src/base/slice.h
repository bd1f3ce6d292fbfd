/* A run of bytes that belongs to somebody else. Never NUL-terminated; the function that hands one
 * out says how long it lives. */
#ifndef STDIO_BUS_BASE_SLICE_H
#define STDIO_BUS_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

static inline struct slice slice_of(const char *data, size_t len)
{
    struct slice s = {data, len};
    return s;
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
