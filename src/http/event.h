/* Server-sent events: what surrounds the data (WHATWG HTML, 9.2). */
#ifndef STDIO_BUS_HTTP_EVENT_H
#define STDIO_BUS_HTTP_EVENT_H

#include <stdbool.h>

#include "base/slice.h"

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

#endif
