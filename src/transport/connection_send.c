#include "build_config.h"

#include "transport/connection_send.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "transport/memory.h"

#define MOVED_MIN (BUFFER_LARGE / 4) /* a shorter frame is copied */

/* After something was queued: it is written at the end of the round. */
static inline void note_queued(struct connection *connection)
{
    struct transport *transport = connection->transport;

    connection->frames_out++;
    if (!list_linked(&connection->dirty))
        list_append(&transport->dirty, &connection->dirty);
    if (connection->full || (connection->output.bytes <= transport->limits->max_output_queue &&
                             !(transport->is_tight && connection->output.bytes > BUFFER_LARGE)))
        return;
    connection->full = true;
    connection_start_stall(connection);
    connection->handler->full(connection, true);
}

/* --- moving --- */

/* Whether to move a frame with its buffer: that costs a copy of what follows the frame instead. A
 * buffer that is mostly empty would occupy more in a queue than the queue counts. */
static inline bool worth_moving(const struct connection *from, struct slice body)
{
    if (from == NULL || body.len < MOVED_MIN)
        return false;
    ASSERT(from->at_hand >= body.len && body.data == from->input->data + from->input->start);
    return body.len >= from->input->capacity / 4 &&
           buffer_len(from->input) - from->at_hand <= body.len;
}

/* Takes the buffer of the current frame away from `from`, which keeps the bytes after the frame.
 * NULL if out of memory. */
static struct buffer *detach_frame(struct connection *from, struct slice body)
{
    struct buffer *whole = from->input;
    size_t start = (size_t)(body.data - whole->data);
    size_t rest_start = whole->start + from->at_hand;
    size_t rest_len = whole->end - rest_start;
    struct buffer *rest = NULL;
    bool keeps = rest_len > 0 && memory_keeps(from, whole->capacity);

    if (body.len > BUFFER_LARGE) /* the last read of such a frame, too, finds room */
        from->expected = body.len + CONNECTION_ROOM_MIN;
    if (rest_len > 0) {
        rest = buffer_take(&from->transport->pool,
                           keeps && rest_len < from->expected && from->expected <= from->reserved
                               ? from->expected
                               : rest_len);
        if (rest == NULL)
            return NULL;
        memcpy(rest->data, whole->data + rest_start, rest_len);
        rest->end = rest_len;
    }
    whole->start = start;
    whole->end = start + body.len;
    from->input = rest;
    from->at_hand = 0;
    if (!keeps)
        memory_release(from);
    return whole;
}

/* Whether most of the body is in one piece. */
static bool few_edited(struct slice body, const struct splice_edit *edits, unsigned count)
{
    const struct splice_edit *last;

    if (count == 0)
        return true;
    last = &edits[count - 1];
    return edits[0].offset > body.len / 2 || last->offset + last->len < body.len / 2;
}

/* --- parts --- */

/* A reader of lines must find no end of a line in the body. */
static void make_line(char *body, size_t len)
{
    splice_blank(body, len, '\n');
    splice_blank(body, len, '\r');
}

static char *write_bytes(char *to, struct slice bytes)
{
    if (bytes.len > 0)
        memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

/* Writes the bytes of the body from `start` to `end`, edited; all edits are within. Returns the end
 * of what was written. */
static char *write_body(char *to, const struct connection_parts *parts, struct slice body,
                        size_t start, size_t end, const struct splice_edit *edits, unsigned count)
{
    size_t len = splice_len(end - start, edits, count);

    splice_write(to, body.data, start, end, edits, count);
    if (parts->one_line)
        make_line(to, len);
    return to + len;
}

static int copy_parts(struct connection *to, const struct connection_parts *parts,
                      struct slice body, const struct splice_edit *edits, unsigned count)
{
    size_t len = splice_len(body.len, edits, count);
    char *room = queue_reserve(&to->output, &to->transport->pool,
                               parts->before.len + len + parts->after.len);

    if (room == NULL)
        return STDIO_BUS_ERR;
    room = write_bytes(room, parts->before);
    room = write_body(room, parts, body, 0, body.len, edits, count);
    write_bytes(room, parts->after);
    return STDIO_BUS_OK;
}

/* The bytes before the first edit or those after the last one move with the buffer; the others are
 * copied, into a buffer before or after it. */
struct move {
    size_t start, end; /* of what moves, in the body */
    size_t before_len, after_len;
    struct buffer *before, *after; /* NULL: nothing, or what comes after fits into the buffer */
};

static void plan_move(struct move *move, const struct connection *from,
                      const struct connection_parts *parts, struct slice body,
                      const struct splice_edit *edits, unsigned count)
{
    const struct buffer *buffer = from->input;
    size_t len = splice_len(body.len, edits, count);
    size_t first, last;

    *move = (struct move){.end = body.len};
    if (count > 0) {
        first = edits[0].offset;
        last = edits[count - 1].offset + edits[count - 1].len;
        if (first > body.len - last)
            move->end = first;
        else
            move->start = last;
    }
    len -= move->end - move->start;
    move->before_len = parts->before.len + (move->start > 0 ? len : 0);
    move->after_len = parts->after.len + (move->start > 0 ? 0 : len);
    ASSERT(body.data + move->end <= buffer->data + buffer->capacity);
}

static bool has_room_after(const struct connection *from, struct slice body,
                           const struct move *move)
{
    const struct buffer *buffer = from->input;
    const char *end = body.data + body.len;

    return move->end == body.len &&
           move->after_len <= (size_t)(buffer->data + buffer->capacity - end);
}

static bool take_buffers(struct move *move, struct buffer_pool *pool, bool room_after)
{
    if (move->before_len > 0) {
        move->before = buffer_take(pool, move->before_len);
        if (move->before == NULL)
            return false;
        move->before->end = move->before_len;
    }
    if (move->after_len > 0 && !room_after) {
        move->after = buffer_take(pool, move->after_len);
        if (move->after == NULL)
            return false;
        move->after->end = move->after_len;
    }
    return true;
}

static int move_parts(struct connection *to, struct connection *from,
                      const struct connection_parts *parts, struct slice body,
                      const struct splice_edit *edits, unsigned count)
{
    struct buffer_pool *pool = &to->transport->pool;
    struct buffer *buffer = NULL;
    struct move move;
    char *end;

    plan_move(&move, from, parts, body, edits, count);
    if (take_buffers(&move, pool, has_room_after(from, body, &move)))
        buffer = detach_frame(from, body);
    if (buffer == NULL) {
        buffer_give(pool, move.before);
        buffer_give(pool, move.after);
        return STDIO_BUS_ERR;
    }
    if (move.before != NULL) {
        end = write_bytes(move.before->data, parts->before);
        if (move.start > 0)
            write_body(end, parts, body, 0, move.start, edits, count);
        queue_append_buffer(&to->output, move.before);
    }
    end = move.after != NULL ? move.after->data : buffer->data + buffer->end;
    if (move.end < body.len)
        end = write_body(end, parts, body, move.end, body.len, edits, count);
    write_bytes(end, parts->after);
    buffer->end = buffer->start + move.end;
    buffer->start += move.start;
    if (parts->one_line)
        make_line(buffer->data + buffer->start, buffer->end - buffer->start);
    if (move.after == NULL)
        buffer->end += move.after_len;
    queue_append_buffer(&to->output, buffer);
    if (move.after != NULL)
        queue_append_buffer(&to->output, move.after);
    return STDIO_BUS_OK;
}

int connection_send_parts(struct connection *to, struct connection *from,
                          const struct connection_parts *parts, struct slice body,
                          const struct splice_edit *edits, unsigned count)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (worth_moving(from, body) && few_edited(body, edits, count))
        status = move_parts(to, from, parts, body, edits, count);
    else
        status = copy_parts(to, parts, body, edits, count);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

int connection_send_bytes(struct connection *to, struct slice bytes)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    status = queue_append(&to->output, &to->transport->pool, bytes);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

/* --- bodies and lines --- */

int connection_send_body(struct connection *to, struct connection *from, struct slice body,
                         const struct splice_edit *edits, unsigned count)
{
    struct connection_parts parts = {.one_line = to->has_lines};
    char prefix[FRAME_PREFIX_MAX];
    size_t len;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (to->has_lines) {
        parts.after = slice_of("\n", 1);
    } else {
        len = to->framing->prefix(prefix, splice_len(body.len, edits, count));
        parts.before = slice_of(prefix, len);
    }
    return connection_send_parts(to, from, &parts, body, edits, count);
}

int connection_send_line(struct connection *to, struct connection *from, struct slice line)
{
    static const struct connection_parts none;
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, slice_without_newline(line), NULL, 0);
    if (worth_moving(from, line))
        return connection_send_parts(to, from, &none, line, NULL, 0);
    status = queue_append(&to->output, &to->transport->pool, line);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

int connection_send_edited(struct connection *to, struct connection *from, struct slice line,
                           const struct splice_edit *edits, unsigned count)
{
    static const struct connection_parts none;
    char *room;

    ASSERT(count > 0);
    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, slice_without_newline(line), edits, count);
    if (worth_moving(from, line))
        return connection_send_parts(to, from, &none, line, edits, count);
    room = queue_reserve(&to->output, &to->transport->pool, splice_len(line.len, edits, count));
    if (room == NULL)
        return STDIO_BUS_ERR;
    splice_write(room, line.data, 0, line.len, edits, count);
    note_queued(to);
    return STDIO_BUS_OK;
}
