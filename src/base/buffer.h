/* Buffers: one allocation for the header and the bytes after it, recycled through a pool by size:
 * steady traffic allocates nothing. Input is read into buffers, output waits in chains of them. */
#ifndef STDIO_BUS_BASE_BUFFER_H
#define STDIO_BUS_BASE_BUFFER_H

#include <stddef.h>

struct buffer {
    struct buffer *next; /* in a queue or in the pool */
    unsigned size;       /* index of its recycled size; BUFFER_SIZES: none */
    size_t capacity;     /* bytes of data */
    size_t start, end;   /* the content is data[start] to data[end - 1] */
    size_t *account;     /* counts its capacity until it is given back; NULL: none */
    char data[];
};

#define BUFFER_SMALL ((size_t)2048 - sizeof(struct buffer)) /* capacity of a few messages */
#define BUFFER_LARGE ((size_t)65536)                        /* capacity of one read */

#define BUFFER_SIZES 7 /* recycled: these two, and the doubles of the large one up to 2 MiB */

#define BUFFER_POOL_SMALL_MAX 512               /* small buffers that the pool keeps */
#define BUFFER_POOL_MAX_BYTES ((size_t)2 << 20) /* capacity of all others that it keeps */

/* Zeroed: an empty pool. */
struct buffer_pool {
    struct buffer *kept[BUFFER_SIZES];
    unsigned small_count;
    size_t bytes; /* capacity of the kept buffers but the small ones */
    size_t more;  /* it keeps this number beyond BUFFER_POOL_MAX_BYTES */
    size_t used;  /* capacity of the buffers that were taken and not given back */
};

static inline size_t buffer_len(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline size_t buffer_room(const struct buffer *buffer)
{
    return buffer->capacity - buffer->end;
}

/* An empty buffer with at least this capacity: the next recycled size, or, above all of them,
 * exactly this capacity. NULL if out of memory. */
struct buffer *buffer_take(struct buffer_pool *pool, size_t capacity);

/* Gives a buffer back. NULL is allowed. */
void buffer_give(struct buffer_pool *pool, struct buffer *buffer);

/* A buffer with the same content, moved to its front, and room for `room` more bytes. The old one
 * is given back, or is the same one. NULL if out of memory; then the old one is as it was. */
struct buffer *buffer_with_room(struct buffer_pool *pool, struct buffer *buffer, size_t room);

/* Frees the kept buffers. */
void buffer_pool_free(struct buffer_pool *pool);

#endif
