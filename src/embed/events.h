/* What the callbacks of the host will be told, in order. */
#ifndef STDIO_BUS_EMBED_EVENTS_H
#define STDIO_BUS_EMBED_EVENTS_H

#include "base/queue.h"

enum event_kind {
    EVENT_MESSAGE,
    EVENT_ERROR, /* its number: the code */
    EVENT_WORKER,
    EVENT_CONNECTED,
    EVENT_DISCONNECTED
};

struct event {
    enum event_kind kind;
    int number;
    size_t len; /* of the text, which a NUL follows */
};

struct events {
    struct queue queue; /* records: an event and its text */
    size_t count;
};

/* Appends an event with room for a text of `len` bytes, to be filled at once; the NUL is there.
 * NULL if out of memory; then nothing was appended. */
char *events_add(struct events *events, struct buffer_pool *pool, enum event_kind kind, int number,
                 size_t len);

enum event_messages {
    EVENT_MESSAGES_GIVEN,
    EVENT_MESSAGES_WAIT,   /* the first one, and what came after it, stays */
    EVENT_MESSAGES_DROPPED /* the other events are given */
};

/* Gets each event; the text lives until the call returns. */
typedef void events_fn(void *user_data, const struct event *event, const char *text);

/* Takes the events that there are now out of the queue, and calls fn for each. Those that fn adds
 * stay. Returns how many were taken out. */
int events_give(struct events *events, struct buffer_pool *pool, enum event_messages messages,
                events_fn *fn, void *user_data);

/* Forgets all of them. */
void events_clear(struct events *events, struct buffer_pool *pool);

#endif
