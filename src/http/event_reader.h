/* Reads a stream of server-sent events (text/event-stream of the HTML standard), for the client
 * side: bytes in, in pieces of any size, and events out. No I/O, no clock. */
#ifndef STDIO_BUS_HTTP_EVENT_READER_H
#define STDIO_BUS_HTTP_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define HTTP_EVENT_ID_MAX 256       /* bytes; a longer id is ignored */
#define HTTP_EVENT_NAME_MAX 16      /* bytes that are kept of the name of a field or event */
#define HTTP_EVENT_RETRY_MAX 600000 /* ms; a longer time becomes this */

enum http_event_status {
    HTTP_EVENT_MORE,     /* all bytes were taken; more are needed */
    HTTP_EVENT_WHOLE,    /* an event with data, or one with an id alone */
    HTTP_EVENT_TOO_LONG, /* its data exceed max_data; the rest of the event is skipped */
    HTTP_EVENT_NO_MEMORY /* the same */
};

struct http_event_reader {
    size_t max_data; /* the owner's: bytes of data of one event */
    /* Valid after HTTP_EVENT_WHOLE until the next call: */
    const char *data;
    size_t len;       /* of the data; the lines of it are joined by newlines */
    bool is_message;  /* the event has no name, or the name message */
    bool is_endpoint; /* it has the name endpoint, with which the older HTTP+SSE begins */
    /* Of the stream so far: */
    char id[HTTP_EVENT_ID_MAX + 1]; /* the last id; "" if there was none */
    uint32_t retry_ms;              /* 0: none was given */
    /* The rest belongs to event_reader.c. */
    char *bytes;
    size_t size;
    unsigned char part; /* of a line */
    unsigned char bom;  /* bytes of a byte order mark at the start */
    bool begun, after_cr, was_whole, has_data, has_id, skips;
    unsigned char field;
    unsigned char name_len, event_len;
    char name[HTTP_EVENT_NAME_MAX], event[HTTP_EVENT_NAME_MAX];
    size_t value_len; /* of the id or retry that is read */
    uint32_t retry;
    char new_id[HTTP_EVENT_ID_MAX + 1];
};

/* Ready for a stream; max_data and the id of an earlier stream, which this one continues, stay. */
void http_event_reset(struct http_event_reader *reader);

/* Takes bytes from the front of *bytes, up to the end of an event. An id counts once its event is
 * whole. */
enum http_event_status http_event_next(struct http_event_reader *reader, struct slice *bytes);

/* Frees the data. */
void http_event_free(struct http_event_reader *reader);

#endif
