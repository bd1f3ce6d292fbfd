#include "build_config.h"

#include "http/event_reader.h"

#include <stdlib.h>
#include <string.h>

#define DATA_MIN 1024

enum part { PART_NAME, PART_SPACE, PART_VALUE };

enum field { FIELD_OTHER, FIELD_DATA, FIELD_ID, FIELD_RETRY, FIELD_EVENT };

static const unsigned char mark[] = {0xEF, 0xBB, 0xBF}; /* a byte order mark */

static void start_event(struct http_event_reader *reader)
{
    reader->len = 0;
    reader->has_data = reader->has_id = reader->skips = false;
    reader->event_len = 0;
    reader->was_whole = false;
}

static void start_line(struct http_event_reader *reader)
{
    reader->part = PART_NAME;
    reader->name_len = 0;
}

void http_event_reset(struct http_event_reader *reader)
{
    reader->bom = 0;
    reader->begun = reader->after_cr = false;
    start_event(reader);
    start_line(reader);
}

void http_event_free(struct http_event_reader *reader)
{
    free(reader->bytes);
    reader->bytes = NULL;
    reader->data = NULL;
    reader->size = reader->len = 0;
}

/* --- data --- */

static enum http_event_status add_data(struct http_event_reader *reader, struct slice piece)
{
    size_t size = reader->size;
    char *bytes;

    if (reader->skips)
        return HTTP_EVENT_MORE;
    if (piece.len > reader->max_data - reader->len) {
        reader->skips = true;
        return HTTP_EVENT_TOO_LONG;
    }
    while (size - reader->len < piece.len)
        size = size < DATA_MIN ? DATA_MIN : size * 2;
    if (size > reader->size) {
        bytes = realloc(reader->bytes, size);
        if (bytes == NULL) {
            reader->skips = true;
            return HTTP_EVENT_NO_MEMORY;
        }
        reader->bytes = bytes;
        reader->size = size;
    }
    if (piece.len > 0)
        memcpy(reader->bytes + reader->len, piece.data, piece.len);
    reader->len += piece.len;
    return HTTP_EVENT_MORE;
}

/* --- lines --- */

/* The name of the line's field is whole. */
static enum http_event_status start_value(struct http_event_reader *reader)
{
    static const char *const names[] = {
        [FIELD_DATA] = "data", [FIELD_ID] = "id", [FIELD_RETRY] = "retry", [FIELD_EVENT] = "event"};

    reader->part = PART_SPACE;
    reader->value_len = 0;
    reader->retry = 0;
    reader->field = FIELD_OTHER;
    for (unsigned i = FIELD_DATA; i <= FIELD_EVENT; i++) {
        if (slice_is(slice_of(reader->name, reader->name_len), names[i]))
            reader->field = (unsigned char)i;
    }
    if (reader->field == FIELD_EVENT)
        reader->event_len = 0;
    if (reader->field != FIELD_DATA)
        return HTTP_EVENT_MORE;
    if (reader->has_data)
        return add_data(reader, slice_of("\n", 1));
    reader->has_data = true;
    return HTTP_EVENT_MORE;
}

/* The value of a field other than data. */
static void add_value(struct http_event_reader *reader, char c)
{
    size_t at = reader->value_len++;

    switch (reader->field) {
    case FIELD_ID:
        if (at < HTTP_EVENT_ID_MAX && c != '\0')
            reader->new_id[at] = c;
        else
            reader->value_len = HTTP_EVENT_ID_MAX + 1; /* the id is ignored */
        break;
    case FIELD_RETRY:
        if (c < '0' || c > '9')
            reader->field = FIELD_OTHER;
        else if (reader->retry <= HTTP_EVENT_RETRY_MAX)
            reader->retry = reader->retry * 10 + (uint32_t)(c - '0');
        break;
    case FIELD_EVENT:
        if (reader->event_len < HTTP_EVENT_NAME_MAX)
            reader->event[reader->event_len++] = c; /* a longer one is not "message" either */
        break;
    default:
        break;
    }
}

static void end_value(struct http_event_reader *reader)
{
    if (reader->field == FIELD_ID && reader->value_len <= HTTP_EVENT_ID_MAX) {
        reader->new_id[reader->value_len] = '\0';
        reader->has_id = true;
    }
    if (reader->field == FIELD_RETRY && reader->value_len > 0)
        reader->retry_ms = reader->retry < HTTP_EVENT_RETRY_MAX ? reader->retry
                                                                : HTTP_EVENT_RETRY_MAX;
}

/* An empty line ends the event; one that has neither data nor an id is none. */
static enum http_event_status end_event(struct http_event_reader *reader)
{
    bool whole = !reader->skips && (reader->has_data || reader->has_id);
    const struct slice event = slice_of(reader->event, reader->event_len);

    if (reader->has_id)
        memcpy(reader->id, reader->new_id, sizeof reader->id);
    reader->data = reader->bytes;
    reader->is_message = event.len == 0 || slice_is(event, "message");
    reader->is_endpoint = slice_is(event, "endpoint");
    if (!whole) {
        start_event(reader);
        return HTTP_EVENT_MORE;
    }
    reader->was_whole = true;
    return HTTP_EVENT_WHOLE;
}

static enum http_event_status end_line(struct http_event_reader *reader)
{
    enum http_event_status status = HTTP_EVENT_MORE;

    if (reader->part == PART_NAME && reader->name_len == 0)
        return end_event(reader);
    if (reader->part == PART_NAME)
        status = start_value(reader);
    end_value(reader);
    start_line(reader);
    return status;
}

/* --- bytes --- */

static enum http_event_status take_byte(struct http_event_reader *reader, char c)
{
    if (reader->part == PART_NAME && c != ':') {
        if (reader->name_len < HTTP_EVENT_NAME_MAX)
            reader->name[reader->name_len++] = c;
        return HTTP_EVENT_MORE;
    }
    if (reader->part == PART_NAME) {
        if (reader->name_len == 0)
            reader->name[reader->name_len++] = ':'; /* a comment: a field that is unknown */
        return start_value(reader);
    }
    if (reader->part == PART_SPACE) {
        reader->part = PART_VALUE;
        if (c == ' ')
            return HTTP_EVENT_MORE;
    }
    if (reader->field == FIELD_DATA)
        return add_data(reader, slice_of(&c, 1));
    add_value(reader, c);
    return HTTP_EVENT_MORE;
}

/* The bytes of a line's data, which need no look at each. Returns how many these are. */
static size_t plain_data(const struct http_event_reader *reader, struct slice bytes)
{
    const char *end;
    size_t len = bytes.len;

    if (reader->part != PART_VALUE || reader->field != FIELD_DATA)
        return 0;
    end = memchr(bytes.data, '\n', len);
    if (end != NULL)
        len = (size_t)(end - bytes.data);
    end = memchr(bytes.data, '\r', len);
    return end != NULL ? (size_t)(end - bytes.data) : len;
}

static enum http_event_status take_event(struct http_event_reader *reader, struct slice *bytes)
{
    size_t len = plain_data(reader, *bytes);
    enum http_event_status status;
    char c;

    if (len > 0) {
        status = add_data(reader, slice_of(bytes->data, len));
        *bytes = slice_of(bytes->data + len, bytes->len - len);
        return status;
    }
    c = *bytes->data;
    *bytes = slice_of(bytes->data + 1, bytes->len - 1);
    if (c == '\n' && reader->after_cr) {
        reader->after_cr = false;
        return HTTP_EVENT_MORE;
    }
    reader->after_cr = c == '\r';
    return c == '\r' || c == '\n' ? end_line(reader) : take_byte(reader, c);
}

/* Skips a byte order mark; one that is not whole is the name of an unknown field. */
static void skip_mark(struct http_event_reader *reader, struct slice *bytes)
{
    while (!reader->begun && bytes->len > 0) {
        if ((unsigned char)*bytes->data != mark[reader->bom]) {
            reader->begun = true;
            if (reader->bom > 0)
                reader->name[reader->name_len++] = '?';
            return;
        }
        *bytes = slice_of(bytes->data + 1, bytes->len - 1);
        reader->begun = ++reader->bom == sizeof mark;
    }
}

enum http_event_status http_event_next(struct http_event_reader *reader, struct slice *bytes)
{
    enum http_event_status status = HTTP_EVENT_MORE;

    if (reader->was_whole)
        start_event(reader);
    skip_mark(reader, bytes);
    while (bytes->len > 0 && status == HTTP_EVENT_MORE)
        status = take_event(reader, bytes);
    return status;
}
