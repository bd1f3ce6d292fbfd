#include "build_config.h"

#include "base/queue.h"

#include <string.h>

#include "base/error.h"

static void fill(struct buffer *buffer, const char *data, size_t len)
{
    memcpy(buffer->data + buffer->end, data, len);
    buffer->end += len;
}

int queue_append(struct queue *queue, struct buffer_pool *pool, struct slice bytes)
{
    size_t head = queue->last != NULL ? buffer_room(queue->last) : 0;
    size_t rest;
    struct buffer *buffer = NULL;

    if (head > bytes.len)
        head = bytes.len;
    rest = bytes.len - head;
    if (rest > 0) {
        /* A queue that outgrows its first small buffer will get more: go on with large ones. */
        size_t capacity = queue->last != NULL && rest < BUFFER_LARGE ? BUFFER_LARGE : rest;

        buffer = buffer_take(pool, capacity);
        if (buffer == NULL)
            return STDIO_BUS_ERR;
        fill(buffer, bytes.data + head, rest);
    }
    if (head > 0) {
        fill(queue->last, bytes.data, head);
        queue->bytes += head;
    }
    if (buffer != NULL)
        queue_append_buffer(queue, buffer);
    return STDIO_BUS_OK;
}

char *queue_reserve(struct queue *queue, struct buffer_pool *pool, size_t len)
{
    struct buffer *last = queue->last;

    if (last == NULL || buffer_room(last) < len) {
        last = buffer_take(pool, last != NULL && len < BUFFER_LARGE ? BUFFER_LARGE : len);
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
    while (len > 0) {
        struct buffer *buffer = queue->first;
        size_t here = buffer_len(buffer);

        if (here > len) {
            buffer->start += len;
            queue->bytes -= len;
            return;
        }
        len -= here;
        drop_first(queue, pool);
    }
}

void queue_clear(struct queue *queue, struct buffer_pool *pool)
{
    while (queue->first != NULL)
        drop_first(queue, pool);
}
