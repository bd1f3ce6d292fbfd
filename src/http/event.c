#include "build_config.h"

#include "http/event.h"

#include <stdio.h>

#include "base/assert.h"
#include "http/chunked.h"

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
