#include "build_config.h"

#include "http/reader.h"

#include "base/archive.h"
#include "base/assert.h"
#include "framing/sized_frame.h"
#include "http/event_log.h"

#define SKIPS_ALL UINT64_MAX

static struct http_reader *reader_of(const struct framing_state *state)
{
    return state->reader;
}

static enum frame_status malformed(struct framing_state *state, struct frame *frame, int status,
                                   const char *problem)
{
    struct http_reader *reader = reader_of(state);

    reader->status = status;
    reader->closes = true;
    state->reported = true;
    frame->consumed = 0;
    frame->fault = status == 413 || status == 414 || status == 431 ? FRAME_FAULT_TOO_LONG
                                                                   : FRAME_FAULT_SYNTAX;
    frame->problem = problem;
    return FRAME_MALFORMED;
}

static void reset(struct framing_state *state)
{
    struct http_reader *reader = reader_of(state);

    sized_frame_reset(state);
    *reader = (struct http_reader){.status = 408};
}

/* --- heads --- */

/* The head is whole. */
static enum frame_status end_head(struct framing_state *state, struct slice bytes,
                                  struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    const char *problem = NULL;
    int status = http_head_read(&reader->head, bytes, &problem);

    if (status != 0)
        return malformed(state, frame, status, problem);
    reader->part = HTTP_PART_HEAD;
    reader->closes = !http_head_keeps_alive(&reader->head, bytes);
    reader->has_body = reader->head.body != HTTP_BODY_NONE;
    reader->skips = reader->takes_batch = reader->is_array = reader->in_batch = false;
    sized_frame_reset(state);
    state->begun = reader->has_body;
    frame->consumed = bytes.len;
    return FRAME_WHOLE;
}

/* Looks for the empty line, line by line. */
static enum frame_status read_head(struct framing_state *state, struct slice input,
                                   struct frame *frame)
{
    size_t max = HTTP_HEAD_MAX, len = input.len;
    const char *end;

    if (max > state->max_body)
        max = state->max_body;
    if (len > max)
        len = max;
    while (state->looked < len &&
           (end = memchr(input.data + state->looked, '\n', len - state->looked)) != NULL) {
        state->looked = (uint32_t)(end + 1 - input.data);
        if (state->looked < 2 || end[-1] != '\r')
            return malformed(state, frame, 400, "a line ends without a carriage return");
        if (state->looked == state->line_start + 2)
            return end_head(state, slice_of(input.data, state->looked), frame);
        state->line_start = state->looked;
    }
    state->looked = (uint32_t)len;
    if (input.len >= max)
        return state->line_start == 0 ? malformed(state, frame, 414, "the request line is too long")
                                      : malformed(state, frame, 431, "the head is too long");
    state->begun = true;
    state->frame_ms = HTTP_HEAD_MS;
    return FRAME_WAIT;
}

/* Empty lines before a head are skipped (RFC 9112, 2.2). What cannot begin a method is refused
 * before a line of it is here. */
static enum frame_status start_head(struct framing_state *state, struct slice input,
                                    struct frame *frame)
{
    struct http_reader *reader = reader_of(state);

    if (input.len == 0)
        return FRAME_WAIT;
    if (reader->closes) { /* by the message before */
        frame->consumed = input.len;
        return FRAME_SKIP;
    }
    reader->status = 408;
    if (state->looked > 0 || http_span_bytes(slice_of(input.data, 1), HTTP_TOKEN_BYTES) == 1)
        return read_head(state, input, frame);
    if (input.data[0] != '\r' || (input.len > 1 && input.data[1] != '\n'))
        return malformed(state, frame, 400, "not HTTP");
    if (input.len == 1)
        return FRAME_WAIT;
    frame->consumed = 2;
    return FRAME_SKIP;
}

/* --- bodies --- */

/* From now on whatever comes is skipped: `left` bytes of it. */
static enum frame_status start_skipping(struct framing_state *state, struct frame *frame,
                                        uint64_t left)
{
    state->begun = left != SKIPS_ALL; /* else it may last as long as the answer */
    state->reported = true;
    state->part = PART_SKIP;
    state->left = left;
    frame->consumed = 0;
    return FRAME_SKIP;
}

/* A body with a length was refused; the rest of it is skipped. */
static enum frame_status refused_sized(struct framing_state *state, int status)
{
    struct http_reader *reader = reader_of(state);

    reader->status = status;
    reader->closes = reader->closes || state->left > HTTP_SKIPPED_MAX;
    return FRAME_REFUSED;
}

static enum frame_status start_body(struct framing_state *state, struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    enum frame_status status;

    reader->has_body = false;
    reader->part = HTTP_PART_BODY;
    reader->status = 408;
    reader->timed = 0;
    reader->clean = reader->gap = 0;
    reader->batch = (struct batch_reader){0};
    if (reader->skips)
        return start_skipping(state, frame, reader->closes ? SKIPS_ALL : reader->head.length);
    if (reader->head.body == HTTP_BODY_SIZED) {
        state->left = reader->head.length;
        status = sized_frame_start_body(state, frame, 0);
        return status == FRAME_REFUSED ? refused_sized(state, 413) : status;
    }
    reader->chunks = (struct chunked_reader){0};
    reader->is_over = reader->is_bad = false;
    state->begun = true;
    state->part = PART_GROWING;
    state->check->reset(state->check_state, true);
    frame->consumed = 0;
    return FRAME_SKIP;
}

/* The body is no JSON. Where a chunked one ends is not looked for. */
static enum frame_status refuse_chunked(struct framing_state *state, struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    const char *problem = frame->problem;

    reader->status = 400;
    reader->closes = true;
    reader->clean = reader->gap = 0;
    start_skipping(state, frame, SKIPS_ALL);
    frame->fault = FRAME_FAULT_SYNTAX;
    frame->problem = problem;
    return FRAME_REFUSED;
}

/* --- batches --- */

/* Whether the body, of which this is here, is an array that the owner takes. */
static bool is_array(struct http_reader *reader, struct slice body)
{
    bool decided;

    if (!reader->takes_batch)
        return reader->is_array;
    reader->is_array = batch_begins(body, &decided);
    reader->takes_batch = !decided;
    return reader->is_array;
}

/* The batch is whole and good: the first `clean` bytes of the input. */
static enum frame_status next_member(struct framing_state *state, struct slice input,
                                     struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    struct slice rest = slice_of(input.data, reader->clean);
    size_t gap = batch_gap(rest);
    bool is_over = gap == rest.len;

    frame->consumed = gap > 0 ? gap : batch_member(state, rest);
    reader->clean -= frame->consumed;
    if (gap > 0 && !is_over)
        return FRAME_SKIP;
    if (!is_over)
        return FRAME_WHOLE;
    reader->part = HTTP_PART_END;
    sized_frame_reset(state);
    return FRAME_NOTED;
}

static enum frame_status refuse_batch(struct framing_state *state, struct frame *frame, int status)
{
    if (state->part == PART_GROWING)
        return refuse_chunked(state, frame);
    state->left -= frame->consumed;
    sized_frame_refuse(state, frame, frame->consumed,
                       status == 413 ? FRAME_FAULT_TOO_LONG : FRAME_FAULT_SYNTAX, frame->problem);
    return refused_sized(state, status);
}

/* A body that is an array, of which `body` is here. */
static enum frame_status batch_body(struct framing_state *state, struct slice body, bool is_over,
                                    struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    enum batch_status status;

    if (state->cut) { /* it was announced as too long to be kept */
        frame->consumed = 0;
        frame->problem = "the array is too long";
        return refuse_batch(state, frame, 413);
    }
    status = batch_check(&reader->batch, state, body, is_over, frame);
    if (status == BATCH_BAD)
        return refuse_batch(state, frame, 400);
    if (status == BATCH_MORE)
        return FRAME_WAIT;
    reader->in_batch = reader->is_over = true;
    reader->clean = body.len;
    state->part = PART_GROWING;
    state->reported = true;
    return next_member(state, body, frame);
}

/* --- bodies with a length --- */

static enum frame_status sized_body(struct framing_state *state, struct slice input,
                                    struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    size_t here = input.len < state->left ? input.len : (size_t)state->left;
    enum frame_status status;
    bool trailing;

    if (is_array(reader, slice_of(input.data, here))) {
        status = batch_body(state, slice_of(input.data, here), here == state->left, frame);
    } else {
        status = sized_frame_body(state, input, frame, &trailing);
        if (status == FRAME_REFUSED)
            refused_sized(state, 400);
    }
    if (status == FRAME_WAIT)
        progress_note(state, &reader->timed, here, reader->head.length);
    return status;
}

/* --- chunked bodies --- */

/* All pieces that are here are together: the first `clean` bytes of the input. FRAME_SKIP: they
 * are good. */
static enum frame_status check_chunked(struct framing_state *state, struct slice body,
                                       struct frame *frame)
{
    const struct http_reader *reader = reader_of(state);
    enum body_status status = state->check->run(state->check_state, body, frame);

    if (status == BODY_MORE && reader->is_over)
        status = state->check->end(state->check_state, frame);
    if (status == BODY_MORE)
        return FRAME_WAIT;
    return status == BODY_WHOLE ? FRAME_WHOLE : refuse_chunked(state, frame);
}

static enum frame_status chunked_body(struct framing_state *state, struct slice input,
                                      struct frame *frame)
{
    struct http_reader *reader = reader_of(state);
    struct slice body = slice_of(input.data, reader->clean);
    size_t max = state->max_long > 0 && reader->is_array ? state->max_long : state->max_body;
    enum frame_status status;

    if (reader->in_batch)
        return next_member(state, input, frame);
    if (is_array(reader, body))
        status = batch_body(state, body, reader->is_over && reader->clean <= max, frame);
    else
        status = check_chunked(state, body, frame);
    if (status != FRAME_WAIT && status != FRAME_WHOLE)
        return status;
    if (reader->is_bad)
        return malformed(state, frame, 400, "a chunk is malformed");
    if ((state->max_long == 0 || reader->is_array) && reader->clean > max)
        return malformed(state, frame, 413, "message exceeds max_input_buffer");
    if (status == FRAME_WAIT) {
        progress_note(state, &reader->timed, reader->clean, 0);
        state->cut = !reader->is_array && state->max_long > 0 &&
                     (state->cut || reader->clean > state->max_long);
        return FRAME_WAIT;
    }
    if (reader->in_batch)
        return FRAME_WHOLE;
    if (state->cut)
        state->check->mark(state->check_state, true);
    frame->consumed = reader->clean;
    reader->clean = 0;
    sized_frame_reset(state);
    return FRAME_WHOLE;
}

static enum frame_status pieces(struct framing_state *state, struct slice input,
                                struct frame *frame)
{
    const struct http_reader *reader = reader_of(state);
    bool too_long = state->max_long == 0 && reader->clean > state->max_body;

    if (!reader->is_over && !reader->is_bad && !too_long && input.len > reader->clean + reader->gap)
        return FRAME_REWRITE;
    return chunked_body(state, input, frame);
}

/* Moves as much data as is here and allowed. */
static size_t take_data(struct framing_state *state, char *input, size_t at, size_t len)
{
    struct http_reader *reader = reader_of(state);
    size_t count = len - at;

    if (count > reader->chunks.left)
        count = (size_t)reader->chunks.left;
    if (state->max_long == 0 && count > state->max_body + 1 - reader->clean)
        count = state->max_body + 1 - reader->clean;
    if (at > reader->clean)
        memmove(input + reader->clean, input + at, count);
    reader->clean += count;
    reader->chunks.left -= count;
    return at + count;
}

/* The head of the first chunk is left for next to skip: its data need not be moved. */
static size_t rewrite(struct framing_state *state, char *input, size_t len)
{
    struct http_reader *reader = reader_of(state);
    size_t at = reader->clean + reader->gap, consumed = 0;
    enum chunked_status status = CHUNKED_DATA;

    while (status == CHUNKED_DATA && at < len &&
           (state->max_long > 0 || reader->clean <= state->max_body)) {
        status = chunked_read(&reader->chunks, slice_of(input + at, len - at), &consumed);
        if (status == CHUNKED_BAD)
            break;
        at += consumed;
        if (status != CHUNKED_DATA || (reader->clean == 0 && at > 0))
            break;
        at = take_data(state, input, at, len);
    }
    reader->is_over = status == CHUNKED_END;
    reader->is_bad = status == CHUNKED_BAD;
    reader->gap = at - reader->clean;
    if (at < len)
        return len;
    reader->gap = 0;
    return reader->clean;
}

/* --- the table --- */

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    struct http_reader *reader = reader_of(state);

    if (reader->gap > 0 && reader->clean == 0) {
        frame->consumed = reader->gap;
        reader->gap = 0;
        return FRAME_SKIP;
    }
    switch ((enum sized_frame_part)state->part) {
    case PART_BODY:
        return sized_body(state, input, frame);
    case PART_GROWING:
        return pieces(state, input, frame);
    case PART_SKIP:
        return sized_frame_skip(state, input, frame);
    default:
        break;
    }
    return reader->has_body ? start_body(state, frame) : start_head(state, input, frame);
}

static size_t cut(struct framing_state *state, char *input, size_t len)
{
    struct http_reader *reader = reader_of(state);

    if (state->part == PART_BODY)
        return sized_frame_cut(state, input, len);
    ASSERT(reader->gap == 0 && reader->clean == len);
    state->cut = true;
    reader->clean = state->check->cut(state->check_state, input, len);
    return reader->clean;
}

/* The owner of the connection writes whole answers. */
static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    (void)to;
    (void)body_len;
    return 0;
}

const struct framing framing_http = {
    .name = "http",
    .reset = reset,
    .next = next,
    .cut = cut,
    .rewrite = rewrite,
    .prefix = prefix,
};

void http_reader_skip_body(struct http_reader *reader)
{
    const struct http_head *head = &reader->head;

    if (!reader->has_body)
        return;
    reader->skips = true;
    if (head->body != HTTP_BODY_SIZED || head->length > HTTP_SKIPPED_MAX || head->expects_continue)
        reader->closes = true;
}

void http_reader_take_batch(struct http_reader *reader)
{
    reader->takes_batch = reader->has_body;
}

/* --- the archive --- */

/* The parts of a head that its owner has are found again; of one that was taken its body counts. */
void http_reader_archive(struct archive *archive, struct http_reader *reader, struct slice head)
{
    static const struct archive_field fields[] = {
        ARCHIVE_CHOICE(struct http_reader, part, HTTP_PART_END),
        ARCHIVE_CHOICE(struct http_reader, head.body, HTTP_BODY_CHUNKED),
        ARCHIVE_FLAGS(struct http_reader, head.expects_continue, closes, in_batch, skips,
                      takes_batch, has_body, is_over, is_bad, is_array),
        ARCHIVE_INTEGERS(struct http_reader, head.length, status, chunks.left, chunks.extra,
                         chunks.state, chunks.digits, clean, gap, timed, batch.checked, batch.part),
    };
    const char *problem = NULL;

    archive_mark(archive, "httpread");
    ARCHIVE_FIELDS(archive, reader, fields);
    if (archive_loads(archive) && head.len > 0)
        archive_expect(archive, http_head_read(&reader->head, head, &problem) == 0,
                       "a head is no head any more");
}
