#include "build_config.h"

#include "http/event_log.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "http/chunked.h"

void event_memory_init(struct event_memory *memory, size_t max_bytes)
{
    *memory = (struct event_memory){.max_bytes = max_bytes};
    list_init(&memory->events);
}

void event_owner_init(struct event_owner *owner)
{
    *owner = (struct event_owner){.bytes = 0};
    list_init(&owner->events);
}

void event_log_init(struct event_log *log, struct event_memory *memory, size_t max_count,
                    size_t max_bytes)
{
    *log = (struct event_log){.memory = memory, .max_count = max_count, .max_bytes = max_bytes};
    list_init(&log->events);
}

void event_stream_init(struct event_stream *stream, struct event_log *log)
{
    *stream = (struct event_stream){.log = log};
    list_init(&stream->events);
}

static size_t size_of(const struct event *event)
{
    return sizeof *event + event->len;
}

/* The place of an owner that holds its events and `more` bytes. */
static void place(struct event_memory *memory, struct event_owner *owner, size_t more)
{
    heap_remove(&memory->most, &owner->node);
    if (!list_empty(&owner->events))
        heap_insert(&memory->most, &owner->node, -(int64_t)(owner->bytes + more));
}

static void remove_event(struct event *event)
{
    struct event_log *log = event->stream->log;

    event->stream->forgotten = event->number;
    list_remove(&event->in_stream);
    list_remove(&event->in_log);
    list_remove(&event->in_owner);
    list_remove(&event->in_memory);
    log->count--;
    log->bytes -= size_of(event);
    log->owner->bytes -= size_of(event);
    log->memory->bytes -= size_of(event);
    place(log->memory, log->owner, 0);
    free(event);
}

static void forget_event(struct event *event)
{
    struct event_log *log = event->stream->log;

    if (log->forgets != NULL)
        log->forgets(log->user_data, event);
    remove_event(event);
}

/* Makes room for `size` bytes, which `owner` will hold beside its events; NULL: none will. */
static void make_room_of_all(struct event_memory *memory, struct event_owner *owner, size_t size)
{
    while (memory->bytes + size > memory->max_bytes) {
        struct event_owner *most;

        if (owner != NULL)
            place(memory, owner, size);
        if (memory->most == NULL)
            return;
        most = list_entry(memory->most, struct event_owner, node);
        forget_event(list_entry(list_take_first(&most->events), struct event, in_owner));
    }
}

void event_memory_bound(struct event_memory *memory, size_t max_bytes)
{
    memory->max_bytes = max_bytes;
    make_room_of_all(memory, NULL, 0);
}

/* Makes room for one event of `size` bytes. */
static void make_room(struct event_log *log, size_t size)
{
    size_t half = log->memory->max_bytes / 2;
    struct list_node *node;

    while ((log->count >= log->max_count || log->bytes + size > log->max_bytes) &&
           (node = list_take_first(&log->events)) != NULL)
        forget_event(list_entry(node, struct event, in_log));
    make_room_of_all(log->memory, log->owner, size < half ? size : half);
}

struct event *event_log_restore(struct event_stream *stream, uint32_t number, size_t len)
{
    struct event_log *log = stream->log;
    struct event *event = malloc(sizeof *event + len);

    ASSERT(log->owner != NULL);
    if (event == NULL)
        return NULL;
    *event = (struct event){.stream = stream, .number = number, .len = len};
    list_append(&stream->events, &event->in_stream);
    list_append(&log->events, &event->in_log);
    list_append(&log->owner->events, &event->in_owner);
    list_append(&log->memory->events, &event->in_memory);
    log->count++;
    log->bytes += size_of(event);
    log->owner->bytes += size_of(event);
    log->memory->bytes += size_of(event);
    place(log->memory, log->owner, 0);
    return event;
}

struct event *event_log_add(struct event_stream *stream, size_t len)
{
    struct event *event;

    make_room(stream->log, sizeof *event + len);
    stream->last++;
    event = event_log_restore(stream, stream->last, len);
    if (event == NULL)
        stream->forgotten = stream->last;
    return event;
}

static bool is_after(const struct event_stream *stream, const struct list_node *node,
                     uint32_t number)
{
    return node != &stream->events.head &&
           list_entry(node, const struct event, in_stream)->number > number;
}

/* The number is mostly one of the last, whose reader keeps up, or one of the first. */
struct event *event_log_after(const struct event_stream *stream, uint32_t number)
{
    const struct list_node *head = &stream->events.head;
    struct list_node *node;

    if (number >= stream->last)
        return NULL;
    if (number > stream->forgotten && stream->last - number < number - stream->forgotten) {
        for (node = head->prev; is_after(stream, node, number);)
            node = node->prev;
        node = node->next;
    } else {
        for (node = head->next; node != head && !is_after(stream, node, number);)
            node = node->next;
    }
    return node != head ? list_entry(node, struct event, in_stream) : NULL;
}

void event_log_got(struct event_stream *stream, uint32_t number)
{
    struct list_node *node;

    while ((node = list_take_first(&stream->events)) != NULL) {
        struct event *event = list_entry(node, struct event, in_stream);

        if (event->number > number) {
            list_prepend(&stream->events, node);
            return;
        }
        remove_event(event);
    }
}

void event_stream_clear(struct event_stream *stream)
{
    event_log_got(stream, UINT32_MAX);
}

#define DATA "data: "

/* Writes the fields before the data; returns their length. */
static size_t write_fields(char *to, size_t size, struct slice id, unsigned retry_ms)
{
    size_t len = 0;

    ASSERT(id.len <= EVENT_ID_LEN_MAX);
    if (id.len > 0)
        len = (size_t)snprintf(to, size, "id: %.*s\n", (int)id.len, id.data);
    if (retry_ms > 0)
        len += (size_t)snprintf(to + len, size - len, "retry: %u\n", retry_ms);
    return len + (size_t)snprintf(to + len, size - len, DATA);
}

void event_frame_write(struct event_frame *frame, struct slice id, unsigned retry_ms,
                       size_t data_len, bool chunked)
{
    char fields[EVENT_BEFORE_MAX - CHUNK_HEAD_MAX];
    size_t len = write_fields(fields, sizeof fields, id, retry_ms), head = 0;

    frame->after = slice_of("\n\n" CHUNK_TAIL, chunked ? 4 : 2);
    if (chunked)
        head = chunk_write_head(frame->before, len + data_len + 2);
    memcpy(frame->before + head, fields, len);
    frame->before_len = head + len;
}

void event_frame_write_empty(struct event_frame *frame, struct slice id, unsigned retry_ms,
                             bool chunked)
{
    event_frame_write(frame, id, retry_ms, 0, chunked);
    memcpy(frame->before + frame->before_len, frame->after.data, frame->after.len);
    frame->before_len += frame->after.len;
    frame->after.len = 0;
}

struct slice event_comment(bool chunked)
{
    static const char comment[] = "3\r\n:\n\n\r\n";

    return chunked ? slice_of(comment, sizeof comment - 1) : slice_of(comment + 3, 3);
}
