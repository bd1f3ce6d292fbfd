/* Bytes waiting to be written: a chain of buffers. */
#ifndef STDIO_BUS_BASE_QUEUE_H
#define STDIO_BUS_BASE_QUEUE_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Zeroed: empty. */
struct queue {
    struct buffer *first, *last;
    size_t bytes;    /* of all buffers */
    size_t *account; /* counts the capacity of its long buffers; NULL: none */
};

/* Appends a copy of the bytes. STDIO_BUS_ERR if out of memory; then nothing was appended. */
int queue_append(struct queue *queue, struct buffer_pool *pool, struct slice bytes);

/* Appends room for `len` bytes in one piece, to be filled at once. NULL if out of memory; then
 * nothing was appended. */
char *queue_reserve(struct queue *queue, struct buffer_pool *pool, size_t len);

/* Appends the buffer itself; it belongs to the queue from now on. Never fails. */
void queue_append_buffer(struct queue *queue, struct buffer *buffer);

/* Describes the first bytes for writev in at most `max` pieces, which live until the queue changes.
 * Returns the number of pieces. */
int queue_pieces(const struct queue *queue, struct iovec *pieces, int max);

/* Removes the first `len` bytes; len is at most queue->bytes. */
void queue_consume(struct queue *queue, struct buffer_pool *pool, size_t len);

/* Removes all bytes. */
void queue_clear(struct queue *queue, struct buffer_pool *pool);

#endif
