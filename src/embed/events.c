#include "build_config.h"

#include "embed/events.h"

#include <string.h>

char *events_add(struct events *events, struct buffer_pool *pool, enum event_kind kind, int number,
                 size_t len)
{
    const struct event event = {.kind = kind, .number = number, .len = len};
    char *room = queue_reserve(&events->queue, pool, sizeof event + len + 1);

    if (room == NULL)
        return NULL;
    memcpy(room, &event, sizeof event);
    room += sizeof event;
    room[len] = '\0';
    events->count++;
    return room;
}

/* Puts the buffers that were taken out before those that came since. */
static void put_back(struct queue *queue, const struct queue *rest)
{
    if (rest->first == NULL)
        return;
    rest->last->next = queue->first;
    queue->first = rest->first;
    if (queue->last == NULL)
        queue->last = rest->last;
    queue->bytes += rest->bytes;
}

int events_give(struct events *events, struct buffer_pool *pool, enum event_messages messages,
                events_fn *fn, void *user_data)
{
    struct queue taken = events->queue;
    struct event event;
    int count = 0;

    events->queue = (struct queue){.account = taken.account};
    while (taken.first != NULL) {
        const char *record = taken.first->data + taken.first->start;

        memcpy(&event, record, sizeof event);
        if (event.kind != EVENT_MESSAGE || messages == EVENT_MESSAGES_GIVEN)
            fn(user_data, &event, record + sizeof event);
        else if (messages == EVENT_MESSAGES_WAIT)
            break;
        queue_consume(&taken, pool, sizeof event + event.len + 1);
        count++;
    }
    events->count -= (size_t)count;
    put_back(&events->queue, &taken);
    return count;
}

void events_clear(struct events *events, struct buffer_pool *pool)
{
    queue_clear(&events->queue, pool);
    events->count = 0;
}
