/* Buffers: one allocation with its bytes behind it, recycled through a pool in two sizes, so that
 * steady traffic allocates nothing. Input is read into them; output waits in chains of them. */
#ifndef STDIO_BUS_BASE_BUFFER_H
#define STDIO_BUS_BASE_BUFFER_H

#include <stddef.h>

struct buffer {
    struct buffer *next; /* in a queue or in the pool */
    size_t capacity;     /* bytes of data */
    size_t start, end;   /* the content is data[start] to data[end - 1] */
    char data[];
};

#define BUFFER_SMALL ((size_t)2048 - sizeof(struct buffer)) /* capacity of a few messages */
#define BUFFER_LARGE ((size_t)65536)                        /* capacity of one read */

#define BUFFER_POOL_SMALL_MAX 512 /* recycled buffers kept of each size */
#define BUFFER_POOL_LARGE_MAX 4

/* A zeroed one is an empty pool. */
struct buffer_pool {
    struct buffer *small, *large;
    unsigned small_count, large_count;
};

static inline size_t buffer_len(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline size_t buffer_room(const struct buffer *buffer)
{
    return buffer->capacity - buffer->end;
}

/* An empty buffer with at least this capacity: BUFFER_SMALL, BUFFER_LARGE, or, above, exactly what
 * was asked for. NULL when memory is out. */
struct buffer *buffer_take(struct buffer_pool *pool, size_t capacity);

/* Gives a buffer back. NULL is fine. */
void buffer_give(struct buffer_pool *pool, struct buffer *buffer);

/* A buffer with the same content, moved to its front, and room for `room` more bytes; the old one
 * is given back or is the new one. NULL when memory is out, and then the old one is as it was. */
struct buffer *buffer_with_room(struct buffer_pool *pool, struct buffer *buffer, size_t room);

/* Frees what the pool keeps. */
void buffer_pool_free(struct buffer_pool *pool);

#endif
