/* A stream of HTTP or WebSocket frames that comes in pieces, and what it came to as text. */
#ifndef TESTS_UNIT_HTTP_STREAM_H
#define TESTS_UNIT_HTTP_STREAM_H

#include "framing/frame.h"
#include "suite.h"
#include "json/message.h"

/* The owner of a stream: what a connection and its handler do. */
struct http_stream {
    const struct framing *framing;
    struct framing_state state;
    struct scanner scanner;
    char *input; /* not consumed yet, in memory that ends with it */
    size_t len, moved;
    struct text notes;
    bool ended; /* malformed */
    size_t idle;
    /* Each notes what it is told. */
    void (*whole)(struct http_stream *stream, struct slice frame);
    void (*noted)(struct http_stream *stream);
    void (*bad)(struct http_stream *stream, const struct frame *frame, bool malformed);
};

static inline void http_stream_start(struct http_stream *stream, const struct framing *framing,
                                     void *reader, size_t max_body, size_t max_long)
{
    stream->framing = framing;
    memset(&stream->state, 0x5A, sizeof stream->state);
    memset(&stream->scanner, 0, sizeof stream->scanner);
    stream->state.check = &json_body_check;
    stream->state.check_state = &stream->scanner;
    stream->state.max_body = max_body;
    stream->state.max_long = max_long;
    stream->state.wary = false;
    stream->state.inner = NULL;
    stream->state.reader = reader;
    stream->input = NULL;
    stream->len = stream->moved = stream->idle = 0;
    stream->ended = false;
    stream->notes.len = 0;
    text_add(&stream->notes, "", 0);
    framing->reset(&stream->state);
}

/* Exchanges the input for a copy without its first bytes, and with more after them. */
static inline void http_stream_set_input(struct http_stream *stream, size_t consumed,
                                         struct slice more)
{
    size_t kept = stream->len - consumed;
    char *input = malloc(kept + more.len + (kept + more.len == 0));

    ck_assert_uint_le(consumed, stream->len);
    ck_assert_ptr_nonnull(input);
    if (kept > 0)
        memcpy(input, stream->input + consumed, kept);
    if (more.len > 0)
        memcpy(input + kept, more.data, more.len);
    free(stream->input);
    stream->input = input;
    stream->len = kept + more.len;
}

static inline void http_stream_cut(struct http_stream *stream)
{
    if (stream->state.cut)
        stream->len = stream->framing->cut(&stream->state, stream->input, stream->len);
}

/* One call of next, and what a connection does then. False: it waits for more. */
static inline bool http_stream_step(struct http_stream *stream)
{
    struct frame frame = {.consumed = 0};
    struct slice input;
    enum frame_status status;

    http_stream_set_input(stream, 0, slice_of(NULL, 0));
    input = slice_of(stream->input, stream->len);
    status = stream->framing->next(&stream->state, input, &frame);
    switch (status) {
    case FRAME_WHOLE:
        stream->whole(stream, slice_of(stream->input, frame.consumed));
        break;
    case FRAME_WAIT:
        http_stream_cut(stream);
        return false;
    case FRAME_REWRITE:
        stream->len = stream->framing->rewrite(&stream->state, stream->input, stream->len);
        break;
    case FRAME_NOTED:
        stream->noted(stream);
        break;
    case FRAME_REFUSED:
    case FRAME_MALFORMED:
        ck_assert_ptr_nonnull(frame.problem);
        stream->bad(stream, &frame, status == FRAME_MALFORMED);
        stream->ended = status == FRAME_MALFORMED;
        break;
    default:
        ck_assert_int_eq(status, FRAME_SKIP);
    }
    if (stream->ended)
        return false;
    stream->idle = frame.consumed > 0 || stream->len < input.len ? 0 : stream->idle + 1;
    ck_assert_msg(stream->idle < 8 + 2 * stream->len, "no progress");
    http_stream_set_input(stream, status == FRAME_REWRITE ? 0 : frame.consumed, slice_of(NULL, 0));
    return true;
}

static inline void http_stream_read(struct http_stream *stream, struct slice bytes, size_t size)
{
    size_t at = 0, len;

    do {
        len = bytes.len - at < size ? bytes.len - at : size;
        http_stream_set_input(stream, 0, slice_of(bytes.data + at, len));
        at += len;
        stream->idle = 0;
        while (http_stream_step(stream))
            ;
    } while (at < bytes.len && !stream->ended);
}

static inline void http_stream_end(struct http_stream *stream)
{
    free(stream->input);
    stream->input = NULL;
    stream->len = 0;
}

#endif
