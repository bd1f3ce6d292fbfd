#include "build_config.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

/* Rounds *capacity up to the next recycled size, and returns its index; BUFFER_SIZES: none. */
static unsigned round_up(size_t *capacity)
{
    size_t rounded = BUFFER_SMALL;
    unsigned size;

    for (size = 0; size < BUFFER_SIZES && rounded < *capacity; size++)
        rounded = size == 0 ? BUFFER_LARGE : rounded * 2;
    if (size < BUFFER_SIZES)
        *capacity = rounded;
    return size;
}

static struct buffer *take_kept(struct buffer_pool *pool, unsigned size)
{
    struct buffer *buffer = size < BUFFER_SIZES ? pool->kept[size] : NULL;

    if (buffer == NULL)
        return NULL;
    pool->kept[size] = buffer->next;
    if (size == 0)
        pool->small_count--;
    else
        pool->bytes -= buffer->capacity;
    return buffer;
}

/* Evicts other sizes first: keeps the sizes in recent demand. */
static void make_way(struct buffer_pool *pool, size_t capacity)
{
    for (unsigned size = 1; size < BUFFER_SIZES; size++)
        while (pool->bytes + capacity > BUFFER_POOL_MAX_BYTES + pool->more &&
               pool->kept[size] != NULL)
            free(take_kept(pool, size));
}

struct buffer *buffer_take(struct buffer_pool *pool, size_t capacity)
{
    unsigned size = round_up(&capacity);
    struct buffer *buffer = take_kept(pool, size);

    if (buffer == NULL) {
        if (size != 0)
            make_way(pool, capacity);
        buffer = malloc(sizeof *buffer + capacity);
        if (buffer == NULL)
            return NULL;
        buffer->size = size;
        buffer->capacity = capacity;
    }
    buffer->next = NULL;
    buffer->start = buffer->end = 0;
    buffer->account = NULL;
    pool->used += buffer->capacity;
    return buffer;
}

void buffer_give(struct buffer_pool *pool, struct buffer *buffer)
{
    if (buffer == NULL)
        return;
    pool->used -= buffer->capacity;
    if (buffer->account != NULL)
        *buffer->account -= buffer->capacity;
    if (buffer->size == 0 && pool->small_count < BUFFER_POOL_SMALL_MAX) {
        pool->small_count++;
    } else if (buffer->size > 0 && buffer->size < BUFFER_SIZES &&
               pool->bytes + buffer->capacity <= BUFFER_POOL_MAX_BYTES + pool->more) {
        pool->bytes += buffer->capacity;
    } else {
        free(buffer);
        return;
    }
    buffer->next = pool->kept[buffer->size];
    pool->kept[buffer->size] = buffer;
}

/* Above the recycled sizes: realloc moves the pages of a long content, and copies nothing. */
static struct buffer *lengthen(struct buffer_pool *pool, struct buffer *buffer, size_t capacity)
{
    struct buffer *longer = realloc(buffer, sizeof *buffer + capacity);

    if (longer == NULL)
        return NULL;
    pool->used += capacity - longer->capacity;
    longer->capacity = capacity;
    return longer;
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
    if (buffer->size == BUFFER_SIZES && buffer->start == 0 && buffer->account == NULL)
        return lengthen(pool, buffer, len + room);
    bigger = buffer_take(pool, len + room);
    if (bigger == NULL)
        return NULL;
    memcpy(bigger->data, buffer->data + buffer->start, len);
    bigger->end = len;
    buffer_give(pool, buffer);
    return bigger;
}

void buffer_pool_free(struct buffer_pool *pool)
{
    for (unsigned size = 0; size < BUFFER_SIZES; size++)
        while (pool->kept[size] != NULL)
            free(take_kept(pool, size));
}
