/* A borrowed run of bytes, not NUL-terminated. The function that returns one documents how long it
 * lives. */
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
    return (struct slice){.data = data, .len = len};
}

static inline struct slice slice_of_text(const char *text)
{
    return slice_of(text, strlen(text));
}

static inline struct slice slice_without_newline(struct slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    return line;
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
