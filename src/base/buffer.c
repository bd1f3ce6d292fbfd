#include "build_config.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

static struct buffer *take_first(struct buffer **list, unsigned *count)
{
    struct buffer *buffer = *list;

    if (buffer != NULL) {
        *list = buffer->next;
        (*count)--;
    }
    return buffer;
}

struct buffer *buffer_take(struct buffer_pool *pool, size_t capacity)
{
    struct buffer *buffer = NULL;

    if (capacity <= BUFFER_SMALL) {
        capacity = BUFFER_SMALL;
        buffer = take_first(&pool->small, &pool->small_count);
    } else if (capacity <= BUFFER_LARGE) {
        capacity = BUFFER_LARGE;
        buffer = take_first(&pool->large, &pool->large_count);
    }
    if (buffer == NULL) {
        buffer = malloc(sizeof *buffer + capacity);
        if (buffer == NULL)
            return NULL;
        buffer->capacity = capacity;
    }
    buffer->next = NULL;
    buffer->start = buffer->end = 0;
    return buffer;
}

void buffer_give(struct buffer_pool *pool, struct buffer *buffer)
{
    if (buffer == NULL)
        return;
    if (buffer->capacity == BUFFER_SMALL && pool->small_count < BUFFER_POOL_SMALL_MAX) {
        buffer->next = pool->small;
        pool->small = buffer;
        pool->small_count++;
    } else if (buffer->capacity == BUFFER_LARGE && pool->large_count < BUFFER_POOL_LARGE_MAX) {
        buffer->next = pool->large;
        pool->large = buffer;
        pool->large_count++;
    } else {
        free(buffer);
    }
}

struct buffer *buffer_with_room(struct buffer_pool *pool, struct buffer *buffer, size_t room)
{
    size_t len = buffer_len(buffer);
    struct buffer *bigger;

    if (buffer->capacity - len >= room) {
        memmove(buffer->data, buffer->data + buffer->start, len);
        buffer->start = 0;
        buffer->end = len;
        return buffer;
    }
    bigger = buffer_take(pool, len + room);
    if (bigger == NULL)
        return NULL;
    memcpy(bigger->data, buffer->data + buffer->start, len);
    bigger->end = len;
    buffer_give(pool, buffer);
    return bigger;
}

static void free_all(struct buffer *buffer)
{
    while (buffer != NULL) {
        struct buffer *next = buffer->next;

        free(buffer);
        buffer = next;
    }
}

void buffer_pool_free(struct buffer_pool *pool)
{
    free_all(pool->small);
    free_all(pool->large);
    pool->small = pool->large = NULL;
    pool->small_count = pool->large_count = 0;
}
