#include "build_config.h"

#include "base/queue.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"

/* A queue that outgrows its first small buffer continues with large ones. */
static struct buffer *next_buffer(const struct queue *queue, struct buffer_pool *pool, size_t len)
{
    return buffer_take(pool, queue->last != NULL && len < BUFFER_LARGE ? BUFFER_LARGE : len);
}

int queue_append(struct queue *queue, struct buffer_pool *pool, struct slice bytes)
{
    struct buffer *last = queue->last, *more;
    size_t room = last != NULL ? buffer_room(last) : 0;

    if (bytes.len > room) {
        more = next_buffer(queue, pool, bytes.len - room);
        if (more == NULL)
            return STDIO_BUS_ERR;
        more->end = bytes.len - room;
        memcpy(more->data, bytes.data + room, more->end);
        queue_append_buffer(queue, more);
        bytes.len = room;
    }
    if (bytes.len > 0) {
        memcpy(last->data + last->end, bytes.data, bytes.len);
        last->end += bytes.len;
        queue->bytes += bytes.len;
    }
    return STDIO_BUS_OK;
}

char *queue_reserve(struct queue *queue, struct buffer_pool *pool, size_t len)
{
    struct buffer *last = queue->last;

    if (last == NULL || buffer_room(last) < len) {
        last = next_buffer(queue, pool, len);
        if (last == NULL)
            return NULL;
        queue_append_buffer(queue, last);
    }
    last->end += len;
    queue->bytes += len;
    return last->data + last->end - len;
}

void queue_append_buffer(struct queue *queue, struct buffer *buffer)
{
    buffer->next = NULL;
    if (buffer->capacity > BUFFER_LARGE && queue->account != NULL) {
        buffer->account = queue->account;
        *buffer->account += buffer->capacity;
    }
    if (queue->last != NULL)
        queue->last->next = buffer;
    else
        queue->first = buffer;
    queue->last = buffer;
    queue->bytes += buffer_len(buffer);
}

int queue_pieces(const struct queue *queue, struct iovec *pieces, int max)
{
    struct buffer *buffer = queue->first;
    int count;

    for (count = 0; count < max && buffer != NULL; count++, buffer = buffer->next) {
        pieces[count].iov_base = buffer->data + buffer->start;
        pieces[count].iov_len = buffer_len(buffer);
    }
    return count;
}

static void drop_first(struct queue *queue, struct buffer_pool *pool)
{
    struct buffer *buffer = queue->first;

    queue->first = buffer->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->bytes -= buffer_len(buffer);
    buffer_give(pool, buffer);
}

void queue_consume(struct queue *queue, struct buffer_pool *pool, size_t len)
{
    ASSERT(len <= queue->bytes);
    while (len > 0 && len >= buffer_len(queue->first)) {
        len -= buffer_len(queue->first);
        drop_first(queue, pool);
    }
    if (len > 0) {
        queue->first->start += len;
        queue->bytes -= len;
    }
}

void queue_clear(struct queue *queue, struct buffer_pool *pool)
{
    while (queue->first != NULL)
        drop_first(queue, pool);
}
