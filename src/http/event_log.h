/* The events of server-sent streams, kept so that a stream that was cut can continue elsewhere
 * (MCP, Streamable HTTP: Last-Event-ID). The memory is bounded: of each log, which has the streams
 * of one session, and of all logs together. Of a log that is over its bound the oldest event is
 * forgotten; of all of them, the oldest event of the owner that holds most. So an owner (a user or
 * an address) that holds less than 1/(2m) of the memory, with m owners, loses nothing by what
 * others keep. */
#ifndef STDIO_BUS_HTTP_EVENT_LOG_H
#define STDIO_BUS_HTTP_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/slice.h"
#include "framing/frame.h"

/* What all logs share. */
struct event_memory {
    struct list events;     /* of all logs, the oldest first */
    struct heap_node *most; /* of the owners that have events, the one that holds most, or NULL */
    size_t bytes, max_bytes;
};

/* The logs of one user or address, together. */
struct event_owner {
    struct list events; /* the oldest first */
    size_t bytes;
    struct heap_node node; /* in the heap memory->most */
};

struct event_log;

struct event_stream {
    struct event_log *log;
    struct list events; /* that are kept, the oldest first */
    uint32_t last;      /* the number of its last event; 0: there was none */
    uint32_t forgotten; /* of the last one that is kept no more */
};

struct event {
    struct event_stream *stream;
    struct list_node in_stream, in_log, in_owner, in_memory;
    uint32_t number; /* from 1 */
    bool asks;       /* the owner's: it is a question, */
    bool answers;    /* it is the answer that ends the stream */
    size_t len;
    char data[];
};

struct event_log {
    struct event_memory *memory;
    struct event_owner *owner;
    struct list events; /* of all its streams, the oldest first */
    size_t count, bytes, max_count, max_bytes;
    /* Called before an event is forgotten for want of room. Must not call the log. */
    void (*forgets)(void *user_data, const struct event *event);
    void *user_data;
};

void event_memory_init(struct event_memory *memory, size_t max_bytes);

/* Another bound from now on. What is over it is forgotten at once. */
void event_memory_bound(struct event_memory *memory, size_t max_bytes);

/* An owner without events. It outlives those of its logs. */
void event_owner_init(struct event_owner *owner);

/* The numbers of bytes count the events' data, and what each takes beside it. */
void event_log_init(struct event_log *log, struct event_memory *memory, size_t max_count,
                    size_t max_bytes);
/* To be called before the log gets its first event. */
static inline void event_log_set_owner(struct event_log *log, struct event_owner *owner)
{
    log->owner = owner;
}

void event_stream_init(struct event_stream *stream, struct event_log *log);

/* The stream's next event, with room for `len` bytes of data, which are to be filled at once. What
 * is over the limits is forgotten before, but never all: the log keeps this event, whatever its
 * length, for which other owners make room up to half of the memory. NULL if out of memory; the
 * event counts as forgotten then. */
struct event *event_log_add(struct event_stream *stream, size_t len);

/* For a log that is loaded: an event that was kept, after those before it. The stream's own numbers
 * are the caller's. NULL if out of memory. */
struct event *event_log_restore(struct event_stream *stream, uint32_t number, size_t len);

/* The first event after that number which is kept, or NULL. */
struct event *event_log_after(const struct event_stream *stream, uint32_t number);

/* Forgets the stream's events up to that number, which its reader has got. */
void event_log_got(struct event_stream *stream, uint32_t number);

/* Forgets all events of the stream, without a call. */
void event_stream_clear(struct event_stream *stream);

/* --- Server-sent events: what surrounds the data (WHATWG HTML, 9.2). --- */

#define EVENT_BEFORE_MAX 256
#define EVENT_ID_LEN_MAX 128 /* bytes of an id that is written */

/* What comes before and after the data of an event. The data has no newline: connection_send_parts
 * with one_line. */
struct event_frame {
    char before[EVENT_BEFORE_MAX];
    size_t before_len;
    struct slice after; /* static */
};

/* An event of `data_len` bytes of data, with this id (len 0: none; visible ASCII) and, if it is
 * over 0, retry. `chunked`: the event is one chunk of a body, otherwise bare. */
void event_frame_write(struct event_frame *frame, struct slice id, unsigned retry_ms,
                       size_t data_len, bool chunked);

/* The same for an event with an id and empty data, whole: `before` is all of it. */
void event_frame_write_empty(struct event_frame *frame, struct slice id, unsigned retry_ms,
                             bool chunked);

/* A comment line, which keeps proxies from closing a silent stream. Static. */
struct slice event_comment(bool chunked);

/* --- The time of a body that comes slowly. --- */

#define PROGRESS_MIN UINT64_C(65536) /* bytes that begin the time of a body again, */
#define PROGRESS_PART 32             /* or, of a long one, this part of it */

/* `here` bytes of the body, which has `announced` bytes (0: not known), came so far. *timed: how
 * many there were when its time began. */
static inline void progress_note(struct framing_state *state, uint64_t *timed, uint64_t here,
                                 uint64_t announced)
{
    uint64_t least = (announced > 0 ? announced : here) / PROGRESS_PART;

    if (here < *timed + (least > PROGRESS_MIN ? least : PROGRESS_MIN))
        return;
    *timed = here;
    state->timed = false;
}

#endif
